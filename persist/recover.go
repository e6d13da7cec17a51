package persist

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// recoverPage is how many spool records are read at a time.
const recoverPage = 256

// recover reads what an earlier run left in the spool, before anything new is
// spooled, so order is kept. It waits for the store; false means that work
// ended first. Recovered turns count against the limits of the queue, so the
// spool can't grow from run to run.
func (p *Pipeline) recover(ctx, work context.Context) bool {
	var pending []*item
	var due []dueMark
	aside, damaged := 0, 0
	err := p.retry(ctx, work, "recover spool", func() error {
		pending, due, aside, damaged = nil, nil, 0, 0
		err := p.eachEntry(work, func(ref storage.RecordRef, e spoolEntry, err error) {
			switch {
			case err != nil:
				damaged++
			case e.Due != nil:
				due = append(due, dueMark{conversationKey{ref.Scope, e.Due.Conversation}, ref.Key, e.Due.Since})
			case e.Problem != "":
				aside++
			default:
				pending = append(pending, &item{turn: e.Turn, size: e.Turn.size(), since: e.Since.Std(), ref: ref, seq: e.Seq, tries: e.Tries, recovered: true})
			}
		}, func(n int) { damaged += n })
		if err != nil && p.queue.empty() {
			return errNothingAccepted
		}
		return err
	})
	switch {
	case err == nil:
	case errors.Is(err, errNothingAccepted), !permanent(err):
		return false
	default: // AllRecords panics: it is better to continue without the old turns than not at all
		p.log.Error("spool can't be read", "error", err)
		return true
	}
	slices.SortFunc(pending, func(a, b *item) int { return cmp.Compare(a.seq, b.seq) })
	if n := len(pending); n > 0 {
		p.spooler.lastSeq = pending[n-1].seq
	}
	p.storer.aside = aside
	p.stats.damaged.Add(uint64(damaged))
	p.stats.recovered.Add(uint64(len(pending)))
	p.auditor.resume(due)
	p.queue.addRecovered(pending)
	if len(pending)+aside+damaged > 0 {
		p.log.Info("spool read", "pending", len(pending), "quarantined", aside, "damaged", damaged)
	}
	return true
}

// errNothingAccepted ends the wait for a store that does not come while Remora
// stops with nothing to bring to it.
var errNothingAccepted = errors.New("nothing was accepted")

// eachEntry calls found for every record of the spool, and lost with the number
// of records that the store skipped.
func (s *shared) eachEntry(ctx context.Context, found func(storage.RecordRef, spoolEntry, error), lost func(int)) error {
	pages := storage.Pages(func(after string) (storage.RecordPage, string, error) {
		page, err := s.local.AllRecords(ctx, storage.BucketSpool, after, recoverPage)
		return page, page.Next, err
	})
	for page, err := range pages {
		if err != nil {
			return err
		}
		lost(page.Damaged)
		for _, r := range page.Records {
			e, err := decodeEntry(r.Value)
			e.Turn.Scope = r.Scope // the key of the record is authenticated, so its content need not repeat it
			found(storage.RecordRef{Bucket: r.Bucket, Scope: r.Scope, Key: r.Key}, e, err)
		}
	}
	return nil
}

// Quarantined is a turn that was set aside. Its redacted text is in the spool.
type Quarantined struct {
	Scope        storage.Scope
	Turn         string
	Conversation string
	Tries        int
	Problem      string
	Since        storage.Time // when the turn was accepted
}

// Quarantined returns the turns set aside, oldest first.
func (p *Pipeline) Quarantined(ctx context.Context) ([]Quarantined, error) {
	var out []Quarantined
	err := p.eachEntry(ctx, func(_ storage.RecordRef, e spoolEntry, err error) {
		if err == nil && e.Due == nil && e.Problem != "" {
			out = append(out, Quarantined{
				Scope: e.Turn.Scope, Turn: e.Turn.ID, Conversation: e.Turn.Conversation,
				Tries: e.Tries, Problem: e.Problem, Since: e.Since,
			})
		}
	}, func(int) {})
	slices.SortFunc(out, func(a, b Quarantined) int { return cmp.Compare(a.Since, b.Since) })
	return out, err
}
