package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// openStore is a store with everything that it offers besides the contract.
type openStore interface {
	storage.Store
	storage.Local
	storage.Digester
	storage.ScopeLister
	storage.Prober
	storage.RecordReader
	storage.PrefixReader
	storage.Reaper
	storage.KeyRotator
	storage.BulkEraser
	storage.Backuper
}

// memoryStore is the store as the rest of the program sees it.
type memoryStore interface {
	openStore
	Run(ctx context.Context) error
	Status() process.Status
}

// newStore returns the store, in this process or in one of its own. It starts
// nothing before Run.
func newStore(c config.Config, log *slog.Logger) memoryStore {
	keeping := keeperConfig{Store: c.Storage, ReserveBytes: c.Store.ReserveBytes, SetAside: c.Store.SetAside, Socket: true}
	if c.Store.Isolation == config.IsolationInline || !process.Supported {
		k := newKeeper(keeping, log)
		return inlineStore{k.store, k, k.server(readBuild().String())}
	}
	return newStoreProcess(c, keeping, log)
}

// storeBoot is what the store's process gets at its start.
type storeBoot struct {
	Keeper      keeperConfig
	Build       string
	Nice        int
	MemoryBytes int64
	ClockFile   string
	Level       slog.Level
}

func newStoreProcess(c config.Config, keeping keeperConfig, log *slog.Logger) *process.Client {
	keeping.Alone = true
	own := c.Store.Process
	own.Build = readBuild().String()
	own.Command = storeCommandLine
	own.Boot = func(crashes int) ([]byte, error) {
		keeping.Crashes = crashes
		return json.Marshal(storeBoot{
			Keeper: keeping, Build: own.Build, Nice: own.Nice, MemoryBytes: c.Store.MemoryBytes, ClockFile: c.Store.ClockFile, Level: c.Log.SlogLevel(),
		})
	}
	space := badger.New(c.Storage, nil) // it is never opened
	own.Excused = func() bool {
		free, err := space.MeasureFree()
		return err != nil || free < c.Storage.MinFreeBytes || machine.TakeRoom(c.Storage.Dir, machine.ParentRoom, space.MeasureFree, machine.Allocate) != nil
	}
	return process.New(own, log)
}

// followClock sets the clock of tests, if there is one.
func followClock(file string) error {
	if file == "" {
		return nil
	}
	if err := storage.FollowClock(file); err != nil {
		return fmt.Errorf("storage.clockFile: %w", err)
	}
	return nil
}

// storeCommandLine runs this program again, even if its file has been replaced
// since. It needs little of the environment; settings, which may be secrets,
// are not passed through it.
func storeCommandLine() (*exec.Cmd, error) {
	self, err := programPath(os.Args[0])
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: self, Args: []string{"remora", "store"}, Env: []string{}}
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "TZ", "TMPDIR", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE":
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd, nil
}

func storeCommand() command {
	return command{
		name:    "store",
		summary: "hold the memories for serve, which starts it",
		usage:   "remora store",
		run:     store,
	}
}

// store runs until the process that started it hangs up, then closes the store.
// Signals that stop a service or a terminal's job reach it as well, so it
// leaves it to its parent when to end.
func store(ctx context.Context, s streams, _ []string) error {
	conn, raw, err := process.Inherit()
	if errors.Is(err, process.ErrNotInherited) {
		fmt.Fprintln(s.err, "remora store: is started by remora serve, and serves only that")
		return usageError{"called by hand"}
	}
	if err != nil {
		return err
	}
	var boot storeBoot
	if err := json.Unmarshal(raw, &boot); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: boot.Level}))
	if err := process.LowerPriority(boot.Nice); err != nil {
		log.Warn("the store's priority is as high as that of the traffic", "error", err)
	}
	if err := followClock(boot.ClockFile); err != nil {
		return err
	}
	debug.SetMemoryLimit(boot.MemoryBytes)

	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	k := newKeeper(boot.Keeper, log)
	server := k.server(boot.Build)
	var parts sync.WaitGroup
	parts.Go(func() { k.listen(ctx, server) })
	parts.Go(func() { returnMemory(ctx, quietPeriod) })
	kept := make(chan error, 1)
	go func() { kept <- k.Run(ctx) }()
	served := server.ServeConn(ctx, conn)
	stop()
	parts.Wait()
	return errors.Join(served, <-kept)
}

// runningProgram is a file under which Linux offers the running program, even
// if its own file has been replaced.
const runningProgram = "/proc/self/exe"

// programPath returns the path of this program, to start it once more. If /proc
// is not mounted, the name by which it was called has to do: a path, or what
// PATH finds under it.
func programPath(called string) (string, error) {
	return findProgram(runningProgram, called, os.Executable)
}

func findProgram(running, called string, own func() (string, error)) (string, error) {
	if _, err := os.Stat(running); err == nil {
		return running, nil
	}
	path, err := own()
	if err == nil {
		return path, nil
	}
	if found, lookErr := exec.LookPath(called); lookErr == nil && called != "" {
		return filepath.Abs(found)
	}
	return "", fmt.Errorf("find own program, which is to hold the store (mount /proc, or call it by its path, or set storage.isolation to inline): %w", err)
}
