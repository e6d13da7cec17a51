package rest

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Bounds of the answers that are kept for repeated requests. At either the
// oldest go, and a repetition is a new request then; a fact that is added twice
// is one fact all the same. They are lost at a restart.
const (
	maxAnswers    = 2000
	answerTTL     = 24 * time.Hour
	maxKeyBytes   = 128
	maxAnswerSize = 64 << 10
)

// idempotent keeps the answers to requests with an Idempotency-Key.
type idempotent struct {
	mu      sync.Mutex
	answers map[[32]byte]*list.Element
	order   list.List // of *kept, the oldest first
}

type kept struct {
	key, body [32]byte
	at        time.Time
	done      chan struct{} // closed when status is set; 0 = it failed
	status    int
	answer    []byte
}

// once answers a POST, and answers a repetition with the same Idempotency-Key
// and body as the first. Requests with one key wait for one another.
func (c *call) once(do func(body []byte) (status int, v any, err error)) error {
	body, err := request.Body(c.r, request.MaxBody)
	if err != nil {
		return err
	}
	key := c.r.Header.Get("Idempotency-Key")
	if key == "" {
		status, v, err := do(body)
		if err != nil {
			return err
		}
		return c.write(status, v)
	}
	if len(key) > maxKeyBytes {
		return &api.FieldError{Field: "Idempotency-Key", Why: "must have at most 128 bytes"}
	}
	who := fmt.Sprintf("%q %q %q %q %q", c.p.Tenant, c.p.User, c.t, c.r.URL.Path, key)
	k, first := c.idempotent.begin(sha256.Sum256([]byte(who)), sha256.Sum256(body), time.Now())
	if !first {
		select {
		case <-k.done:
		case <-c.r.Context().Done():
			return c.r.Context().Err()
		}
		if k.body != sha256.Sum256(body) {
			return &api.FieldError{Field: "Idempotency-Key", Why: "was used with another body"}
		}
		if k.status != 0 {
			c.w.Header().Set("Content-Type", "application/json")
			c.w.Header().Set("Idempotent-Replayed", "true")
			c.w.WriteHeader(k.status)
			_, _ = c.w.Write(k.answer)
			return nil
		}
	}
	status, v, err := do(body)
	var answer []byte
	if err == nil {
		answer, err = request.Encode(v)
	}
	if first {
		c.idempotent.finish(k, status, answer, err == nil)
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(answer)
	return nil
}

// begin returns what is kept under a key, and whether the caller is the first.
func (i *idempotent) begin(key, body [32]byte, now time.Time) (k *kept, first bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answers == nil {
		i.answers = map[[32]byte]*list.Element{}
	}
	for e := i.order.Front(); e != nil; e = i.order.Front() {
		if old := e.Value.(*kept); len(i.answers) < maxAnswers && now.Sub(old.at) < answerTTL {
			break
		}
		i.drop(e)
	}
	if e, ok := i.answers[key]; ok {
		return e.Value.(*kept), false
	}
	k = &kept{key: key, body: body, at: now, done: make(chan struct{})}
	i.answers[key] = i.order.PushBack(k)
	return k, true
}

func (i *idempotent) drop(e *list.Element) {
	i.order.Remove(e)
	delete(i.answers, e.Value.(*kept).key)
}

// finish keeps an answer. One that failed, or is too large, is not kept.
func (i *idempotent) finish(k *kept, status int, answer []byte, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ok && len(answer) <= maxAnswerSize {
		k.status, k.answer = status, answer
	} else if e := i.answers[k.key]; e != nil && e.Value == any(k) {
		i.drop(e)
	}
	close(k.done)
}

var _ http.Handler = (*Handler)(nil)
