package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

// canary is in every value that is refused. No problem and no log line may have
// it.
const canary = "canary-4711"

// long returns a text of n bytes that begins with the canary.
func long(n int) string { return canary + strings.Repeat("x", max(0, n-len(canary))) }

func repeated(n int, v string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Every field has a limit, and a problem names the field.
func TestLimitsOfFields(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I play the cello.", nil)
	one := "/v1/memories/" + m.ID
	message := func(more object) object {
		out := object{"userId": "ada", "threadId": "t", "msgId": "m", "role": "user", "content": "hello"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	for _, c := range []struct {
		method, target string
		body           any
		field          string
	}{
		{"POST", "/v1/memories", object{}, "text"},
		{"POST", "/v1/memories", object{"text": ""}, "text"},
		{"POST", "/v1/memories", object{"text": long(1025)}, "text"},
		{"POST", "/v1/memories", object{"text": "x", "kind": canary}, "kind"},
		{"POST", "/v1/memories", object{"text": "x", "kind": "resource"}, "kind"},
		{"POST", "/v1/memories", object{"text": "x", "tags": repeated(33, canary)}, "tags"},
		{"POST", "/v1/memories", object{"text": "x", "tags": []string{"ok", ""}}, "tags[1]"},
		{"POST", "/v1/memories", object{"text": "x", "tags": []string{long(129)}}, "tags[0]"},
		{"POST", "/v1/memories", object{"text": "x", "tags": []string{"said:" + canary}}, "tags"},
		{"POST", "/v1/memories", object{"text": "x", "tags": []string{"resource:" + canary}}, "tags"},
		{"POST", "/v1/memories", object{"text": "x", "conversation": long(513)}, "conversation"},
		{"POST", "/v1/memories", object{"text": "x", "priority": 1.01}, "priority"},
		{"POST", "/v1/memories", object{"text": "x", "priority": -1}, "priority"},
		{"POST", "/v1/memories", object{"text": "x", "eventTime": canary}, "eventTime"},
		{"POST", "/v1/memories", object{"text": "x", "eventTime": "0001-01-01"}, "eventTime"},
		{"PATCH", one, object{}, "body"},
		{"PATCH", one, object{"why": canary}, "body"},
		{"PATCH", one, object{"text": ""}, "text"},
		{"PATCH", one, object{"text": long(1025)}, "text"},
		{"PATCH", one, object{"tags": repeated(33, canary)}, "tags"},
		{"PATCH", one, object{"tags": []string{long(129)}}, "tags[0]"},
		{"PATCH", one, object{"tags": []string{"supersedes:" + canary}}, "tags"},
		{"PATCH", one, object{"priority": 7}, "priority"},
		{"PATCH", one, object{"state": canary}, "state"},
		{"PATCH", one, object{"state": "deleted"}, "state"},
		{"PATCH", one, object{"priority": 1, "why": long(513)}, "why"},
		{"DELETE", one + "?why=" + long(513), nil, "why"},
		{"POST", one + "/undo", object{"why": long(513)}, "why"},
		{"POST", one + "/prefer", object{"why": long(513)}, "why"},
		{"POST", "/v1/memories/merge", object{}, "ids"},
		{"POST", "/v1/memories/merge", object{"ids": repeated(51, canary)}, "ids"},
		{"POST", "/v1/memories/merge", object{"ids": []string{m.ID, long(257)}}, "ids[1]"},
		{"POST", "/v1/memories/merge", object{"ids": []string{m.ID, "x"}, "text": long(1025)}, "text"},
		{"POST", "/v1/memories/merge", object{"ids": []string{m.ID, "x"}, "why": long(513)}, "why"},
		{"GET", "/v1/memories?source=" + long(513), nil, "source"},
		{"GET", "/v1/contradictions?user=ada&cursor=" + canary, nil, "cursor"},
		{"GET", "/v1/contradictions?limit=501", nil, "limit"},
		{"POST", "/v1/forget-requests/x", object{}, "forget"},
		{"POST", "/v1/forget-requests/x", object{"forget": true, "ids": repeated(501, canary)}, "ids"},
		{"POST", one + "/feedback", object{}, "helped"},
		{"POST", one + "/feedback", object{"helped": true, "why": long(513)}, "why"},
		{"POST", "/v1/memories/delete", object{}, "ids"},
		{"POST", "/v1/memories/delete", object{"ids": []string{}}, "ids"},
		{"POST", "/v1/memories/delete", object{"ids": repeated(501, canary)}, "ids"},
		{"POST", "/v1/memories/delete", object{"ids": []string{"x", long(257)}}, "ids[1]"},
		{"POST", "/v1/memories/delete", object{"ids": []string{m.ID}, "why": long(513)}, "why"},
		{"POST", "/v1/memories/search", object{}, "query"},
		{"POST", "/v1/memories/search", object{"query": " \t\n"}, "query"},
		{"POST", "/v1/memories/search", object{"query": long(4097)}, "query"},
		{"POST", "/v1/memories/search", object{"query": "x", "topK": 101}, "topK"},
		{"POST", "/v1/memories/search", object{"query": "x", "topK": -1}, "topK"},
		{"POST", "/v1/memories/search", object{"query": "x", "scope": []string{"resources", canary}}, "scope[1]"},
		{"POST", "/v1/memories/search", object{"query": "x", "kinds": []string{canary}}, "kinds[0]"},
		{"POST", "/v1/memories/search", object{"query": "x", "tags": []string{long(129)}}, "tags[0]"},
		{"POST", "/v1/memories/search", object{"query": "x", "conversation": long(513)}, "conversation"},
		{"POST", "/v1/recall", object{}, "message"},
		{"POST", "/v1/recall", object{"message": " "}, "message"},
		{"POST", "/v1/recall", object{"message": long(65537)}, "message"},
		{"POST", "/v1/recall", object{"message": "x", "previous": long(65537)}, "previous"},
		{"POST", "/v1/recall", object{"message": "x", "conversation": long(513)}, "conversation"},
		{"POST", "/v1/recall", object{"message": "x", "upstream": long(513)}, "upstream"},
		{"POST", "/v1/recall", object{"message": "x", "model": long(513)}, "model"},
		{"POST", "/v1/recall", object{"message": "x", "asOf": canary}, "asOf"},
		{"POST", "/v1/recall", object{"message": "x", "scope": []string{canary}}, "scope[0]"},
		{"POST", "/v1/recall", object{"message": "x", "topK": 1000}, "topK"},
		{"POST", "/v1/context", object{"facts": 501}, "facts"},
		{"POST", "/v1/context", object{"facts": -1}, "facts"},
		{"POST", "/v1/context", object{"conversations": 101}, "conversations"},
		{"POST", "/v1/context", object{"namespace": long(33)}, "namespace"},
		{"POST", "/v1/resources", "some text", "resource_uri"},
		{"POST", "/v1/resources?resource_uri=" + long(513), "some text", "resource_uri"},
		{"POST", "/v1/resources?resource_uri=x&tag=" + long(129), "some text", "tags[0]"},
		{"POST", "/v1/resources?resource_uri=x&tag=project:" + canary, "some text", "tags"},
		{"DELETE", "/v1/resources", nil, "resource_uri"},
		{"DELETE", "/v1/resources?resource_uri=" + long(513), nil, "resource_uri"},
		{"DELETE", "/v1/resources?resource_uri=x&why=" + long(513), nil, "why"},
		{"PUT", "/v1/entries/k", object{"value": canary}, "ttl"},
		{"PUT", "/v1/entries/k", object{"value": canary, "ttl": 0}, "ttl"},
		{"PUT", "/v1/entries/k", object{"value": canary, "ttl": 31_536_001}, "ttl"},
		{"PUT", "/v1/entries/k", object{"ttl": 1}, "value"},
		{"PUT", "/v1/entries/k", object{"ttl": 1, "value": long(65535)}, "value"},
		{"PUT", "/v1/entries/" + long(201), object{"ttl": 1, "value": 1}, "key"},
		{"PUT", "/v1/entries/k%07" + canary, object{"ttl": 1, "value": 1}, "key"},
		{"PUT", "/v1/entries/k?namespace=" + long(33), object{"ttl": 1, "value": 1}, "namespace"},
		{"GET", "/v1/entries/" + long(201), nil, "key"},
		{"DELETE", "/v1/entries/" + long(201), nil, "key"},
		{"GET", "/v1/entries?namespace=" + long(33), nil, "namespace"},
		{"GET", "/v1/entries?prefix=" + long(201), nil, "key"},
		{"GET", "/v1/entries?limit=" + canary, nil, "limit"},
		{"POST", "/v1/events/message", message(object{"threadId": ""}), "threadId"},
		{"POST", "/v1/events/message", message(object{"threadId": long(257)}), "threadId"},
		{"POST", "/v1/events/message", message(object{"msgId": ""}), "msgId"},
		{"POST", "/v1/events/message", message(object{"msgId": long(257)}), "msgId"},
		{"POST", "/v1/events/message", message(object{"role": canary}), "role"},
		{"POST", "/v1/events/message", message(object{"content": " "}), "content"},
		{"POST", "/v1/events/message", message(object{"content": long(65537)}), "content"},
		{"POST", "/v1/events/message", message(object{"speaker": long(257)}), "speaker"},
		{"POST", "/v1/events/message", message(object{"model": long(257)}), "model"},
		{"POST", "/v1/events/message", message(object{"time": canary}), "time"},
		{"POST", "/v1/events/message", message(object{"userId": canary + "\x01"}), "userId"},
		{"POST", "/v1/events/message", message(object{"tokens": object{"input": -1}}), "tokens"},
		{"GET", "/v1/export?format=" + canary, nil, "format"},
		{"POST", "/v1/import?format=" + canary, "{}", "format"},
		{"POST", "/v1/import?name=" + long(201), "{}", "name"},
		{"POST", "/v1/import?name=" + canary + "%00", "{}", "name"},
		{"POST", "/v1/import?name=" + canary + "%ff", "{}", "name"},
		{"POST", "/v1/import?dryRun=" + canary, "{}", "dryRun"},
		{"GET", one + "?deleted=" + canary, nil, "deleted"},
		{"GET", "/v1/users?limit=" + canary, nil, "limit"},
		{"GET", "/v1/exchanges?limit=" + canary, nil, "limit"},
		{"DELETE", "/v1/users/ada?user=" + canary, nil, "user"},
		{"DELETE", "/v1/conversations/" + long(513), nil, "conversation"},
		{"GET", "/v1/audits?user=%7B" + canary + "%7D%00", nil, "user"},
		{"GET", "/v1/memories?tenant=%00" + canary, nil, "tenant"},
		{"GET", "/v1/memories?project=%00" + canary, nil, "project"},
	} {
		target := c.target
		if !strings.Contains(target, "user=") && !strings.Contains(target, "/v1/events") && !strings.Contains(target, "/v1/users/") {
			target += map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")] + "user=ada"
		}
		a := r.send(t, c.method, target, c.body)
		a.what = fmt.Sprintf("%s %.60s %.90v", c.method, c.target, c.body)
		a.problem(t, http.StatusUnprocessableEntity, "invalid", c.field)
		if strings.Contains(a.body, canary) {
			t.Errorf("%s: the problem quotes the value: %s", a.what, a.body)
		}
	}
	for _, c := range []struct {
		media, body, kind, field string
		status                   int
	}{
		{"text/plain", " \n\n ", "invalid", "body", 422}, {"application/pdf; v=" + canary, "%PDF-1.7 " + canary, "invalid", "body", 422},
		{"image/" + canary, canary, "unsupported-media", "", 415},
	} {
		a := r.send(t, "POST", "/v1/resources?user=ada&resource_uri=x", c.body, "Content-Type", c.media)
		if a.problem(t, c.status, c.kind, c.field); strings.Contains(a.body, canary) {
			t.Errorf("%s: the problem quotes the value: %s", a.what, a.body)
		}
	}
	r.send(t, "GET", "/v1/memories", nil, "X-User-Id", canary+"\x01").problem(t, 422, "invalid", "x-user-id")
	if strings.Contains(r.log.String(), canary) {
		t.Errorf("the log has a value that was refused: %s", r.log)
	}
	if got := get[api.Memory](t, r.send(t, "GET", one, nil)); got.Version != 1 {
		t.Errorf("a refused change was made: %+v", got)
	}
}

// What is at its limit is taken.
func TestAtTheLimits(t *testing.T) {
	r := newService(t)
	text := strings.Repeat("é", 1023) + "."
	m := r.add(t, "user="+strings.Repeat("u", 512), text, object{
		"tags": append(repeated(31, "t"), strings.Repeat("t", 128)), "conversation": strings.Repeat("c", 512), "priority": 1,
	})
	if m.Text != text || len(m.Tags) != 2 {
		t.Errorf("saved %+v", m)
	}
	r.send(t, "POST", "/v1/memories/search?user=ada", object{"query": strings.Repeat("q", 4096), "topK": 100}).want(t, 200)
	r.send(t, "POST", "/v1/recall?user=ada", object{"message": strings.Repeat("q ", 32768), "topK": 100}).want(t, 200)
	r.send(t, "GET", "/v1/memories?user=ada&limit=500", nil).want(t, 200)
	value, _ := json.Marshal(strings.Repeat("v", 65534))
	r.send(t, "PUT", "/v1/entries/"+strings.Repeat("k", 200)+"?user=ada&namespace="+strings.Repeat("n", 32), object{"value": json.RawMessage(value), "ttl": 31_536_000}).want(t, 201)
	r.send(t, "POST", "/v1/events/message", object{
		"userId": "ada", "threadId": strings.Repeat("t", 256), "msgId": strings.Repeat("m", 256), "role": "assistant", "content": strings.Repeat("c", 65536),
	}).want(t, 202)
}

func TestBodies(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I play the cello.", nil)
	deep := func(n int) string { return `{"value":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"ttl":9}` }
	for _, route := range []struct{ method, path string }{
		{"POST", "/v1/memories"}, {"POST", "/v1/memories/search"}, {"POST", "/v1/memories/delete"}, {"PATCH", "/v1/memories/" + m.ID},
		{"POST", "/v1/memories/" + m.ID + "/undo"}, {"POST", "/v1/memories/" + m.ID + "/feedback"}, {"POST", "/v1/recall"}, {"POST", "/v1/context"},
		{"PUT", "/v1/entries/k"}, {"POST", "/v1/events/message"},
	} {
		for _, c := range []struct {
			body, field string
			status      int
		}{
			{" ", "body", 422},
			{canary, "body", 422},
			{`"` + canary + `"`, "body", 422},
			{`[]`, "body", 422},
			{`{"a`, "body", 422},
			{`{} {"` + canary + `":1}`, "body", 422},
			{`{"an unknown field":"` + canary + `"}`, "body", 422},
			{`{"nonsense":"` + canary + `"}`, "nonsense", 422},
			{"{\"x\":\"" + canary + "\xff\"}", "body", 422},
			{deep(64), "body", 422},
			{`{"x":"` + long(1<<20) + `"}`, "", 413},
		} {
			if c.body == `{} {"`+canary+`":1}` && route.path == "/v1/events/message" {
				continue // {} lacks fields, but the second value comes first
			}
			a := r.send(t, route.method, route.path+"?user=ada", c.body)
			a.what = fmt.Sprintf("%s %s %.50s", route.method, route.path, c.body)
			a.problem(t, c.status, map[int]string{422: "invalid", 413: "too-large"}[c.status], c.field)
			if strings.Contains(a.body, canary) {
				t.Errorf("%s: the problem quotes the body: %s", a.what, a.body)
			}
		}
	}
	for body, field := range map[string]string{
		`{"text":7}`: "text", `{"text":["` + canary + `"]}`: "text", `{"text":"x","tags":"` + canary + `"}`: "tags", `{"text":"x","priority":"` + canary + `"}`: "priority",
		`{"text":"x","priority":1e999}`: "priority", `{"text":"x","tags":[{"` + canary + `":1}]}`: "tags",
	} {
		a := r.send(t, "POST", "/v1/memories?user=ada", body)
		a.problem(t, 422, "invalid", field)
		if strings.Contains(a.body, canary) {
			t.Errorf("%s: the problem quotes the value: %s", body, a.body)
		}
	}
	// Two routes need no body, and the rest do.
	r.send(t, "POST", "/v1/context?user=ada", nil).want(t, 200)
	r.send(t, "POST", "/v1/memories?user=ada", nil).problem(t, 422, "invalid", "body")
	// A body whose length is not announced has the same limit.
	req := r.newRequest(t, "POST", "/v1/memories?user=ada", nil)
	req.Body, req.ContentLength = http.NoBody, -1
	endless := &endlessBody{}
	req.Body = endless
	a := r.serve(req)
	if a.status != http.StatusRequestEntityTooLarge || endless.read > 2<<20 {
		t.Errorf("an endless body: %d after %d bytes", a.status, endless.read)
	}
	if strings.Contains(r.log.String(), canary) {
		t.Errorf("the log has what was refused: %s", r.log)
	}
}

// endlessBody is white space without an end.
type endlessBody struct{ read int }

func (e *endlessBody) Read(p []byte) (int, error) {
	n := copy(p, bytes.Repeat([]byte(" "), len(p)))
	e.read += n
	return n, nil
}

func (e *endlessBody) Close() error { return nil }

// Secrets are refused, and so is what redaction leaves nothing of. Neither is
// quoted or logged.
func TestSecretsAreNotSaved(t *testing.T) {
	r := newService(t)
	const secret = "sk-proj-Zk3vQ9sLr8TnW2yXbC4dEfGhJm5pRq7uVw1A"
	m := r.add(t, "user=ada", "I play the cello.", nil)
	for _, c := range []struct {
		method, target string
		body           any
		kind           string
	}{
		{"POST", "/v1/memories?user=ada", object{"text": "my key is " + secret}, "secret"},
		{"PATCH", "/v1/memories/" + m.ID, object{"text": "my key is " + secret}, "secret"},
		{"POST", "/v1/memories?user=ada", object{"text": "ada@example.com"}, "no-text"},
		{"PUT", "/v1/entries/k?user=ada", object{"value": secret, "ttl": 60}, "secret"},
		{"PUT", "/v1/entries/k?user=ada", object{"value": object{"headers": object{"authorization": "Bearer " + secret}}, "ttl": 60}, "secret"},
		{"PUT", "/v1/entries/k?user=ada", `{"value":{"k":["\u0073k-proj-Zk3vQ9sLr8TnW2yXbC4dEfGhJm5pRq7uVw1A"]},"ttl":60}`, "secret"},
	} {
		a := r.send(t, c.method, c.target, c.body)
		a.problem(t, 422, c.kind, "")
		if strings.Contains(a.body, secret) {
			t.Errorf("the problem quotes it: %s", a.body)
		}
	}
	if got := texts(r.list(t, "user=ada&state=current,quarantined,superseded")); len(got) != 1 {
		t.Errorf("saved %q", got)
	}
	r.send(t, "GET", "/v1/entries/k?user=ada", nil).problem(t, 404, "not-found", "")
	if strings.Contains(r.log.String(), secret) {
		t.Errorf("the log has it: %s", r.log)
	}
}
