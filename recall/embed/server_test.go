package embed

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is an embeddings server over real HTTP with deterministic vectors,
// which behaves as badly as a test wants.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []question
	keys   []string // Authorization headers
	paths  []string
	answer func(w http.ResponseWriter, q question) bool // reports whether it has responded
}

func newServer(t testing.TB) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	var q question
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil {
		http.Error(w, "bad", http.StatusTeapot)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.keys = append(s.keys, r.Header.Get("Authorization"))
	s.paths = append(s.paths, r.URL.Path)
	answer := s.answer
	s.mu.Unlock()
	if answer != nil && answer(w, q) {
		return
	}
	var data []string
	for i := len(q.Input) - 1; i >= 0; i-- { // out of order, as the index allows
		data = append(data, item(i, vectorOf(q.Input[i], 8), q.Encoding))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"m","usage":{}}`, strings.Join(data, ","))
}

func (s *server) requests() []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]question(nil), s.asked...)
}

func (s *server) behave(f func(w http.ResponseWriter, q question) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func item(index int, v []float32, as Encoding) string {
	if as == EncodingBase64 {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return fmt.Sprintf(`{"index":%d,"embedding":%q}`, index, base64.StdEncoding.EncodeToString(b))
	}
	numbers, _ := json.Marshal(v)
	return fmt.Sprintf(`{"index":%d,"embedding":%s}`, index, numbers)
}

// vectorOf returns a vector that depends on the text. Its length is not one,
// like that of some servers' vectors.
func vectorOf(text string, dim int) []float32 {
	v := make([]float32, dim)
	h := fnv.New64a()
	h.Write([]byte(text))
	x := h.Sum64() | 1
	for i := range v {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		v[i] = float32(int16(x)) / 1000
	}
	return v
}

func unitOf(text string) []float32 {
	v := vectorOf(text, 8)
	normalize(v)
	return v
}

func config(s *server) Config {
	cfg := DefaultConfig()
	cfg.URL, cfg.Model = s.URL, "m"
	cfg.QueryTimeout, cfg.Timeout = time.Minute, time.Minute
	return cfg
}

func newClient(t testing.TB, cfg Config) *Client {
	c, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func status(code int, header ...string) func(http.ResponseWriter, question) bool {
	return func(w http.ResponseWriter, q question) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, "echo: %s", q.Input) // servers do
		return true
	}
}

func body(format string, args ...any) func(http.ResponseWriter, question) bool {
	return func(w http.ResponseWriter, _ question) bool {
		fmt.Fprintf(w, format, args...)
		return true
	}
}
