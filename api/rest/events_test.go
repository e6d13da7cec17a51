package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Ten events lead to an audit, the audit to memories, and these can be listed,
// changed and counted.
func TestTenEventsBecomeMemories(t *testing.T) {
	r := newService(t)
	said := []string{
		"Hello there!", "Remember that I am allergic to peanuts.", "My name is Ada and I live in Lisbon.", "What a day.",
		"I decided to use PostgreSQL for the billing service.", "ok", "My goal is to run a marathon in October.", "hm",
		"I prefer tea to coffee.", "Thanks, that is all.",
	}
	for i, text := range said {
		began := time.Now()
		a := r.send(t, "POST", "/v1/events/message", object{
			"userId": "ada", "threadId": "t1", "msgId": fmt.Sprint("m", i), "role": "user", "content": text,
			"tokens": object{"input": 10, "output": 0}, "time": time.Now().Add(time.Duration(i) * time.Second).Format(time.RFC3339),
		}).want(t, http.StatusAccepted)
		if took := time.Since(began); took > time.Second {
			t.Errorf("event %d took %s", i, took)
		}
		if turn := get[struct{ Turn string }](t, a).Turn; turn == "" {
			t.Errorf("event %d has no turn: %s", i, a.body)
		}
	}
	r.settle(t)

	audits := get[struct{ Audits []audit }](t, r.send(t, "GET", "/v1/audits?user=ada", nil)).Audits
	if len(audits) == 0 || audits[0].Messages < 6 || audits[0].Conversation != "t1" || audits[0].Candidates == 0 {
		t.Fatalf("audits %+v", audits)
	}
	saved := 0
	for _, a := range audits {
		saved += a.Saved
	}
	facts := r.list(t, "userId=ada&kind=fact")
	if len(facts) == 0 || len(facts) != saved {
		t.Fatalf("%d facts are listed, audits saved %d", len(facts), saved)
	}
	if got := texts(r.list(t, "user=ada&kind=episode&order=oldest")); !slices.Equal(got, said) {
		t.Errorf("episodes %q, want %q", got, said)
	}
	m := get[api.Memory](t, r.send(t, "PATCH", "/v1/memories/"+facts[0].ID, object{"priority": 0.95, "text": "Ada is allergic to peanuts."}))
	if m.Priority != 0.95 {
		t.Errorf("changed to %+v", m)
	}
	r.send(t, "PATCH", "/v1/memories/"+facts[0].ID, object{"deleted": true}).want(t, 200)
	if left := r.list(t, "user=ada&kind=fact"); len(left) != len(facts)-1 {
		t.Errorf("%d facts left of %d", len(left), len(facts))
	}

	c := get[api.Context](t, r.send(t, "POST", "/v1/context?user=ada", object{"facts": 10, "conversations": 3}))
	if c.Episodes != len(said) || len(c.Facts) != len(facts)-1 || len(c.Conversations) != 1 || len(c.Known) == 0 || !strings.Contains(c.Text, "## Known facts") {
		t.Errorf("context %+v", c)
	}

	n := get[numbers](t, r.send(t, "GET", "/v1/metrics", nil))
	if n.Jobs.Enqueued != uint64(len(said)) || n.Jobs.Processed != uint64(len(said)) || n.Jobs.Failed != 0 || n.Jobs.AvgLatencyMS <= 0 || n.Jobs.P95LatencyMS <= 0 {
		t.Errorf("jobs %+v", n.Jobs)
	}
	if n.Memories.Total != len(said)+len(facts) || n.Memories.SavedLastHour != n.Memories.Total || n.Memories.AvgPriority <= 0 {
		t.Errorf("memories %+v, of %d facts", n.Memories, len(facts))
	}
	if n.Audits.Total != uint64(len(audits)) || n.Audits.AvgScore <= 0 || n.Audits.SavesPerAudit <= 0 {
		t.Errorf("audits %+v", n.Audits)
	}
	if len(n.Rejections.ByReason) == 0 || n.Rejections.BelowThreshold != n.Rejections.ByReason["belowThreshold"] || n.Health.LastAuditMSAgo < 0 || n.Health.QueueDepth != 0 {
		t.Errorf("rejections %+v, health %+v", n.Rejections, n.Health)
	}
	if !n.System.StoreOpen || n.System.Version != "test" {
		t.Errorf("system %+v", n.System)
	}
}

// numbers are api.Metrics without the counters whose names Go does not read back.
type numbers struct {
	api.Metrics
	Pipeline any `json:"pipeline"`
}

// Metrics that nothing has happened yet are complete, too.
func TestMetricsOfNothing(t *testing.T) {
	n := get[numbers](t, newService(t).send(t, "GET", "/v1/metrics", nil))
	if n.Health.LastAuditMSAgo != -1 || n.Memories.Total != 0 {
		t.Errorf("%+v", n)
	}
}

