package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// keeperConfig configures a keeper. It is sent to the store's process as JSON
// through a socket, because it may contain the key.
type keeperConfig struct {
	Store badger.Config
	// ReserveBytes is the size of a file that is deleted when the disk is full;
	// 0 = none.
	ReserveBytes uint64
	// SetAside allows a damaged store to be renamed and a new one to be created
	// in its place.
	SetAside bool
	// Socket enables the command socket.
	Socket bool
	// Alone means that this process has nothing else to do, so that it may
	// crash if the store is beyond repair. Crashes is how many such processes
	// in a row crashed by a fault of their own while they opened the store.
	Alone   bool
	Crashes int
}

// keeper keeps a store open: in the store's own process, or in the proxy's.
type keeper struct {
	cfg   keeperConfig
	log   *slog.Logger
	store *badger.Store
	room  func() error // returns machine.ErrNoRoom if nothing can be written

	mu       sync.Mutex
	reason   string // why the keeper holds the store closed; "" = it does not
	aside    []string
	reserved bool

	broken atomic.Bool // the scrub has found tables with wrong checksums
}

// Limits of keeping a store.
const (
	keeperTick  = 250 * time.Millisecond
	openingTick = 10 * time.Millisecond
	// A store that fails maxCrashes times in a row on its files is damaged.
	// Fewer failures may be the machine's fault.
	maxCrashes = 3
	// A store with tables known to be damaged, over which Badger panics
	// maxPanics times as it reads, is of no use.
	maxPanics = 10
	// maxAside limits the stores that are set aside. If a disk damages one
	// store after another, more of them don't help.
	maxAside = 8
)

func newKeeper(cfg keeperConfig, log *slog.Logger) *keeper {
	if cfg.Alone {
		cfg.Store.Fatal = func(reason string) { panic("store: " + reason) }
	}
	k := &keeper{cfg: cfg, log: log, store: badger.New(cfg.Store, log)}
	k.room = func() error {
		return machine.TakeRoom(cfg.Store.Dir, machine.KeeperRoom, k.store.MeasureFree, machine.Allocate)
	}
	k.lookAside()
	return k
}

// lookAside records what was set aside. It stays there until a person deletes
// it.
func (k *keeper) lookAside() {
	aside := badger.ListSetAside(k.cfg.Store.Dir)
	k.mu.Lock()
	k.aside = aside
	k.mu.Unlock()
}

// Status implements [process.Server].
func (k *keeper) Status() process.Status {
	h := k.store.Health()
	k.mu.Lock()
	defer k.mu.Unlock()
	s := process.Status{
		Open: h.Open, Opening: !h.Open && k.reason == "", Reason: h.Reason, FailedOpens: h.FailedOpens,
		FreeBytes: h.FreeBytes, Damaged: h.Damaged, Panics: h.Panics, SetAside: k.aside,
	}
	if h.Missing != "" && !slices.Contains(k.aside, h.Missing) {
		s.SetAside = append(slices.Clone(k.aside), h.Missing)
	}
	if k.reason != "" {
		s.Reason = k.reason
	}
	return s
}

func (k *keeper) hold(reason string) {
	k.mu.Lock()
	k.reason = reason
	k.mu.Unlock()
}

// Reasons for which one opening of the store ends.
var (
	errDiskFull = errors.New("disk full")
	errDamaged  = errors.New("store damaged")
)

// Run keeps the store open until ctx ends.
func (k *keeper) Run(ctx context.Context) error {
	machine.PrivateFiles()
	for _, dir := range badger.ListSetAside(k.cfg.Store.Dir) {
		if badger.IsMissingMark(dir) {
			k.log.Error("the data of this store were gone when it was opened: memories are missing until they are restored or this mark is taken away", "mark", dir)
			continue
		}
		k.log.Error("a damaged store was set aside: its memories are missing until it is restored or taken away", "directory", dir)
	}
	if err := k.room(); err != nil { // a crash now says nothing about the files either
		k.hold(err.Error())
		k.log.Error("memory is unavailable: the store is opened when there is space", "reason", err.Error())
		if !k.awaitSpace(ctx) {
			return nil
		}
		k.cfg.Crashes = 0
	}
	if k.cfg.Crashes >= maxCrashes && !k.replace(fmt.Sprintf("its process crashed %d times in a row while it opened it", k.cfg.Crashes)) {
		<-ctx.Done()
		return nil
	}
	for {
		err := k.live(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, errDamaged):
			why := k.store.Health().Reason
			if k.broken.Swap(false) {
				why = "tables are damaged, and reading them fails"
			}
			if !k.replace(why) {
				<-ctx.Done()
				return nil
			}
		case errors.Is(err, errDiskFull):
			if !k.awaitSpace(ctx) {
				return nil
			}
		default:
			return err
		}
	}
}

