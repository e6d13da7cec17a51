package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/proxytest"
)

// inMemory has all temporary directories of a test made on a tmpfs, and returns
// one.
func inMemory(t *testing.T) string {
	t.Helper()
	t.Setenv("TMPDIR", "/dev/shm")
	return t.TempDir()
}

// A Remora whose memories will be lost says so: in its log, to probes, in its
// metrics, to the control plane and to the doctor.
func TestMemoriesThatDoNotLast(t *testing.T) {
	dir, token := filepath.Join(inMemory(t), "data"), strings.Repeat("t", 16)
	control, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	health, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := startServeWith(t, &proxytest.LLM{}, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "--data", dir)
		cmd.Env = append(cmd.Env, "REMORA_API_LISTEN="+control, "REMORA_HEALTH_LISTEN="+health, "REMORA_API_TOKEN="+token, "REMORA_STORAGE_KEY_FILE="+filepath.Join(t.TempDir(), "key"))
	})
	line := s.until("level=WARN msg=\"memories will be lost")
	for _, want := range []string{"directory=" + dir + " ", `reason="it is on a file system in memory (tmpfs)`, `fix="Take a directory on a disk`} {
		if !strings.Contains(line, want) {
			t.Errorf("the log says %q, without %s", line, want)
		}
	}
	ask := func(url string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, url := range []string{health + "/readyz", control + "/readyz"} {
		eventually(t, "a warning of "+url, func() bool {
			return strings.HasPrefix(ask(url), "ok\nwarning: memories will be lost: their directory does not last: it is on a file system in memory")
		})
	}
	if text := ask(health + "/metrics"); !strings.Contains(text, "\nremora_store_ephemeral 1\n") {
		t.Error("the metrics don't show it")
	}
	var numbers struct {
		System struct {
			Ephemeral string `json:"store_ephemeral"`
		}
	}
	if text := ask(control + "/v1/metrics"); json.Unmarshal([]byte(text), &numbers) != nil || !strings.HasPrefix(numbers.System.Ephemeral, "it is on a file system in memory") {
		t.Errorf("the control plane says %s", text)
	}
	var out bytes.Buffer
	_ = run(t.Context(), []string{"doctor", "--data", dir, "--upstream", "http://" + control}, environment("HOME", t.TempDir()), nil, &out, io.Discard)
	if want := "warning  lifetime: the memories in " + dir + " will be lost: it is on a file system in memory (tmpfs), which ends with the pod, the container or the machine\n         -> Take a directory"; !strings.Contains(out.String(), want) {
		t.Errorf("the doctor says\n%s", out.String())
	}
}

// The demo keeps its memories in a temporary directory on purpose.
func TestDemoDoesNotWarn(t *testing.T) {
	inMemory(t)
	var said bytes.Buffer
	if err := run(t.Context(), []string{"demo"}, environment("HOME", t.TempDir()), nil, io.Discard, &said); err != nil || said.Len() > 0 {
		t.Errorf("%v: %s", err, said.String())
	}
}

// What another server keeps is not lost with this directory.
func TestMemoryDir(t *testing.T) {
	for _, test := range []struct {
		mode        backend.Mode
		files, want string
	}{
		{backend.ModeLocal, "", "/data"},
		{backend.ModeGateway, "", ""},
		{backend.ModeCurated, "", "/data"},
		{backend.ModeCurated, "/files", "/files"},
	} {
		var c config.Config
		c.Storage.Dir, c.Backend.Mode, c.Backend.Curated.Dir = "/data", test.mode, test.files
		if got := memoryDir(c); got != test.want {
			t.Errorf("%s, %q: got %q, want %q", test.mode, test.files, got, test.want)
		}
	}
}
