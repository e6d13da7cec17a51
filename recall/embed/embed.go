// Package embed gets the vectors of texts from a server with OpenAI's API for
// embeddings (POST {url}/v1/embeddings), which Ollama, Text Embeddings
// Inference and others have, too.
//
// A [Client] serves two callers. [Client.Query] is on the path of a request: it
// makes one attempt, answers from a bounded cache if it can, gives up when the
// caller's context ends, and refuses at once while a circuit breaker considers
// the server dead or too slow. [Client.Documents] runs in the background: it
// sends batches, a bounded number at a time, and retries.
//
// A response is validated before it is used: one vector for each text, in the
// order of their indexes, all of one dimension, finite and not zero. Its size
// is limited. Only the configuration names the server, redirects are not
// followed, and neither a text nor the key nor the body of a response gets into
// an error or a log.
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

	"github.com/remora-proxy/remora/recall/breaker"
	"github.com/remora-proxy/remora/redact"
)

// Errors of a Client. Test with errors.Is.
var (
	// ErrOpen means that the breaker is open, or that too many queries are in
	// flight. The call did not wait.
	ErrOpen = errors.New("embeddings server not asked: it failed before or is busy")
	// ErrResponse means that the response has no usable vectors.
	ErrResponse = errors.New("unusable response of the embeddings server")
	// ErrDimension means that the vectors have another dimension than
	// configured, or than earlier ones.
	ErrDimension = fmt.Errorf("%w: wrong dimension", ErrResponse)
	errClosed    = errors.New("embeddings client closed")
)

// Encoding is the form in which vectors are requested.
type Encoding string

const (
	EncodingFloat  Encoding = "float"  // the default of servers, so the request names none
	EncodingBase64 Encoding = "base64" // a quarter of the bytes; not every server has it
)

// MaxDimensions is the largest dimension that is accepted.
const MaxDimensions = 8192

// maxTextBytes is how much of a text is sent. Passages are shorter, and models
// cut off what they can't read.
const maxTextBytes = 8 << 10

// Config configures a Client.
type Config struct {
	// URL is the server's, with or without /v1 at its end. Empty means no
	// embeddings.
	URL string
	// Key is sent as a bearer token unless it is empty.
	Key   redact.Secret
	Model string
	// Dimensions is requested and checked. 0 means the model's own: the first
	// response then sets it for the life of the process.
	Dimensions int
	Encoding   Encoding
	// QueryPrefix and DocumentPrefix are put before every text, for models that
	// were trained with them ("query: ").
	QueryPrefix    string
	DocumentPrefix string
	// BatchTexts is the most documents in one request, Concurrency the most
	// such requests at a time.
	BatchTexts  int
	Concurrency int
	// QueryTimeout is how long a query's request may take. If the caller leaves
	// earlier, the response still gets into the cache.
	QueryTimeout time.Duration
	// Timeout is how long one request for documents may take. After Retries
	// more attempts the call fails.
	Timeout time.Duration
	Retries int
	// CacheQueries is how many vectors of queries are cached. The least
	// recently used is dropped.
	CacheQueries int
	// ProxyFromEnvironment makes HTTP_PROXY, HTTPS_PROXY and NO_PROXY count.
	ProxyFromEnvironment bool
}

// DefaultConfig returns the defaults, which name no server.
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

// Validate returns all problems, joined. There are none without a URL.
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

// Client is a client of one server.
type Client struct {
	cfg      Config
	endpoint string
	http     *http.Client
	log      *slog.Logger

	dimension atomic.Int64 // configured or of the first response; 0 before
	slots     chan struct{}
	breaker   breaker.Breaker

	life context.Context // of requests, which may outlive their callers
	stop context.CancelFunc

	mu     sync.Mutex // guards closed, calls and cache
	closed bool
	calls  map[queryKey]*call
	cache  cache

	requests               sync.WaitGroup
	hits, refused, retried atomic.Int64
}

// New returns a client for a valid configuration. It sends nothing yet. A nil
// log is silent.
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
		breaker: breaker.Breaker{MinCooldown: minCooldown, MaxCooldown: maxCooldown},
	}
	c.dimension.Store(int64(cfg.Dimensions))
	c.life, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close cancels all requests and waits for them.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.requests.Wait()
	c.http.CloseIdleConnections()
}

// Model names all that decides what a document's vector is: the model, the
// dimensions requested and the prefixes. Vectors of different names must not be
// compared.
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

// Host returns the server's host, for messages.
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
	Refused int64 // documents without a vector: refused, or the vector was unusable
	Retried int64 // requests for documents
	Open    bool  // the breaker is open
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	return Stats{Hits: c.hits.Load(), Refused: c.refused.Load(), Retried: c.retried.Load(), Open: c.breaker.IsOpen()}
}
