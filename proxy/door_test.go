//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// doorAnswers are handlers by path. What they answer is to be the same at a door and at net/http's server.
var doorAnswers = map[string]http.HandlerFunc{
	"/nothing": func(http.ResponseWriter, *http.Request) {},
	"/short":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello <b>") },
	"/held": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
		_, _ = io.WriteString(w, "a")
		_, _ = io.WriteString(w, strings.Repeat("b", mostHeld-1))
	},
	"/overheld": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a")
		_, _ = io.WriteString(w, strings.Repeat("b", mostHeld))
	},
	"/length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = []string{"10000"}
		_, _ = io.WriteString(w, strings.Repeat("c", 10000))
	},
	"/toomuch": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "abc")
		if _, err := io.WriteString(w, "d"); !errors.Is(err, http.ErrContentLength) {
			panic("too much was taken")
		}
	},
	"/toolittle": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "abc")
	},
	"/badlength": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "x")
		_, _ = io.WriteString(w, "abc")
	},
	"/events": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	},
	"/large": func(w http.ResponseWriter, _ *http.Request) {
		for range 5 {
			_, _ = io.WriteString(w, strings.Repeat("d", 20_000))
			_ = http.NewResponseController(w).Flush()
		}
	},
	"/headfirst": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-B", "late")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "tea")
	},
	"/fields": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-B"] = []string{" 1 ", "2\r\n3", ""}
		w.Header()["x-a"] = []string{"0"}
		w.Header()["bad name"] = []string{"0"}
		w.Header()["Content-Encoding"] = []string{"gzip"}
		_, _ = io.WriteString(w, "z")
	},
	"/unknown":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) },
	"/nocontent":  func(w http.ResponseWriter, _ *http.Request) { bodiless(w, http.StatusNoContent) },
	"/unmodified": func(w http.ResponseWriter, _ *http.Request) { bodiless(w, http.StatusNotModified) },
	"/twice": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusOK)
	},
	"/hints": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		_, _ = io.WriteString(w, "ok")
	},
	"/close": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "bye")
	},
	"/trailers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-T, Content-Length, x-u")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-T", "1")
		w.Header().Add("X-U", "2")
		w.Header().Set(http.TrailerPrefix+"X-V", "3")
	},
	"/unannounced": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+"X-V", "3")
	},
	"/abort": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "some")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "more")
		panic(http.ErrAbortHandler)
	},
	"/panic": func(http.ResponseWriter, *http.Request) { panic("x") },
	"/echo": func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			panic("a body has no end")
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %d %v %q", r.Method, r.RequestURI, r.Host, r.ContentLength, err, b)
	},
	"/unread": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no thanks") },
	"/closed": func(w http.ResponseWriter, r *http.Request) {
		_ = r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			panic("read after close")
		}
		_, _ = io.WriteString(w, "closed")
	},
	"/duplex": func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	},
}

func bodiless(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "text/x")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(code)
	if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
		panic("a body where none is allowed")
	}
}

// answersAt is all that a server says to raw and to requests that follow, until it hangs up or says nothing more.
func answersAt(t *testing.T, s served, raw string) string {
	t.Helper()
	conn := s.dial(t)
	_, _ = io.WriteString(conn, raw+"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n") // it may hang up in between
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("it never hangs up")
	}
	return unchunked(regexp.MustCompile(`Date: [^\r]*`).ReplaceAllString(string(b), "Date: now"))
}

// unchunked is b without the frames of chunks: where they are cut is the server's to choose. It tells of bodies that break off.
func unchunked(b string) string {
	var out strings.Builder
	for b != "" {
		head, rest, _ := strings.Cut(b, "\r\n\r\n")
		br := bufio.NewReader(strings.NewReader(b))
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.TransferEncoding == nil {
			out.WriteString(head + "\r\n\r\n")
			if b = rest; resp != nil && resp.ContentLength > 0 && resp.ContentLength <= int64(len(rest)) {
				out.WriteString(rest[:resp.ContentLength])
				b = rest[resp.ContentLength:]
			} else if err != nil {
				out.WriteString(rest)
				b = ""
			}
			continue
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Fprintf(&out, "%s\r\n\r\n%s %v %v\n", head, body, resp.Trailer, err)
		left, _ := io.ReadAll(br)
		b = string(left)
	}
	return out.String()
}

func TestDoorWritesAsNetHTTPDoes(t *testing.T) { onEachWire(t, doorWritesAsNetHTTPDoes) }

func doorWritesAsNetHTTPDoes(t *testing.T, on wire) {
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := doorAnswers[r.URL.Path]; ok {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	})
	here, there := on.serve(t, true, mux, nil), on.serve(t, false, mux, nil)
	for path := range doorAnswers {
		for _, body := range []string{"", "hello", strings.Repeat("e", 9000), strings.Repeat("f", 300<<10)} {
			t.Run(fmt.Sprintf("%s/%d", path[1:], len(body)), func(t *testing.T) {
				t.Parallel()
				raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
				if body == "" {
					raw = fmt.Sprintf("GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path)
				}
				want, got := answersAt(t, there, raw), answersAt(t, here, raw)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-net/http +door):\n%.3000s", diff)
				}
			})
		}
	}
}

