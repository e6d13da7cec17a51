package storagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Group is a Linux control group, of version 1 or 2, that limits memory; or
// none, if none can be made.
type Group struct {
	dir     string // "" = none
	version int
}

// NewGroup makes a group. If it cannot, Limited reports false, or the test
// fails if CI is "true".
func NewGroup(t *testing.T, what string, limit int64) *Group {
	t.Helper()
	name := fmt.Sprintf("remora-test-%d-%s", os.Getpid(), what)
	for _, g := range []struct {
		root, file string
		version    int
	}{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", 1}, {"/sys/fs/cgroup", "memory.max", 2}} {
		dir := filepath.Join(g.root, name)
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, g.file), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
			_ = os.Remove(dir)
			continue
		}
		t.Cleanup(func() {
			for range 100 { // until its last process is reaped
				if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		return &Group{dir, g.version}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no control group can be made here to limit memory")
	}
	t.Log("no control group can be made here: memory is not limited")
	return &Group{}
}

// Limited reports whether there is a group.
func (g *Group) Limited() bool { return g.dir != "" }

// Add moves a process into the group. The memory that it has already is not
// counted.
func (g *Group) Add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
}

// Command runs a program in the group.
func (g *Group) Command(line ...string) *exec.Cmd {
	if g.dir == "" {
		return exec.CommandContext(context.Background(), line[0], line[1:]...)
	}
	script := `echo $$ >"$0/cgroup.procs" && exec "$@"`
	return exec.CommandContext(context.Background(), "sh", append([]string{"-c", script, g.dir}, line...)...)
}

func (g *Group) figure(file, name string) int64 {
	b, _ := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// Anonymous returns the group's memory that is not backed by files, which only
// the end of a process frees.
func (g *Group) Anonymous() int64 {
	if g.version == 1 {
		return g.figure("memory.stat", "total_rss")
	}
	return g.figure("memory.stat", "anon")
}

// Kills counts the processes that the kernel has killed for lack of memory.
func (g *Group) Kills() int64 {
	if g.version == 1 {
		return g.figure("memory.oom_control", "oom_kill")
	}
	return g.figure("memory.events", "oom_kill")
}

func (g *Group) String() string {
	return []string{"not limited", "limited by control group, version 1", "limited by control group, version 2"}[g.version]
}

// Raced reports whether the race detector is on, which takes several times the
// memory.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Resident returns the resident memory of a process in bytes, 0 once it has
// ended.
func Resident(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