// live runs the store until ctx ends or something must be done about it.
func (k *keeper) live(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- k.store.Run(running) }()
	var scrubbing sync.WaitGroup
	defer scrubbing.Wait()
	defer stop(nil)
	wait := openingTick
	open := false
	var noteErr error // already reported
	for {
		select {
		case err := <-ended:
			if cause := context.Cause(running); errors.Is(cause, errDamaged) || errors.Is(cause, errDiskFull) {
				return cause
			}
			return err
		case <-time.After(wait):
		}
		h := k.store.Health()
		switch {
		case running.Err() != nil:
		case h.NoRetry:
			// What the panic left behind in this process can't be cleaned up. A
			// store in its own process is started again, and counted.
			if k.cfg.Alone {
				panic("store: " + h.Reason)
			}
		case h.DamagedOpens >= maxCrashes:
			stop(errDamaged)
		case h.Open && !open:
			open, wait = true, keeperTick
			k.fillReserve()
			scrubbing.Go(func() { k.scrub(running) })
		case h.Open && k.full():
			stop(errDiskFull)
		case h.Open && h.Panics >= maxPanics && k.broken.Load():
			stop(errDamaged)
		case h.Open:
			k.fillReserve()
			if err := k.store.UpdateInventory(); err != nil && noteErr == nil {
				k.log.Warn("the store's files could not be noted, so that a loss might not be noticed", "error", err)
				noteErr = err
			}
		}
	}
}

// scrub checks the checksums of everything stored, once, while the store is
// already serving.
func (k *keeper) scrub(ctx context.Context) {
	damaged, err := k.store.Scrub(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.Warn("the store could not be checked for damage", "error", err)
	}
	if len(damaged) > 0 {
		k.broken.Store(true)
		k.log.Error("the store is damaged in part: memories are missing", "tables", len(damaged))
	}
}

// replace sets the store aside, unless that is switched off or fails.
func (k *keeper) replace(why string) bool {
	keep := func(what string) bool {
		k.hold(fmt.Sprintf("%s; it is not opened: %s", why, what))
		k.log.Error("memory is unavailable: the store is damaged", "reason", why, "kept", what)
		return false
	}
	if !k.cfg.SetAside {
		return keep("storage.setAside is off")
	}
	if n := len(badger.ListSetAside(k.cfg.Store.Dir)); n >= maxAside {
		return keep(fmt.Sprintf("%d stores were set aside already, the disk may be failing", n))
	}
	to, err := k.store.SetAside(storage.Now())
	if err != nil {
		return keep(err.Error())
	}
	k.lookAside()
	k.log.Error("the store is damaged and was set aside, a new one is made: its memories are missing until it is restored or taken away",
		"reason", why, "directory", to)
	return true
}

// inlineStore is a store in this process, kept by a keeper.
type inlineStore struct {
	*badger.Store
	keeper *keeper
	server *process.Server
}

func (s inlineStore) Status() process.Status { return s.keeper.Status() }

func (s inlineStore) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { s.keeper.listen(ctx, s.server) })
	return s.keeper.Run(ctx)
}

// listen serves commands while the store is open. The process that has it open
// owns its directory, and with it the socket.
func (k *keeper) listen(ctx context.Context, server *process.Server) {
	if !k.cfg.Socket || !process.Supported {
		return
	}
	if until(ctx, func() bool { return k.store.Health().Open }) != nil {
		return
	}
	if err := server.Listen(ctx, k.cfg.Store.Dir, process.StoreSocket); err != nil {
		k.log.Warn("commands can't reach this Remora", "error", err)
	}
}

func (k *keeper) server(build string) *process.Server {
	return &process.Server{Store: k.store, Local: k.store, Status: k.Status, Build: build, Log: k.log}
}

func (k *keeper) reservePath() string { return filepath.Join(k.cfg.Store.Dir, "reserve") }

// full detects a disk that fills despite the store's own watch, which stops it
// from writing. It gives up the reserve, so that what is open can be closed in
// good order. Deletions continue until that point.
func (k *keeper) full() bool {
	free, err := k.store.MeasureFree()
	if err != nil || free >= k.cfg.Store.MinFreeBytes/4 {
		return false
	}
	if err := os.Remove(k.reservePath()); err == nil {
		k.log.Error("the disk is full: the reserve was given up", "free_bytes", free, "reserve_bytes", k.cfg.ReserveBytes)
	}
	k.reserved = false
	k.log.Error("the disk is full: the store is closed until there is space", "free_bytes", free, "needed_bytes", k.cfg.Store.MinFreeBytes)
	k.hold(fmt.Sprintf("no space: %d MiB are free where %s lies, %d MiB are needed", free>>20, k.cfg.Store.Dir, k.cfg.Store.MinFreeBytes>>20))
	return true
}

// awaitSpace returns once there is room to open the store. It reports false if
// ctx ends first.
func (k *keeper) awaitSpace(ctx context.Context) bool {
	tick := time.NewTicker(keeperTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if free, err := k.store.MeasureFree(); err == nil && free >= k.cfg.Store.MinFreeBytes && k.room() == nil {
			k.log.Info("there is space again: the store is opened", "free_bytes", free)
			k.hold("")
			return true
		}
	}
}

// fillReserve creates the reserve if there is plenty of room for it.
func (k *keeper) fillReserve() {
	if k.reserved || k.cfg.ReserveBytes == 0 {
		return
	}
	if info, err := os.Stat(k.reservePath()); err == nil && uint64(info.Size()) == k.cfg.ReserveBytes {
		k.reserved = true
		return
	}
	free, err := k.store.MeasureFree()
	if err != nil || free < k.cfg.Store.MinFreeBytes+2*k.cfg.ReserveBytes {
		return
	}
	if err := machine.Allocate(k.reservePath(), k.cfg.ReserveBytes); err != nil {
		k.log.Warn("no reserve could be made on the disk", "error", err)
		_ = os.Remove(k.reservePath())
	}
	k.reserved = true // tried; don't try four times a second
}