// Whatever follows, no byte is lost and none is read twice.
func TestDoorHandsOnWhatIsOutOfTheOrdinary(t *testing.T) { onEachWire(t, doorHandsOn) }

func doorHandsOn(t *testing.T, on wire) {
	var mu sync.Mutex
	var own []bool
	s := on.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on.secure != (r.TLS != nil && r.TLS.HandshakeComplete) {
			t.Errorf("%s: TLS %v", r.Method, r.TLS)
		}
		b, _ := io.ReadAll(r.Body)
		_, mine := w.(*doorWriter)
		mu.Lock()
		own = append(own, mine)
		mu.Unlock()
		_, _ = fmt.Fprintf(w, "%s %s", r.Method, b)
	}), nil)
	conn := s.dial(t)
	br := bufio.NewReader(conn)
	ask := func(want string, parts ...string) {
		t.Helper()
		for i, p := range parts {
			if i > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			if _, err := io.WriteString(conn, p); err != nil {
				t.Fatal(err)
			}
		}
		for w := range strings.SplitSeq(want, ",") {
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := io.ReadAll(resp.Body); string(b) != w {
				t.Fatalf("got %q, want %q", b, w)
			}
		}
	}
	const post = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n"
	ask("POST ab", post+"ab")
	ask("POST cd", post, "c", "d")
	ask("POST ef,POST gh,GET ", post+"ef"+post+"gh"+"GET /y HTTP/1.1\r\nHost: h\r\n\r\n")
	ask("POST ij", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nij\r\n0\r\n\r\n")
	ask("POST kl", post+"kl")
	if want := []bool{true, true, true, true, true, false, false}; !cmp.Equal(want, own) {
		t.Errorf("served by the door: %v, want %v", own, want)
	}

	conn = s.dial(t)
	br = bufio.NewReader(conn)
	ask("POST mn", post[:20], post[20:]+"mn") // a head in two pieces
	if own[len(own)-1] {
		t.Error("half a head was taken for a whole one")
	}
}

// A client that leaves ends its request's context, and one that only sends ahead does not.
func TestDoorNoticesWhoLeaves(t *testing.T) { onEachWire(t, doorNoticesWhoLeaves) }

func doorNoticesWhoLeaves(t *testing.T, on wire) {
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	release := make(chan struct{})
	s := on.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, own := w.(*doorWriter); !own {
			t.Error("net/http serves it")
		}
		_, _ = io.Copy(io.Discard, r.Body)
		began <- struct{}{}
		select {
		case <-r.Context().Done():
			ended <- r.Context().Err()
		case <-release:
			_, _ = io.WriteString(w, r.URL.Path)
		}
	}), nil)
	const post = "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
	for _, leave := range []func(net.Conn){
		func(c net.Conn) { _ = c.Close() },
		func(c net.Conn) { _ = socketBeneath(c).Close() },
		func(c net.Conn) { _ = socketBeneath(c).SetLinger(0); _ = socketBeneath(c).Close() },
		func(c net.Conn) { _ = closeWrite(c) },
	} {
		conn := s.dial(t)
		_, _ = fmt.Fprintf(conn, post, 0)
		wait(t, began)
		time.Sleep(10 * watchEvery)
		leave(conn)
		if err := wait(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}
	early := s.dial(t) // leaves behind what it has sent ahead
	_, _ = fmt.Fprintf(early, post+"GET /0 HTTP/1.1\r\n", 0)
	wait(t, began)
	_ = closeWrite(early)
	if err := wait(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}

	conn := s.dial(t)
	br := bufio.NewReader(conn)
	_, _ = fmt.Fprintf(conn, post, 1)
	wait(t, began)
	time.Sleep(10 * watchEvery) // it is watched now
	_, _ = fmt.Fprintf(conn, post, 2)
	time.Sleep(10 * watchEvery)
	release <- struct{}{}
	for i := 1; i < 4; i++ {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != fmt.Sprintf("/%d", i) {
			t.Fatalf("got %q", b)
		}
		if i == 3 {
			break
		}
		if i == 2 { // after a watch that was told to end
			_, _ = fmt.Fprintf(conn, post, 3)
		}
		wait(t, began)
		time.Sleep(10 * watchEvery)
		release <- struct{}{}
	}
}

