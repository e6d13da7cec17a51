// Package distill asks a model which statements of a conversation are worth remembering.
//
// It is off unless an endpoint is configured, for it sends redacted messages there. Any server that speaks OpenAI's Chat
// Completions will do. What comes back is checked by hand and only ever proposes: a proposal names the message that it is
// from and quotes it, and whoever asked checks the quotation, scores it, and merges it like any other candidate.
//
//   - The messages go in between two lines with a random nonce, so that nothing in them can end the data.
//   - The answer must be one JSON object of exactly the shape that was asked for. Anything else is refused whole:
//     malformed, too large, with unknown or doubled keys, or worded as an instruction or a link that nobody said.
//   - Calls at once and tokens per day are bounded. At a bound, and on any error, the caller goes on without a model.
//   - Nothing of messages, answers or keys is logged or put in an error.
package distill

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/remora-proxy/remora/redact"
)

// Errors. All of them mean: go on without a model.
var (
	ErrBusy    = errors.New("as many calls as allowed are under way")
	ErrSpent   = errors.New("the day's tokens are spent")
	ErrRefused = errors.New("the answer was refused")
	ErrFailed  = errors.New("the model could not be asked")
)

// Config of a Distiller.
type Config struct {
	// URL of the endpoint up to and including its version, e.g. https://api.openai.com/v1. "" = off.
	URL   string
	Model string
	// Key is sent as a Bearer token, "" sends none.
	Key redact.Secret
	// Concurrency bounds the calls at once, TokensPerDay what they may use in a UTC day, prompt and answer together.
	Concurrency  int
	TokensPerDay int64
	// Timeout bounds one call.
	Timeout time.Duration
	// MaxTokens bounds an answer, MaxFacts the proposals in it.
	MaxTokens, MaxFacts int
	// ProxyFromEnvironment reaches the endpoint through HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which may well name Remora's own
	// forward door.
	ProxyFromEnvironment bool
}

// DefaultConfig is off.
func DefaultConfig() Config {
	return Config{Concurrency: 1, TokensPerDay: 200_000, Timeout: 20 * time.Second, MaxTokens: 800, MaxFacts: 10}
}

// Validate returns all problems. A Config without a URL is off, and valid.
func (c Config) Validate() error {
	if c.URL == "" {
		return nil
	}
	var errs []error
	check := func(ok bool, field, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: must be %s", field, want))
		}
	}
	u, err := url.Parse(c.URL)
	check(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"url", "an http or https URL without credentials, query or fragment")
	check(c.Model != "", "model", "set")
	check(c.Concurrency > 0 && c.Concurrency <= 64, "concurrency", "between 1 and 64")
	check(c.TokensPerDay > 0, "tokensPerDay", "> 0")
	check(c.Timeout > 0, "timeout", "> 0")
	check(c.MaxTokens >= 100, "maxTokens", ">= 100")
	check(c.MaxFacts > 0 && c.MaxFacts <= 50, "maxFacts", "between 1 and 50")
	return errors.Join(errs...)
}
