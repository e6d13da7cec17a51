package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

type runningServer struct {
	*listener.Server
	stop context.CancelFunc
	done chan error
}

func runServer(t *testing.T, h http.Handler, change func(*listener.Config)) runningServer {
	t.Helper()
	cfg := listener.DefaultConfig()
	cfg.Listen, cfg.Drain = "127.0.0.1:0", patience
	if change != nil {
		change(&cfg)
	}
	s := listener.New(h, cfg, nil)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := runningServer{s, stop, make(chan error, 1)}
	go func() { r.done <- s.Serve(ctx) }()
	t.Cleanup(stop)
	return r
}

func TestShutdownLetsStreamsFinish(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			next := make(chan struct{})
			up := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for i := range 3 {
					_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
					_ = http.NewResponseController(w).Flush()
					<-next
				}
			}))
			s := runServer(t, hop{p: hopPlane(t, up)}, nil)
			protocols := new(http.Protocols)
			protocols.SetHTTP1(proto == "HTTP/1.1")
			protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
			client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
			defer client.CloseIdleConnections()
			resp, err := client.Get("http://" + s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			buf := make([]byte, len("data: 0\n\n"))
			if _, err := io.ReadFull(resp.Body, buf); err != nil {
				t.Fatal(err)
			}
			s.stop()
			for { // the door is closed for others
				conn, err := net.Dial("tcp", s.Addr().String())
				if err != nil {
					break
				}
				conn.Close()
			}
			close(next)
			rest, err := io.ReadAll(resp.Body)
			if got, want := string(buf)+string(rest), "data: 0\n\ndata: 1\n\ndata: 2\n\n"; err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			if err := wait(t, s.done); err != nil {
				t.Errorf("Serve: got %v, want a clean drain", err)
			}
		})
	}
}

func TestShutdownWaitsForUpgradesAndCutsThemAtTheBound(t *testing.T) {
	open := func(t *testing.T, drain time.Duration) (runningServer, net.Conn) {
		s := runServer(t, hop{p: hopPlane(t, hopListen(t, echoUpgrade(nil)))}, func(c *listener.Config) { c.Drain = drain })
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		mustWrite(t, conn, fmt.Sprintf(upgradeHead, ""))
		got := ""
		for buf := make([]byte, 1); !strings.HasSuffix(got, "hello,"); got += string(buf) {
			if _, err := io.ReadFull(conn, buf); err != nil {
				t.Fatal(err)
			}
		}
		return s, conn
	}
	t.Run("waits", func(t *testing.T) {
		s, conn := open(t, patience)
		s.stop()
		mustWrite(t, conn, "still here")
		_ = conn.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(conn); err != nil || string(got) != "still herebye" {
			t.Errorf("got %q, %v", got, err)
		}
		if err := wait(t, s.done); err != nil {
			t.Errorf("Serve: got %v, want a clean drain", err)
		}
	})
	t.Run("cuts", func(t *testing.T) {
		s, conn := open(t, 20*time.Millisecond)
		s.stop()
		if err := wait(t, s.done); err == nil || !strings.Contains(err.Error(), "1 exchanges cut") {
			t.Errorf("Serve: got %v, want an error that counts 1", err)
		}
		if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("the tunnel is still open: %v", err)
		}
	})
}

// A client that dribbles its head is cut; so is one with a head without end.
func TestHeadBounds(t *testing.T) {
	s := runServer(t, http.NotFoundHandler(), func(c *listener.Config) { c.HeaderTimeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	mustWrite(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	if got, err := io.ReadAll(conn); err != nil {
		t.Errorf("slow head: got %q, %v, want the connection closed", got, err)
	}
	s = runServer(t, http.NotFoundHandler(), func(c *listener.Config) { c.HeaderTimeout, c.MaxHeaderBytes = patience, 4<<10 })
	resp, _, err := exchangeRaw(t, s.Addr().String(), "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 16<<10)+"\r\n\r\n")
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long head: got %v, %v, want 431", resp, err)
	}
}

func TestListenNamesTheAddress(t *testing.T) {
	s := runServer(t, http.NotFoundHandler(), nil)
	cfg := listener.DefaultConfig()
	cfg.Listen = s.Addr().String()
	if err := listener.New(http.NotFoundHandler(), cfg, nil).Listen(); err == nil || !strings.Contains(err.Error(), cfg.Listen) {
		t.Errorf("got %v, want an error that names %s", err, cfg.Listen)
	}
}

func TestConfigsValidate(t *testing.T) {
	for name, err := range map[string]error{
		"transport": httpclient.DefaultTransportConfig().Validate(), "stream": DefaultStreamConfig().Validate(),
		"server": listener.DefaultConfig().Validate(), "forward": forward.DefaultConfig().Validate(),
	} {
		if err != nil {
			t.Errorf("default %s: %v", name, err)
		}
	}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"transport", httpclient.TransportConfig{ResponseHeaderTimeout: -1}.Validate(), []string{
			"dialTimeout: must be > 0", "tlsTimeout: must be > 0", "idleTimeout: must be > 0", "plainIdleTimeout: must be > 0",
			"responseHeaderTimeout: must be >= 0", "maxIdlePerHost: must be > 0",
		}},
		{"stream", StreamConfig{}.Validate(), []string{"readIdle: must be > 0", "writeIdle: must be > 0"}},
		{"server", listener.Config{Listen: "x", Drain: -1}.Validate(), []string{
			"listen: must be host:port, with an address or a name and a port up to 65535", "headerTimeout: must be > 0", "idleTimeout: must be > 0",
			"maxHeaderBytes: must be >= 4096", "drain: must be >= 0",
		}},
		{"forward", forward.Config{Listen: "0.0.0.0:1", Others: forward.OthersTunnel, Drain: -1}.Validate(), []string{
			"listen: must be a loopback address unless a token is set", "maxTunnels: must be > 0", "dialTimeout: must be > 0", "drain: must be >= 0",
		}},
		{"forward token", forward.Config{Listen: ":1", Token: "short", Others: forward.OthersRefuse, MaxTunnels: 1, DialTimeout: 1}.Validate(), []string{
			"token: must have at least 16 characters",
		}},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range unjoin(tt.err) {
			got = append(got, e.Error())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestIsLive: both doors tell that a Remora serves, the forward listener
// without its token, too; a server that answers 200 to everything does not, nor
// does either door where something else is asked for.
func TestIsLive(t *testing.T) {
	r := newRig(t)
	cfg := forward.DefaultConfig()
	cfg.Listen, cfg.Token = "127.0.0.1:0", "hush-hush-hush-hush"
	forwardAddr, _ := startForward(t, cfg, r.h, nil)
	other := hopListen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }))
	for _, test := range []struct {
		url  string
		want bool
	}{
		{r.url + listener.LivePath, true},
		{r.url + "/v1/models", false},
		{"http://" + forwardAddr + listener.LivePath, true},
		{"http://" + forwardAddr + "/", false},
		{other + listener.LivePath, false},
	} {
		answer, err := http.Get(test.url)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := listener.IsLive(answer); got != test.want {
			t.Errorf("%s: got %v, want %v", test.url, got, test.want)
		}
	}
}
