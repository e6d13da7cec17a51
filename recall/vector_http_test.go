package recall

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/recall/embed"
)

// embeddingServer serves the API with the vectors of a fakeEmbedder.
type embeddingServer struct {
	*httptest.Server
	fake *fakeEmbedder
	mu   sync.Mutex
	// serve returns true if it has responded itself. Queries come one by one,
	// memories in batches.
	serve func(w http.ResponseWriter, input []string) bool
}

func newEmbeddingServer(t *testing.T) *embeddingServer {
	s := &embeddingServer{fake: newFake()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		serve := s.serve
		s.mu.Unlock()
		if serve != nil && serve(w, ask.Input) {
			return
		}
		s.reply(w, ask.Input, s.fake.dim)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *embeddingServer) reply(w http.ResponseWriter, input []string, dim int) {
	var data []string
	for i, text := range input {
		v, _ := json.Marshal(s.fake.vector(text)[:dim])
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, v))
	}
	fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
}

func (s *embeddingServer) behave(f func(w http.ResponseWriter, input []string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = f
}

// Failures of a real server are reported, and the result is what words find.
func TestBadEmbeddingServers(t *testing.T) {
	ms := memories(60)
	plain, _ := newEngine(t, patient(), ms)
	ask := func(e *Engine, i int) Result {
		t.Helper()
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: fmt.Sprintf("What about thing%d?", i)})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	gate := make(chan struct{})
	for _, c := range []struct {
		name     string
		deadline time.Duration
		serve    func(s *embeddingServer, w http.ResponseWriter, input []string) bool
		want     VectorStatus
	}{
		{"well", time.Minute, nil, VectorsUsed},
		{"slow", 2 * time.Second, func(*embeddingServer, http.ResponseWriter, []string) bool { <-gate; return false }, VectorsLate},
		{"broken", time.Minute, func(_ *embeddingServer, w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, VectorsFailed},
		{"wrong dimension", time.Minute, func(s *embeddingServer, w http.ResponseWriter, input []string) bool {
			s.reply(w, input, 32)
			return true
		}, VectorsFailed},
		{"NaN", time.Minute, func(_ *embeddingServer, w http.ResponseWriter, _ []string) bool {
			fmt.Fprintf(w, `{"data":[{"index":0,"embedding":[%s1]}]}`, strings.Repeat("NaN,", 63))
			return true
		}, VectorsFailed},
		{"hangs up", time.Minute, func(*embeddingServer, http.ResponseWriter, []string) bool { panic(http.ErrAbortHandler) }, VectorsFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newEmbeddingServer(t)
			ec := embed.DefaultConfig()
			ec.URL, ec.Model, ec.QueryTimeout = s.URL, "m", time.Minute
			client, err := embed.New(ec, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			cfg := patient()
			cfg.Deadline = c.deadline
			cfg.Vectors.Embedder, cfg.Vectors.Redact = client, same
			e := vectorEngineOf(t, cfg, newLocal(ms))
			settled(t, e, alice)
			if c.serve != nil {
				s.behave(func(w http.ResponseWriter, input []string) bool { return c.serve(s, w, input) })
			}
			before := e.Stats().Vectors
			const questions = 5 // the last come after the breaker has opened
			for i := range questions {
				got := ask(e, i)
				want := c.want
				if c.want == VectorsLate && i >= 3 {
					want = VectorsFailed // not waited for any more
				}
				if got.Vectors != want {
					t.Errorf("question %d: vectors %s, want %s", i, got.Vectors, want)
				}
				if c.want != VectorsUsed {
					if d := cmp.Diff(ask(plain, i), got, cmpopts.IgnoreFields(Result{}, "Took", "Vectors")); d != "" {
						t.Errorf("question %d: %s", i, d)
					}
				}
			}
			if st := client.Stats(); st.Open != (c.want != VectorsUsed) {
				t.Errorf("%+v", st)
			}
			st := e.Stats().Vectors
			if got := map[VectorStatus]int64{VectorsUsed: st.Used - before.Used, VectorsLate: st.Late + st.Failed - before.Late - before.Failed, VectorsFailed: st.Failed - before.Failed}[c.want]; got != questions {
				t.Errorf("counted %+v, want %d", st, questions)
			}
			if c.want == VectorsLate {
				close(gate)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		s := newEmbeddingServer(t)
		s.Close()
		ec := embed.DefaultConfig()
		ec.URL, ec.Model, ec.Retries = s.URL, "m", 0
		client, err := embed.New(ec, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		cfg := patient()
		cfg.Vectors.Embedder, cfg.Vectors.Redact = client, same
		e := vectorEngineOf(t, cfg, newLocal(ms))
		for e.Stats().Vectors.Failures == 0 {
			time.Sleep(time.Millisecond)
		}
		got := ask(e, 1)
		if d := cmp.Diff(ask(plain, 1), got, cmpopts.IgnoreFields(Result{}, "Took", "Vectors")); d != "" || got.Vectors != VectorsNone {
			t.Errorf("vectors %s: %s", got.Vectors, d)
		}
	})
}
