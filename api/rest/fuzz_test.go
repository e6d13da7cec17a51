package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever is sent, nothing panics, nothing is an error of Remora's own, and
// every refusal is a problem.
func FuzzREST(f *testing.F) {
	r := newService(f)
	m := r.add(f, "user=ada", "I sail.", nil)
	for _, pattern := range slices.Sorted(maps.Keys(routes())) {
		method, path, _ := strings.Cut(operationName(pattern), " ")
		f.Add(method, strings.NewReplacer("{id}", m.ID, "{key}", "k").Replace(path), "user=ada&limit=3", `{"text":"x","query":"x","ids":["x"]}`)
	}
	for _, seed := range [][4]string{
		{"GET", "/v1/memories", "user=ada&kind=fact,episode&tag=a&q=x&since=2026-01-01&used=true&order=oldest&cursor=x&minPriority=.5&state=deleted", ""},
		{"GET", "/v1/memories", "user=%00&tenant=%ff&app=%22a%22&project=(key+holder)", ""},
		{"PATCH", "/v1/memories/" + m.ID, "", `{"text":"I paint.","tags":["a"],"priority":0.5,"state":"quarantined","deleted":true,"why":"x"}`},
		{"PUT", "/v1/entries/a/b%2Fc", "namespace=n", `{"value":[1,{"a":null}],"ttl":5}`},
		{"POST", "/v1/recall", "user=ada", `{"message":"Where?","previous":"x","asOf":"2026-01-01","scope":["resources"],"topK":3,"upstream":"u","model":"m"}`},
		{"POST", "/v1/events/message", "", `{"userId":"ada","threadId":"t","msgId":"m","role":"user","content":"hello","tokens":{"input":1,"output":2}}`},
		{"POST", "/v1/resources", "user=ada&resource_uri=x&name=x.html", "<html><body><p>text"},
		{"POST", "/v1/resources", "user=ada&resource_uri=x", "%PDF-1.4\n1 0 obj\n<<"},
		{"POST", "/v1/import", "user=ada&dryRun=true", chatGPT()},
		{"POST", "/v1/import", "user=ada&name=../x", "PK\x03\x04"},
		{"POST", "/v1/import", "name=%c6%00", "0"}, // was an error of ours
		{"GET", "/v1/export", "format=mem0", ""},
		{"GET", "/v1/exchanges/" + strings.Repeat("x", 40), "user=ada", ""},
		{"DELETE", "/v1/conversations/a//b/%00", "user=ada", ""},
		{"\x00", "//v1/../memories", "%zz&;=", "\xff"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target := &url.URL{Path: path, RawQuery: query}
		if unescaped, err := url.PathUnescape(path); err == nil {
			target.Path, target.RawPath = unescaped, path
		}
		if !strings.HasPrefix(path, "/") || strings.HasSuffix(target.Path, "/watch") || len(body) > 1<<16 {
			t.Skip() // the mux gets no such paths, and the stream has no end
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req := (&http.Request{
			Method: method, URL: target, Host: "localhost", RequestURI: target.RequestURI(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Authorization": {"Bearer " + adminToken}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}).WithContext(ctx)
		w := httptest.NewRecorder()
		began := time.Now()
		r.handler.ServeHTTP(w, req)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q %q took %s", method, target, took)
		}
		switch {
		case w.Code == http.StatusInternalServerError:
			t.Fatalf("%q %q: %s", method, target, w.Body)
		case w.Code >= 400:
			if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%q %q: %d is no problem: %s", method, target, w.Code, w.Body)
			}
		case w.Header().Get("Content-Type") == "application/json" && !json.Valid(bytes.TrimSpace(w.Body.Bytes())):
			t.Fatalf("%q %q: no JSON: %s", method, target, w.Body)
		}
	})
}
