package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// terminal returns both ends of a new pseudo-terminal: the person's, and the
// programs'.
func terminal(t *testing.T) (person, programs *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	programs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = programs.Close() })
	return person, programs
}

// on starts a program on a terminal of its own. Its standard error stays as it
// is.
func on(tty *os.File) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		c.Stdin, c.Stdout = tty, tty
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
}

// A terminal that is closed ends Remora as SIGTERM does: what is in flight is
// finished. The shell's SIGHUP after the system's is no second thought.
func TestHangupDrains(t *testing.T) {
	heard := make(chan os.Signal, 1) // what a test under nohup ignores, those that it starts ignore too
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	person, programs := terminal(t)
	s := startServeWith(t, &proxytest.LLM{Delay: 500 * time.Millisecond, Answer: func(proxytest.Recorded) proxytest.Reply {
		return proxytest.Reply{Text: "an answer of several words that takes a while"}
	}}, on(programs))
	_ = programs.Close()
	resp, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_ = person.Close() // the system sends SIGHUP
	if s.until("msg=stopping") == "" {
		t.Fatal("it ended without a word")
	}
	s.signal(syscall.SIGHUP)
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(answer), "[DONE]") {
		t.Errorf("the stream was cut: %v after %d bytes", err, len(answer))
	}
	if s.until("msg=stopped") == "" {
		t.Error("it did not tell what it had done")
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// At the first start, a person at a terminal is shown how to use the agents that
// are installed: at most three, and with what this Remora has from its command
// line and its environment, which another terminal does not have. Nothing of it
// is in the log, and a second start shows nothing.
func TestFirstStartOffersAgents(t *testing.T) {
	person, programs := terminal(t)
	bin := t.TempDir()
	for _, name := range []string{"claude", "codex", "gemini", "qwen"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var again []string
	s := startServeWith(t, &proxytest.LLM{}, func(c *exec.Cmd) {
		on(programs)(c)
		c.Env = append(c.Env, "PATH="+bin, "REMORA_API_LISTEN=off", "REMORA_STORAGE_ISOLATION=inline")
		again = c.Args
	})
	shown := bufio.NewReader(person)
	read := func() string {
		line, err := shown.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	flags := " --listen " + strings.TrimPrefix(s.url, "http://") + " --data " + again[slices.Index(again, "--data")+1]
	for _, want := range []string{
		"To send an agent's requests through it, in another terminal:", "remora wrap" + flags + " -- codex", "remora wrap" + flags + " -- claude",
		"remora wrap" + flags + " -- qwen", "remora env lists what else it knows.",
	} {
		if got := read(); got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
	}
	if s.until("memory is on") == "" { // the store is there by then
		t.Fatal("no memory")
	}
	s.signal(syscall.SIGTERM)
	if log, err := io.ReadAll(s.lines); err != nil || strings.Contains(string(log), "remora wrap") {
		t.Errorf("in the log: %v\n%s", err, log)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	second := startServeWith(t, &proxytest.LLM{}, func(c *exec.Cmd) {
		on(programs)(c)
		c.Args = again
		c.Env = s.cmd.Env
	})
	second.signal(syscall.SIGTERM)
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("the second ended with %v", err)
	}
	_ = programs.Close()
	if rest, _ := io.ReadAll(shown); len(rest) > 0 { // it ends with EIO
		t.Errorf("shown again: %q", rest)
	}
}

// The demo has colours on a terminal that can show them.
func TestDemoColours(t *testing.T) {
	for name, test := range map[string]struct {
		env  []string
		want bool
	}{
		"a terminal": {env: []string{"TERM", "xterm"}, want: true},
		"a dumb one": {env: []string{"TERM", "dumb"}},
		"unwanted":   {env: []string{"TERM", "xterm", "NO_COLOR", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			person, programs := terminal(t)
			var shown []byte
			read := make(chan struct{})
			go func() {
				defer close(read)
				shown, _ = io.ReadAll(person) // an error once nobody has the other end
			}()
			if err := run(t.Context(), []string{"demo"}, environment(append(test.env, "HOME", t.TempDir())...), nil, programs, io.Discard); err != nil {
				t.Error(err)
			}
			_ = programs.Close()
			<-read
			if got := strings.Contains(string(shown), "\x1b["); got != test.want || len(shown) == 0 {
				t.Errorf("%d bytes, with colours: %v", len(shown), got)
			}
		})
	}
}
