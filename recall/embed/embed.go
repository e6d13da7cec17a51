// Package embed asks a server for the vectors of texts, in the form that OpenAI gave it (POST {url}/v1/embeddings) and
// that Ollama, Text Embeddings Inference and others speak too.
//
// A [Client] has two sides. [Client.Query] stands on the way of a request: one attempt, answered from a bounded cache
// where it can be, given up when the caller's context ends, and refused at once while a circuit breaker holds the server
// for dead or too slow. [Client.Documents] works in the background: batches, bounded concurrency, retries.
//
// What comes back is checked before anybody uses it: as many vectors as texts, in the order of their indexes, all of one
// dimension, finite and not zero. The size of a response is bounded. The server is named by the configuration alone,
// redirects are not followed, and neither a text nor the key nor a response's body gets into an error or a log.
//
// All methods are safe for concurrent use.
package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/redact"
)

// Errors of a Client. Test with errors.Is.
var (
	// ErrOpen: the breaker is open, or too many queries are under way. Nothing was waited for.
	ErrOpen = errors.New("embeddings server is left alone for now")
	// ErrResponse: the server answered with something that is no set of usable vectors.
	ErrResponse = errors.New("unusable answer of the embeddings server")
	// ErrDimension: the vectors have another dimension than the settings, or than those before.
	ErrDimension = fmt.Errorf("%w: wrong dimension", ErrResponse)
	errClosed    = errors.New("embeddings client closed")
)

// Encoding is how vectors are asked for.
type Encoding string

const (
	EncodingFloat  Encoding = "float"  // what servers send by default; nothing is asked for
	EncodingBase64 Encoding = "base64" // a quarter of the bytes, where the server knows it
)

// MaxDimensions is the largest dimension that is taken.
const MaxDimensions = 8192

// maxTextBytes is how much of a text is sent. Models cut off what they can't read; passages are shorter.
const maxTextBytes = 8 << 10

// Config sets a Client.
type Config struct {
	// URL is the server's, with or without /v1 at its end. "" = no embeddings.
	URL string
	// Key is sent as a bearer token, "" = none.
	Key   redact.Secret
	Model string
	// Dimensions is asked of the server and checked, 0 = the model's own. Without it the first answer sets the dimension
	// for as long as the process lives.
	Dimensions int
	Encoding   Encoding
	// QueryPrefix and DocumentPrefix stand before every text, for models that were trained with such ("query: ").
	QueryPrefix    string
	DocumentPrefix string
	// BatchTexts is how many documents go into one request, Concurrency how many such requests run side by side.
	BatchTexts  int
	Concurrency int
	// QueryTimeout bounds a query's request. The caller may leave earlier: then the answer still gets into the cache.
	QueryTimeout time.Duration
	// Timeout bounds one request for documents; after Retries more attempts the call fails.
	Timeout time.Duration
	Retries int
	// CacheQueries is how many vectors of queries are kept; beyond, the least recently used goes.
	CacheQueries int
	// ProxyFromEnvironment reaches the server through HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	ProxyFromEnvironment bool
}

// DefaultConfig names no server.
func DefaultConfig() Config {
	return Config{
		Encoding:     EncodingFloat,
		BatchTexts:   32,
		Concurrency:  2,
		QueryTimeout: 2 * time.Second,
		Timeout:      time.Minute,
		Retries:      3,
		CacheQueries: 1024,
	}
}

// Validate returns all problems, joined. Without a URL there are none.
func (c Config) Validate() error {
	if c.URL == "" {
		return nil
	}
	var errs []error
	check := func(ok bool, problem string) {
		if !ok {
			errs = append(errs, errors.New(problem))
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		check(false, "url: must be http://host or https://host, with a path if need be")
	} else {
		check(u.User == nil, "url: must not hold credentials; set key")
		check(u.RawQuery == "" && u.Fragment == "", "url: must have neither query nor fragment")
	}
	check(strings.TrimSpace(c.Model) != "" && len(c.Model) <= 256, "model: must name the model, in at most 256 bytes")
	check(c.Dimensions >= 0 && c.Dimensions <= MaxDimensions, fmt.Sprintf("dimensions: must be 0..%d", MaxDimensions))
	check(c.Encoding == EncodingFloat || c.Encoding == EncodingBase64, "encoding: must be float or base64")
	check(!strings.ContainsAny(c.Key.Reveal(), "\r\n\x00"), "key: must be one line")
	check(len(c.QueryPrefix) <= 1024, "queryPrefix: must be at most 1024 bytes")
	check(len(c.DocumentPrefix) <= 1024, "documentPrefix: must be at most 1024 bytes")
	check(c.BatchTexts >= 1 && c.BatchTexts <= 512, "batchTexts: must be 1..512")
	check(c.Concurrency >= 1 && c.Concurrency <= 64, "concurrency: must be 1..64")
	check(c.QueryTimeout > 0, "queryTimeout: must be > 0")
	check(c.Timeout > 0, "timeout: must be > 0")
	check(c.Retries >= 0 && c.Retries <= 10, "retries: must be 0..10")
	check(c.CacheQueries >= 0 && c.CacheQueries <= 1<<20, "cacheQueries: must be 0..1048576")
	return errors.Join(errs...)
}

// Client asks one server.
type Client struct {
	cfg      Config
	endpoint string
	http     *http.Client
	log      *slog.Logger

	dimension atomic.Int64 // that of the settings or of the first answer, 0 = not known yet
	slots     chan struct{}
	breaker   breaker

	life context.Context // of requests whose callers have left
	stop context.CancelFunc

	mu     sync.Mutex // guards all below
	closed bool
	calls  map[queryKey]*call
	cache  cache
	wg     sync.WaitGroup

	hits, refused, retried atomic.Int64
}

// New returns a client for a valid configuration. It asks nothing yet. A nil log is silent.
func New(cfg Config, log *slog.Logger) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embeddings: %w", err)
	}
	if cfg.URL == "" {
		return nil, errors.New("embeddings: url: is empty")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	base := strings.TrimSuffix(strings.TrimRight(cfg.URL, "/"), "/v1")
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxCalls, MaxConnsPerHost: maxCalls + cfg.Concurrency,
		IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	if cfg.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
	}
	c := &Client{
		cfg: cfg, endpoint: base + "/v1/embeddings", log: log,
		// A redirect would send texts to a server that no setting names.
		http:  &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		slots: make(chan struct{}, cfg.Concurrency), calls: map[queryKey]*call{}, cache: newCache(cfg.CacheQueries),
	}
	c.dimension.Store(int64(cfg.Dimensions))
	c.life, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all requests and waits for them.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

// Model names what makes a document's vector: vectors of different names are not to be compared. The dimension asked for
// is part of it, since a model may have several.
func (c *Client) Model() string {
	name := c.cfg.Model
	if c.cfg.Dimensions > 0 {
		name += fmt.Sprintf("#%d", c.cfg.Dimensions)
	}
	if p := c.cfg.QueryPrefix + "\x00" + c.cfg.DocumentPrefix; len(p) > 1 {
		sum := sha256.Sum256([]byte(p))
		name += "+" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Host is where the server is, for messages.
func (c *Client) Host() string {
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// Stats are counters since the start.
type Stats struct {
	Hits    int64 // queries answered from the cache
	Refused int64 // documents that the server would not embed, or only to nonsense
	Retried int64 // requests for documents
	Open    bool  // the breaker
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	return Stats{Hits: c.hits.Load(), Refused: c.refused.Load(), Retried: c.retried.Load(), Open: c.breaker.isOpen()}
}
