package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// question is the body of a request.
type question struct {
	Input      []string `json:"input"`
	Model      string   `json:"model"`
	Encoding   Encoding `json:"encoding_format,omitempty"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// statusError is a response with another status than 200. Its body is not kept:
// servers quote what they were sent.
type statusError struct {
	code  int
	after time.Duration // Retry-After, 0 if none
}

func (e *statusError) Error() string {
	return "embeddings server responded with status " + strconv.Itoa(e.code)
}

// retryAfter returns how long the server asked to wait, 0 if it didn't.
func retryAfter(err error) time.Duration {
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.after
	}
	return 0
}

// request makes one attempt. A vector is nil if the server returned nothing
// usable for its text.
func (c *Client) request(ctx context.Context, texts []string) ([][]float32, error) {
	ask := question{Model: c.cfg.Model, Dimensions: c.cfg.Dimensions}
	if c.cfg.Encoding != EncodingFloat {
		ask.Encoding = c.cfg.Encoding
	}
	for _, t := range texts {
		ask.Input = append(ask.Input, shorten(t))
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "remora")
	// Asking twice does no harm. This lets net/http.Transport retry on a kept
	// connection that the server has closed meanwhile.
	r.Header["Idempotency-Key"] = []string{}
	if c.cfg.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.cfg.Key.Reveal())
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", withoutContent(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, 4<<10) // so that the connection can be used again
		return nil, fmt.Errorf("embed: %w", &statusError{response.StatusCode, readRetryAfter(response.Header.Get("Retry-After"), time.Now())})
	}
	limit := c.responseLimit(len(texts))
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("embed: read response: %w", withoutContent(err))
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("embed: %w: longer than %d bytes", ErrResponse, limit)
	}
	vectors, dimension, err := decode(content, len(texts))
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if dimension > 0 && !c.dimension.CompareAndSwap(0, int64(dimension)) && c.dimension.Load() != int64(dimension) {
		return nil, fmt.Errorf("embed: %w: %d instead of %d", ErrDimension, dimension, c.dimension.Load())
	}
	return vectors, nil
}

// withoutContent returns a transport's error if it is about the network or
// about time. Others may quote what the server sent, which may quote what it
// was sent.
func withoutContent(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e
	}
	for _, known := range [...]error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return context.DeadlineExceeded
	}
	return errors.New("response is not usable HTTP")
}

// responseLimit returns the largest response that is read, in bytes. It allows
// 32 for each number, more than any float64 needs.
func (c *Client) responseLimit(texts int) int64 {
	dimension := c.dimension.Load()
	if dimension == 0 {
		dimension = MaxDimensions
	}
	return 64<<10 + int64(texts)*(dimension*32+1<<10)
}

// shorten returns the first maxTextBytes of a text, or fewer so as not to split
// a character.
func shorten(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	n := maxTextBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// maxRetryAfter is the longest wait that a server can ask for.
const maxRetryAfter = time.Minute

// readRetryAfter returns the wait that a Retry-After header asks for, in
// seconds or by a date (RFC 9110, 10.2.3).
func readRetryAfter(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	var d time.Duration
	if n, err := strconv.Atoi(s); err == nil {
		d = time.Duration(min(max(n, 0), 3600)) * time.Second
	} else if at, err := http.ParseTime(s); err == nil {
		d = max(at.Sub(now), 0)
	}
	return min(d, maxRetryAfter)
}
