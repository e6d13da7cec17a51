package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/load"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

const (
	writesPerPut     = 200
	receiptMemories  = 8 // inserted in each exchange
	receiptCuts      = 8 // turned down
	receiptRetention = 30 * 24 * time.Hour
)

// fill writes the store, unless an earlier run has.
func (r *run) fill(ctx context.Context, stderr io.Writer) (err error) {
	dir := load.DataDir(r.dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	cfg := badger.DefaultConfig()
	cfg.Dir, cfg.KeyFile = dir, load.KeyFile(r.dir)
	store := badger.New(cfg, nil)
	if err := store.Open(ctx); err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, store.Close()); err != nil {
			err = errors.Join(err, os.RemoveAll(dir)) // a part is not taken for the whole
		}
	}()
	began := time.Now()
	fmt.Fprintf(stderr, "filling %d users with %d memories each ...\n", r.users, r.memories)
	for user := range r.users {
		if err := r.fillUser(ctx, store, user, began); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "filled in %v\n", time.Since(began).Round(time.Second))
	return nil
}

func (r *run) fillUser(ctx context.Context, store *badger.Store, user int, now time.Time) error {
	var batch []storage.Write
	for w := range r.corpus.writes(user, now) {
		if batch = append(batch, w); len(batch) == writesPerPut {
			if err := store.Put(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := store.Put(ctx, batch); err != nil {
		return err
	}
	return r.fillReceipts(ctx, store, user, now)
}

// fillReceipts has a user's memories used by as many exchanges as are kept.
func (r *run) fillReceipts(ctx context.Context, store *badger.Store, user int, now time.Time) error {
	recorder := receipt.NewRecorder(store, receiptRetention, nil)
	rnd := rand.New(rand.NewPCG(corpusSeed, uint64(user)))
	scope := r.corpus.scope(user)
	for n := range r.receipts {
		recorder.Record(r.receipt(rnd, scope, user, now.Add(-time.Duration(r.receipts-n)*time.Minute)))
	}
	ended, end := context.WithCancel(ctx)
	end() // Run then writes what waits, and no more
	recorder.Run(ended)
	if n := recorder.Dropped(); n > 0 {
		return fmt.Errorf("%d receipts not kept", n)
	}
	return ctx.Err()
}

func (r *run) receipt(rnd *rand.Rand, scope storage.Scope, user int, at time.Time) *receipt.Receipt {
	out := &receipt.Receipt{
		At: storage.TimeOf(at), Scope: scope, Conversation: fmt.Sprintf("chat-%04d-%06d", user, rnd.IntN(100)), Upstream: "mock", Dialect: "chat",
		Model: "mock-0-0-0", Status: "injected", Code: 200, Query: "What did I say about it?", Considered: 100, Relevance: .7, Gate: .2,
	}
	var lines []fence.Line
	for range receiptMemories {
		id := r.corpus.id(user, rnd.IntN(r.memories))
		lines = append(lines, fence.Line{ID: id, Who: "user", Text: "I told my sister that we moved the table near the window.", Time: out.At})
		out.Candidates = append(out.Candidates, receipt.Candidate{ID: id, Kind: string(storage.KindEpisode), Score: 1 + rnd.Float64(), Inserted: true})
	}
	for range receiptCuts {
		out.Candidates = append(out.Candidates, receipt.Candidate{ID: r.corpus.id(user, rnd.IntN(r.memories)), Score: rnd.Float64(), Reason: "topK"})
	}
	block := fence.Render("00112233aabbccdd", lines, fence.Options{})
	out.Inserted = []receipt.Insertion{{Placement: "afterUser", Message: 1, Offset: 100, Text: block.Text, Spans: block.Spans}}
	return out
}
