//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/proxytest"
)

// served is a Remora of its own process, with its standard error at the reading
// end of a pipe.
type served struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	log   *os.File
	lines *bufio.Reader
}

// startServe starts a Remora in front of llm and returns once it serves.
func startServe(t *testing.T, llm *proxytest.LLM) *served {
	t.Helper()
	return startServeWith(t, llm, func(*exec.Cmd) {})
}

// startServeWith is startServe, with a chance to change how it is started.
func startServeWith(t *testing.T, llm *proxytest.LLM, prepare func(*exec.Cmd)) *served {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(llm)
	t.Cleanup(upstream.Close)
	home := t.TempDir()
	s := &served{t: t, log: read, lines: bufio.NewReader(read)}
	s.cmd = &exec.Cmd{
		Path: self, Args: []string{"remora", "serve", "--listen", "127.0.0.1:0", "--upstream", upstream.URL, "--data", home + "/data"},
		Env: append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "REMORA_LOG_FORMAT=text"), Stderr: write,
	}
	prepare(s.cmd)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait(); _ = read.Close() })
	_, rest, found := strings.Cut(s.until("msg=\"remora is listening\""), "url=")
	if !found {
		t.Fatal("it does not say where it listens")
	}
	s.url, _, _ = strings.Cut(rest, " ")
	return s
}

// until reads the log up to a line that holds text, and returns that; "" where
// the log ends before.
func (s *served) until(text string) string {
	for {
		line, err := s.lines.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			return ""
		}
	}
}

func (s *served) signal(what syscall.Signal) {
	if err := s.cmd.Process.Signal(what); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request and returns its status.
func (s *served) ask(client *http.Client) (int, error) {
	resp, err := client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// A collector that accepts connections and answers nothing delays the end of
// Remora by less than a second: by exportPatience.
func TestEndsWhenTheCollectorHangs(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			sink, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			s := startServeWith(t, &proxytest.LLM{}, func(c *exec.Cmd) {
				c.Env = append(c.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+sink.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_LOGS_EXPORTER=otlp")
			})
			go func() { _, _ = io.Copy(io.Discard, s.log) }()
			if code, err := s.ask(http.DefaultClient); err != nil || code != http.StatusOK {
				t.Fatalf("it answers %d, %v", code, err)
			}
			began := time.Now()
			s.signal(syscall.SIGTERM)
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %s to end", took)
			}
		})
	}
}

// The reader of the log may end, as a pager does, or a collector that is
// restarted. Requests go on.
func TestServesWhenNobodyReadsTheLog(t *testing.T) {
	s := startServe(t, &proxytest.LLM{})
	_ = s.log.Close()
	for range 3 {
		if code, err := s.ask(http.DefaultClient); err != nil || code != http.StatusOK {
			t.Fatalf("without a reader of its log it answers %d, %v", code, err)
		}
	}
	s.signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// The reader of the log may stop reading, as a terminal does at Ctrl-S.
// Requests go on, and Remora ends when it is told to.
func TestServesWhenTheLogStandsStill(t *testing.T) {
	s := startServe(t, &proxytest.LLM{})
	one := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: time.Minute}
	defer one.CloseIdleConnections()
	for n := range 1000 { // 200 KiB of lines, and a pipe holds 64
		if code, err := s.ask(one); err != nil || code != http.StatusOK {
			t.Fatalf("request %d is answered %d, %v", n, code, err)
		}
	}
	s.signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
