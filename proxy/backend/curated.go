package backend

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// The files of a curated memory, in the order in which they are shown.
const (
	MemoryFile = "MEMORY.md" // what the agent keeps for itself
	UserFile   = "USER.md"   // what it keeps about its user
)

// MaxCuratedFile is how much of a file is read, in bytes.
const MaxCuratedFile = 64 << 10

var curatedFiles = [...]string{MemoryFile, UserFile}

// curatedID begins the ids of curated memories: curated:MEMORY.md:12 is a line.
const curatedID = "curated:"

// ReadFile returns one of a user's curated files as it is now. A file that does
// not exist is storage.ErrNotFound.
type ReadFile func(ctx context.Context, scope storage.Scope, name string) (content string, err error)

// Curated is a memory of two files. A conversation gets them once, as they are
// at its first turn; the ledger of the proxy repeats these bytes. Nothing is
// stored of what passes: only the memory tool writes the files.
type Curated struct {
	cfg  CuratedConfig
	deps Deps
	file ReadFile

	reading chan struct{} // full while maxReading reads are under way
	begun   conversations
	warned  sync.Map
	dropped atomic.Int64

	mu    sync.Mutex
	lines map[string]redacted // by file
}

// redacted is what was made of a file.
type redacted struct {
	content string
	lines   []string
}

// maxReading limits the reads under way. A file system that hangs costs as many
// goroutines, and each request its deadline.
const maxReading = 8

// NewCurated returns a Curated of the files in CuratedConfig.Dir or, if that is
// not set, of those that read returns. It does no I/O.
func NewCurated(cfg CuratedConfig, read ReadFile, deps Deps) (*Curated, error) {
	if err := errors.Join(cfg.Validate(), deps.fill()); err != nil {
		return nil, fmt.Errorf("configure curated memory: %w", err)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultConfig().Curated.MaxBytes
	}
	if cfg.Dir != "" {
		read = directory(cfg.Dir).readFile
	}
	if read == nil {
		return nil, errors.New("configure curated memory: no files")
	}
	return &Curated{cfg: cfg, deps: deps, file: read, reading: make(chan struct{}, maxReading), lines: map[string]redacted{}}, nil
}

// Loaded reports true: there is nothing to load.
func (c *Curated) Loaded(storage.Scope) (loaded bool, since time.Time) { return true, time.Time{} }

// Enqueue drops the turn.
func (c *Curated) Enqueue(persist.Turn) error {
	c.dropped.Add(1)
	return nil
}

// Dropped returns how many turns were not stored.
func (c *Curated) Dropped() int64 { return c.dropped.Load() }

// Recall returns the lines of both files at the first turn of a conversation,
// and nothing later.
func (c *Curated) Recall(ctx context.Context, r recall.Request) (recall.Result, error) {
	out := recall.Result{Vectors: recall.VectorsOff}
	if !c.first(&r) {
		return out, nil
	}
	began := c.deps.Now()
	memories, err := c.snapshot(ctx, r.Scope)
	if err != nil {
		return out, err
	}
	c.begun.add(&r)
	out.Considered = len(memories)
	for _, m := range memories {
		if r.Allow == nil || r.Allow(m.Kind, m.Tags) {
			out.Memories = append(out.Memories, recall.Scored{Memory: m, Score: 1})
		}
	}
	out.Took = c.deps.Now().Sub(began)
	return out, nil
}

// maxSetup is how many earlier user messages a first turn may have: some agents
// begin with messages of their own.
const maxSetup = 2

// first reports whether a request is a conversation's first: it carries neither
// curated lines nor, but for what an agent says first, earlier messages.
func (c *Curated) first(r *recall.Request) bool {
	for id := range r.VisibleIDs {
		if strings.HasPrefix(id, curatedID) {
			return false
		}
	}
	return r.Previous == nil || len(r.VisibleChains) <= maxSetup && !c.begun.has(r)
}

// snapshot reads the files, and returns when ctx ends whether they are read or
// not.
func (c *Curated) snapshot(ctx context.Context, scope storage.Scope) ([]storage.Memory, error) {
	late := fmt.Errorf("%w: curated files are not read yet", recall.ErrTimeout)
	select {
	case c.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, late
	}
	type read struct {
		memories []storage.Memory
		err      error
	}
	done := make(chan read, 1)
	go func() {
		defer func() { <-c.reading }()
		defer func() {
			if recover() != nil { // its value may hold content
				done <- read{err: errors.New("curated files: panic")}
			}
		}()
		memories, err := c.read(ctx, scope)
		done <- read{memories, err}
	}()
	select {
	case r := <-done:
		return r.memories, r.err
	case <-ctx.Done():
		return nil, late
	}
}

// read returns the lines of both files, as many as there is room for.
func (c *Curated) read(ctx context.Context, scope storage.Scope) ([]storage.Memory, error) {
	var out []storage.Memory
	room := c.cfg.MaxBytes
	for _, name := range curatedFiles {
		content, err := c.file(ctx, scope, name)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, line := range c.linesOf(name, content) {
			if room -= len(line) + len(name) + len("- : \n"); room < 0 {
				c.warnOnce(name, "longer than a conversation may carry")
				return out, nil
			}
			out = append(out, storage.Memory{
				ID: curatedID + name + ":" + strconv.Itoa(i+1), Kind: storage.KindCurated, Text: line, Trust: 1, Source: "curated",
				Provenance: storage.Provenance{Speaker: name},
			})
		}
	}
	return out, nil
}

// linesOf returns the redacted lines of a file. They are kept until the file is
// another: redaction takes longer than reading.
func (c *Curated) linesOf(name, content string) []string {
	c.mu.Lock()
	kept := c.lines[name]
	c.mu.Unlock()
	if kept.content == content {
		return kept.lines
	}
	text := content
	if len(text) > MaxCuratedFile {
		c.warnOnce(name, "longer than 64 KiB")
		text = text[:MaxCuratedFile]
		text = text[:max(strings.LastIndexByte(text, '\n'), 0)] // not half a line, which may hide half a secret
	}
	kept = redacted{content, splitLines(c.deps.Redact(strings.ToValidUTF8(text, "")))}
	c.mu.Lock()
	c.lines[name] = kept
	c.mu.Unlock()
	return kept.lines
}

// splitLines returns the lines with text, long ones in pieces that a block can
// show.
func splitLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for len(line) > maxText {
			at := strings.LastIndexByte(line[:maxText], ' ')
			if at <= 0 {
				at = len(strings.ToValidUTF8(line[:maxText], ""))
			}
			lines = append(lines, line[:at])
			line = strings.TrimSpace(line[at:])
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func (c *Curated) warnOnce(file, reason string) {
	if _, again := c.warned.LoadOrStore(file+reason, true); !again {
		c.deps.Log.Warn("the end of a curated file is left out", "file", file, "reason", reason)
	}
}
