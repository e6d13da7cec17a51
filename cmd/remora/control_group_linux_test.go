package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// controlGroup is one of either version of Linux' control groups that limits memory, or none, where none can be made.
type controlGroup struct {
	dir     string // "" = none
	version int
}

func newGroup(t *testing.T, what string, limit int64) *controlGroup {
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
			for range 100 { // until its last process is buried
				if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		return &controlGroup{dir, g.version}
	}
	t.Log("no control group can be made here: memory is not limited")
	return &controlGroup{}
}

// add moves a process into the group. What it has already counts elsewhere.
func (g *controlGroup) add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
}

// command runs a program in the group.
func (g *controlGroup) command(line []string) *exec.Cmd {
	if g.dir == "" {
		return exec.Command(line[0], line[1:]...)
	}
	script := `echo $$ >"$0/cgroup.procs" && exec "$@"`
	return exec.Command("sh", append([]string{"-c", script, g.dir}, line...)...)
}

func (g *controlGroup) figure(file, name string) int64 {
	b, _ := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// anonymous is the group's memory that is not of files, which nothing but ending a process frees.
func (g *controlGroup) anonymous() int64 {
	if g.version == 1 {
		return g.figure("memory.stat", "total_rss")
	}
	return g.figure("memory.stat", "anon")
}

func (g *controlGroup) kills() int64 {
	if g.version == 1 {
		return g.figure("memory.oom_control", "oom_kill")
	}
	return g.figure("memory.events", "oom_kill")
}

func (g *controlGroup) String() string {
	return []string{"not limited", "limited by control group, version 1", "limited by control group, version 2"}[g.version]
}
