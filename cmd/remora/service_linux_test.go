package main

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/storage/process"
)

// TestReloadsAtHangup: a SIGHUP without a terminal that was closed has the
// configuration read again. What can change does, what can't is named, and a
// file with problems changes nothing.
func TestReloadsAtHangup(t *testing.T) {
	hangups := make(chan os.Signal, 1) // else what is started ignores hangups if nohup started this
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	file := filepath.Join(t.TempDir(), "config.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{}`)
	s := startServeWith(t, &proxytest.LLM{}, func(c *exec.Cmd) {
		c.Args = append(c.Args, "--config", file)
		c.Env = append(c.Env, "REMORA_API_LISTEN=off", "REMORA_STORAGE_ISOLATION=inline")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
	})
	reload := func(until string) string {
		t.Helper()
		s.signal(syscall.SIGHUP)
		line := s.until(until)
		if line == "" {
			t.Fatalf("the log has no line with %q", until)
		}
		return line
	}
	status := func() string {
		t.Helper()
		r, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		return r.Header.Get("X-Remora-Status")
	}
	before := status()

	write("{\n \"policy\": [{\"memory\": \"off\"}],\n \"recall\": {\"topK\": \"hush\"}}")
	if line := reload("the configuration was not reloaded"); !strings.Contains(line, "recall.topK") || !strings.Contains(line, "config.json:3") || strings.Contains(line, "hush") {
		t.Errorf("a problem: %s", line)
	}
	if got := status(); got != before {
		t.Errorf("a file with problems has changed %s to %s", before, got)
	}

	write(`{"policy": [{"memory": "off"}], "recall": {"topK": 3}, "listen": "127.0.0.1:1"}`)
	if line := reload("the configuration was reloaded"); !strings.Contains(line, `changed=policy`) {
		t.Errorf("changed: %s", line)
	}
	if line := s.until("take a restart"); !strings.Contains(line, `settings=recall.topK`) {
		t.Errorf("waiting: %s", line)
	}
	if got := status(); got == before || strings.HasPrefix(got, "empty") {
		t.Errorf("with a policy that turns memory off: %s", got)
	}

	write(`{}`)
	reload("the configuration was reloaded")
	if got := status(); got != before && !strings.HasPrefix(got, "empty") {
		t.Errorf("without the policy: %s, before %s", got, before)
	}
	write(`{"log": {"level": "error"}}`)
	reload("the configuration was reloaded")
	write(`{"log": {"level": "error"}, "recall": {"topK": 3}}`)
	reload("the configuration was reloaded") // an answer, whatever the level
	if line := s.until("take a restart"); !strings.Contains(line, `settings=recall.topK`) {
		t.Errorf("waiting at the level error: %s", line)
	}
	s.signal(syscall.SIGTERM)
	if line := s.until("level=INFO"); line != "" {
		t.Errorf("logged at the level error: %s", line)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestSystemd starts a Remora as systemd does: with sockets that are open
// already, and one to report to.
func TestSystemd(t *testing.T) {
	dir := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	var files []*os.File
	var urls []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		files, urls = append(files, f), append(urls, "http://"+l.Addr().String())
	}
	s := startServeWith(t, &proxytest.LLM{}, func(c *exec.Cmd) {
		if err := os.Symlink(c.Path, filepath.Join(dir, "remora")); err != nil {
			t.Fatal(err)
		}
		c.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, filepath.Join(dir, "remora")}, c.Args[1:]...)
		c.Path, c.ExtraFiles = "/bin/sh", files
		c.Env = append(c.Env, "LISTEN_FDS=3", "LISTEN_FDNAMES=remora.socket:control:health", "REMORA_STORAGE_ISOLATION=inline",
			"NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=20000")
	})
	s.signal(syscall.SIGHUP) // at once
	for _, f := range files {
		_ = f.Close()
	}
	if s.url != urls[0] {
		t.Errorf("it listens on %s, want the socket %s", s.url, urls[0])
	}
	for _, url := range []string{s.url + listener.LivePath, urls[1] + "/livez", urls[2] + "/livez"} {
		r, err := http.Get(url)
		if err != nil || !listener.IsLive(r) {
			t.Fatalf("%s: %v", url, err)
		}
		_ = r.Body.Close()
	}
	hear := func() string {
		b := make([]byte, 100)
		_ = manager.SetReadDeadline(time.Now().Add(patience))
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if first, second := hear(), hear(); first != "READY=1" || second != "WATCHDOG=1" {
		t.Errorf("it reports %s, %s", first, second)
	}
	if s.until("the configuration was reloaded") == "" {
		t.Error("a reload right after the start has no answer")
	}
	s.signal(syscall.SIGTERM)
	for state := hear(); state != "STOPPING=1"; state = hear() {
		if state != "WATCHDOG=1" {
			t.Errorf("it reports %s", state)
		}
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestSecondServe starts a Remora whose temporary files are in its data
// directory, and then others with the same one, on its address and on another.
// They leave the files alone; the next one alone empties the directory.
func TestSecondServe(t *testing.T) {
	var args, env []string
	prepare := func(c *exec.Cmd) {
		if args == nil {
			args, env = c.Args, append(c.Env, "REMORA_STORAGE_ISOLATION=inline", "REMORA_API_LISTEN=off", "TMPDIR="+t.TempDir()+"/none")
		}
		c.Args, c.Env = slices.Clone(args), env
	}
	first := startServeWith(t, &proxytest.LLM{}, prepare)
	data := args[len(args)-1]
	kept := filepath.Join(data, "tmp", "remora-import-1")
	eventually(t, "the place for temporary files", func() bool { return os.WriteFile(kept, nil, 0o600) == nil })
	eventually(t, "the first answers commands", func() bool {
		running, err := process.Dial(data, process.FrontSocket, readBuild().String())
		if err != nil {
			return false
		}
		return running.Close() == nil
	})
	at := slices.Index(args, "--listen") + 1
	same := &exec.Cmd{Path: first.cmd.Path, Args: slices.Clone(args), Env: env}
	same.Args[at] = strings.TrimPrefix(first.url, "http://")
	if out, err := same.CombinedOutput(); err == nil || !strings.Contains(string(out), "is another Remora running?") {
		t.Errorf("on the same address: %v, %s", err, out)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("on the same address: %v", err)
	}
	other := startServeWith(t, &proxytest.LLM{}, prepare)
	if code, err := other.ask(http.DefaultClient); err != nil || code != http.StatusOK {
		t.Errorf("on another address: code %d, %v", code, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("on another address: %v", err)
	}
	for _, s := range []*served{other, first} {
		s.signal(syscall.SIGTERM)
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	}
	next := startServeWith(t, &proxytest.LLM{}, prepare)
	if code, err := next.ask(http.DefaultClient); err != nil || code != http.StatusOK {
		t.Errorf("after both: code %d, %v", code, err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after both, the directory is not emptied: %v", err)
	}
}
