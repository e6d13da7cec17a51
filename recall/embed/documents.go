package embed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// minBackoff is the pause before the second attempt. It doubles with every
// attempt, up to maxRetryAfter.
const minBackoff = 500 * time.Millisecond

// Documents returns the vectors of texts in their order, nil for a text that
// the server refuses or returns nothing usable for. An error means no vectors
// at all. Concurrency limits the batches of all calls together.
func (c *Client) Documents(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(errClosed) })()
	var all sync.WaitGroup
	at := 0
	for part := range slices.Chunk(texts, c.cfg.BatchTexts) {
		to := vectors[at : at+len(part)]
		at += len(part)
		all.Go(func() {
			select {
			case c.slots <- struct{}{}:
				defer func() { <-c.slots }()
			case <-ctx.Done():
				return
			}
			prefixed := make([]string, len(part))
			for i, t := range part {
				prefixed[i] = c.cfg.DocumentPrefix + t
			}
			if err := c.batch(ctx, prefixed, to); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, v := range vectors {
		if v == nil {
			c.refused.Add(1)
		}
	}
	return vectors, nil
}

// batch writes the vectors of texts to to. If the server refuses the batch, it
// halves it until the refused texts are found.
func (c *Client) batch(ctx context.Context, texts []string, to [][]float32) error {
	vectors, err := c.attempts(ctx, texts)
	usable := slices.ContainsFunc(vectors, func(v []float32) bool { return v != nil })
	switch {
	case usable:
		copy(to, vectors)
		return nil
	case err == nil && len(texts) > 1:
		return fmt.Errorf("embed: %w: nothing but NaN or zero", ErrResponse) // not a problem of the texts
	case err != nil && !isAboutTexts(err):
		return err
	}
	if err := c.acceptsPlainText(ctx); err != nil {
		return err
	}
	return c.halves(ctx, texts, to)
}

// halves is batch for a batch that was refused by a server that accepts other
// texts.
func (c *Client) halves(ctx context.Context, texts []string, to [][]float32) error {
	if len(texts) == 1 {
		return nil
	}
	half := len(texts) / 2
	for _, part := range [...]struct {
		texts []string
		to    [][]float32
	}{{texts[:half], to[:half]}, {texts[half:], to[half:]}} {
		vectors, err := c.attempts(ctx, part.texts)
		switch {
		case err == nil:
			copy(part.to, vectors)
		case !isAboutTexts(err):
			return err
		default:
			if err := c.halves(ctx, part.texts, part.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainText is a text that every server accepts.
const plainText = "memory"

// acceptsPlainText returns an error if the server refuses even a text that
// can't be the problem. Many servers answer a model or a dimension that they
// don't have with the status of a bad text; memories must not be given up for
// that.
func (c *Client) acceptsPlainText(ctx context.Context) error {
	vectors, err := c.attempts(ctx, []string{c.cfg.DocumentPrefix + plainText})
	switch {
	case err != nil && isAboutTexts(err):
		return fmt.Errorf("%w, whatever the text; are model and dimensions right?", err)
	case err != nil:
		return err
	case vectors[0] == nil:
		return fmt.Errorf("embed: %w: nothing but NaN or zero", ErrResponse)
	}
	return nil
}

// isAboutTexts reports whether an error is a refusal that other texts might not
// meet.
func isAboutTexts(err error) bool {
	s, ok := errors.AsType[*statusError](err)
	return ok && (s.code == http.StatusBadRequest || s.code == http.StatusRequestEntityTooLarge || s.code == http.StatusUnprocessableEntity)
}

// attempts makes a request, and repeats it as long as that may help.
func (c *Client) attempts(ctx context.Context, texts []string) ([][]float32, error) {
	for n := 0; ; n++ {
		once, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		vectors, err := c.request(once, texts)
		cancel()
		if err == nil || n == c.cfg.Retries || !mayPass(err) || ctx.Err() != nil {
			return vectors, err
		}
		c.retried.Add(1)
		pause := min(minBackoff<<n, maxRetryAfter)
		pause = max(pause/2+rand.N(pause/2), retryAfter(err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// mayPass reports whether the same request may succeed later: the connection
// failed, time ran out, or the server is busy.
func mayPass(err error) bool {
	if errors.Is(err, ErrDimension) {
		return false
	}
	s, ok := errors.AsType[*statusError](err)
	if !ok {
		return true
	}
	switch s.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return s.code >= 500
}
