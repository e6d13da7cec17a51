// Package distill asks a model which statements of a conversation are worth
// remembering.
//
// It is off unless an endpoint is configured, because it sends redacted
// messages there. Any server with OpenAI's Chat Completions API will do. A
// model only proposes: a proposal names the message that it is from and quotes
// it, and the caller checks the quotation, scores the statement and merges it
// like any other candidate.
//
//   - The messages are sent between two lines with a random nonce, so nothing
//     in them can end the data.
//   - The answer must be one JSON object of exactly the requested shape.
//     Anything else is refused as a whole: malformed or oversized answers,
//     unknown or duplicate keys, and statements that are worded as instructions
//     or hold links and numbers that the user did not write.
//   - Concurrent calls and tokens per day are limited. At a limit, and on any
//     error, the caller continues without a model.
//   - Messages, answers and keys are never logged and never part of an error.
//
// A Distiller is safe for concurrent use. The auditor of package persist calls
// it.
package distill

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/remora-proxy/remora/redact"
)

// Errors after which the caller continues without a model.
var (
	ErrBusy    = errors.New("too many concurrent calls")
	ErrSpent   = errors.New("the daily token budget is spent")
	ErrRefused = errors.New("answer refused")
	ErrFailed  = errors.New("call failed")
)

// Config of a Distiller.
type Config struct {
	// URL of the endpoint up to and including its version, e.g.
	// https://api.openai.com/v1. "" = off.
	URL   string
	Model string
	// Key is sent as a Bearer token; "" sends none.
	Key redact.Secret
	// Concurrency limits concurrent calls, TokensPerDay the tokens of a UTC
	// day, prompts and answers together.
	Concurrency  int
	TokensPerDay int64
	// Timeout limits one call.
	Timeout time.Duration
	// MaxTokens limits an answer, MaxFacts the proposals in it.
	MaxTokens, MaxFacts int
	// ProxyFromEnvironment honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which
	// may name Remora's own forward listener.
	ProxyFromEnvironment bool
}

// DefaultConfig returns a Config that is off.
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