// A door that closes ends connections that wait, and lets a request under way finish, whose answer says so.
func TestDoorCloses(t *testing.T) {
	onEachWire(t, func(t *testing.T, on wire) {
		for _, pause := range []time.Duration{0, 50 * time.Millisecond} { // with none it may not have begun to wait
			t.Run(pause.String(), func(t *testing.T) { closeDoor(t, on, pause) })
		}
	})
}

func closeDoor(t *testing.T, on wire, pause time.Duration) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	s := on.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "done")
	}), func(c *ServerConfig) { c.Drain = patience })
	idle, busy := s.dial(t), s.dial(t)
	idleReader, busyReader := bufio.NewReader(idle), bufio.NewReader(busy)
	const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	_, _ = io.WriteString(idle, get)
	wait(t, began)
	release <- struct{}{}
	if resp, err := http.ReadResponse(idleReader, nil); err != nil || resp.Close {
		t.Fatal(err, resp)
	} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(busy, get)
	wait(t, began)
	time.Sleep(pause)
	s.stop()
	if _, err := idleReader.ReadByte(); err != io.EOF {
		t.Errorf("a connection that waits ends with %v", err)
	}
	close(release)
	resp, err := http.ReadResponse(busyReader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "done" || !resp.Close {
		t.Errorf("got %q, close %v", b, resp.Close)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// A connection that waits ends with its time, whatever deadlines requests before have left.
func TestDoorIdles(t *testing.T) { onEachWire(t, doorIdles) }

func doorIdles(t *testing.T, on wire) {
	s := on.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Millisecond))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%d %v", len(b), err)
	}), func(c *ServerConfig) { c.IdleTimeout = 300 * time.Millisecond })
	conn := s.dial(t)
	br := bufio.NewReader(conn)
	for range 6 {
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "2 <nil>" {
			t.Fatalf("got %q", b)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if b, err := io.ReadAll(br); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}

// What a client sends that hangs up in the midst of a body ends with an error, and its context.
func TestDoorBodyBreaksOff(t *testing.T) { onEachWire(t, doorBodyBreaksOff) }

func doorBodyBreaksOff(t *testing.T, on wire) {
	got := make(chan error, 2)
	s := on.serve(t, true, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		got <- err
		got <- r.Context().Err()
	}), nil)
	conn := s.dial(t)
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\nab")
	time.Sleep(20 * time.Millisecond)
	_ = conn.Close()
	if err := wait(t, got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the body ends with %v", err)
	}
	if err := wait(t, got); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ends with %v", err)
	}
}

// Nothing of one request's answer gets into the next's.
func TestDoorKeepsAnswersApart(t *testing.T) {
	s := wire{}.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/1" {
			w.Header().Set("X-Secret", "1")
			w.Header().Set("Trailer", "X-T")
			_, _ = io.WriteString(w, "secret")
			w.Header().Set("X-T", "secret")
		}
	}), nil)
	got := answersAt(t, s, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
	_, rest, _ := strings.Cut(got, "secret map[X-T:[secret]] <nil>\n")
	if rest == "" || bytes.Contains(bytes.ToLower([]byte(rest)), []byte("secret")) || strings.Contains(rest, "X-T") {
		t.Errorf("got %q", got)
	}
}

// A handler that has returned, or panicked, is not held up by who still reads the body for it.
func TestDoorDoesNotWaitForReaders(t *testing.T) { onEachWire(t, doorDoesNotWaitForReaders) }

func doorDoesNotWaitForReaders(t *testing.T, on wire) {
	for _, panics := range []bool{false, true} {
		read := make(chan error, 1)
		s := on.serve(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			go func() {
				_, err := io.ReadAll(r.Body)
				read <- err
			}()
			time.Sleep(50 * time.Millisecond)
			_, _ = io.WriteString(w, "early")
			_ = http.NewResponseController(w).Flush()
			if panics {
				panic(http.ErrAbortHandler)
			}
		}), nil)
		conn := s.dial(t)
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\nab")
		b, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(b), "early") {
			t.Errorf("panics %v: got %q, %v", panics, b, err)
		}
		if err := wait(t, read); err == nil {
			t.Errorf("panics %v: the body was read whole", panics)
		}
	}
}