// The same msgId again replaces the message, and names the same turn.
func TestEventsAreIdempotent(t *testing.T) {
	r := newService(t)
	at := time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	report := func(content string) string {
		return get[struct{ Turn string }](t, r.send(t, "POST", "/v1/events/message?user=ada", object{
			"threadId": "t1", "msgId": "m1", "role": "assistant", "content": content, "speaker": "Remy", "model": "m-1", "time": at,
		})).Turn
	}
	first := report("The boat is blue.")
	r.settle(t)
	if again := report("The boat is green."); again != first {
		t.Errorf("turn %s, then %s", first, again)
	}
	r.settle(t)
	got := r.list(t, "user=ada")
	if len(got) != 1 || got[0].Text != "The boat is green." || got[0].Turn != first || got[0].Speaker != "Remy" || got[0].Model != "m-1" ||
		got[0].Role != "assistant" || got[0].EventTime != at {
		t.Errorf("stored %+v", got)
	}
	r.send(t, "POST", "/v1/events/message?user=ben", object{"userId": "ada", "threadId": "t", "msgId": "m", "role": "user", "content": "hi"}).problem(t, 404, "not-found", "")
	r.with("X-User-Id", "ben").send(t, "POST", "/v1/events/message", object{"userId": "ada", "threadId": "t", "msgId": "m", "role": "user", "content": "hi"}).problem(t, 404, "not-found", "")
}

// A user who sends too much is told so, and others are not.
func TestEventsAreLimited(t *testing.T) {
	r := newRig(t, options{who: local(), pipeline: func(c *persist.Config) { c.TurnsPerSecond = 1 }})
	send := func(user string, n int) answer {
		return r.send(t, "POST", "/v1/events/message", object{"userId": user, "threadId": "t", "msgId": fmt.Sprint(n), "role": "user", "content": "hello"})
	}
	send("ada", 1).want(t, 202)
	a := send("ada", 2)
	a.problem(t, 429, "too-many", "")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	send("ben", 1).want(t, 202)
	r.settle(t)
	if n := get[numbers](t, r.send(t, "GET", "/v1/metrics", nil)); n.Rejections.RateLimited != 1 {
		t.Errorf("counted %d", n.Rejections.RateLimited)
	}
}

// Erasing a conversation takes what was said in it and what was made of it, and
// nothing else.
func TestEraseConversation(t *testing.T) {
	r := newService(t)
	for i, thread := range []string{"t/1", "t2"} {
		r.say(t, "ada", thread, i, []string{"Remember that I am allergic to peanuts.", "Remember that my boat is called Marbella."}[i])
	}
	r.settle(t)
	all := r.list(t, "user=ada")
	receipt := get[api.Receipt](t, r.send(t, "DELETE", "/v1/conversations/t/1?user=ada", nil))
	left := r.list(t, "user=ada&state=current,superseded,quarantined,deleted")
	if receipt.Memories != 2 || len(left) != len(all)-2 || receipt.User != "ada" || receipt.By != "admin" {
		t.Errorf("receipt %+v, left %q of %q", receipt, texts(left), texts(all))
	}
	for _, m := range left {
		if strings.Contains(m.Text, "peanuts") {
			t.Errorf("left: %+v", m)
		}
	}
	r.send(t, "DELETE", "/v1/conversations/t/1?user=ada", nil).problem(t, 404, "not-found", "")
	r.send(t, "DELETE", "/v1/conversations/t2?user=ben", nil).problem(t, 404, "not-found", "")
}

func TestEraseUser(t *testing.T) {
	r := newService(t)
	for _, target := range []string{"user=ada", "user=ada&project=boat", "user=ben"} {
		r.add(t, target, "I play the cello.", nil)
	}
	r.send(t, "PUT", "/v1/entries/k?user=ada", object{"value": 1, "ttl": 60}).want(t, 201)
	receipt := get[api.Receipt](t, r.send(t, "DELETE", "/v1/users/ada", nil))
	if receipt.Scopes != 2 || receipt.Memories != 2 || receipt.Records["entry"] != 1 || receipt.ID == "" || receipt.At == "" || receipt.Note == "" {
		t.Errorf("receipt %+v", receipt)
	}
	for _, query := range []string{"user=ada", "user=ada&project=boat"} {
		if left := r.list(t, query+"&state=current,deleted"); len(left) != 0 {
			t.Errorf("%s: left %q", query, texts(left))
		}
	}
	if left := r.list(t, "user=ben"); len(left) != 1 {
		t.Errorf("ben has %q", texts(left))
	}
	r.send(t, "GET", "/v1/entries/k?user=ada", nil).problem(t, 404, "not-found", "")
	r.send(t, "DELETE", "/v1/users/ada", nil).problem(t, 404, "not-found", "")
	r.send(t, "DELETE", "/v1/users/nobody", nil).problem(t, 422, "invalid", "user") // a word for no user
	r.send(t, "DELETE", "/v1/users/eva", nil).problem(t, 404, "not-found", "")
	// What is only on its way is erased, too.
	r.store.Delay(50 * time.Millisecond)
	r.say(t, "dora", "t", 1, "I sail.")
	r.store.Delay(0)
	r.send(t, "DELETE", "/v1/users/dora", nil).want(t, 200)
	r.settle(t)
	if left, err := r.store.Scan(t.Context(), localScope("dora"), storage.Query{}); err != nil || len(left.Memories) != 0 {
		t.Errorf("left of dora: %+v, %v", left, err)
	}
}
