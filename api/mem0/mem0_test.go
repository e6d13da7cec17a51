package mem0

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

const adminToken = "admin-0123456789abcdef0123456789abcdef"

// installation is a running service with its store and the face before it.
type installation struct {
	t       testing.TB
	store   *storagetest.Mem
	service *api.Service
	handler http.Handler
}

// start runs a service for the time of a test. tenant is identity.TenantAuto for
// the memory of one machine, identity.TenantKey for one of each key.
func start(t testing.TB, tenant string) *installation {
	t.Helper()
	red, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	store := storagetest.Memory()
	engine := recall.New(recall.DefaultConfig(), store, nil, nil)
	pipeline := persist.New(persist.DefaultConfig(), store, store, engine, red, nil, nil)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = pipeline.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped; engine.Close() })
	s := api.New(api.Config{Token: adminToken}, api.Deps{
		Store: store, Pipeline: pipeline, Engine: engine, Recall: recall.DefaultConfig(), Policy: policy.New(nil),
		Identity: identity.New(identity.Config{Tenant: tenant, Anonymous: identity.AnonymousAuto, SubAgents: "read", Loopback: true}, nil),
		Redact:   redact.NewCache(red).Redact,
		HidesSecret: func(text string) bool {
			redacted, _ := red.Redact(text)
			return red.HidesSecret(redacted)
		},
	})
	return &installation{t, store, s, Handler(s, Options{})}
}

// Keys that an upstream would have accepted, and under which something is
// remembered.
const (
	keyOne = "m0-3f9c27ab5d81e604f2b7c9d0"
	keyTwo = "m0-a81b6e4c09d3f57720e1b4a6"
)

// startKeys runs a service in which each key has a memory of its own.
func startKeys(t *testing.T) *installation {
	t.Helper()
	in := start(t, identity.TenantKey)
	secret, err := in.store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{keyOne, keyTwo} {
		scope := storage.Scope{Tenant: in.service.Identity.TenantOf(secret, key), App: "default", Project: "default", User: "someone"}
		_, err := in.service.Pipeline.Remember(t.Context(), scope, storage.Memory{Kind: storage.KindFact, Text: "The garden has a pond.", Source: "test"})
		if err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// answer is what the face answered.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request with a key. A body that is no string is sent as JSON.
func (in *installation) do(key, method, path string, body any) answer {
	in.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			in.t.Fatal(err)
		}
		content = bytes.NewReader(encoded)
	}
	r := httptest.NewRequestWithContext(in.t.Context(), method, path, content)
	if key != "" {
		r.Header.Set("Authorization", "Token "+key)
	}
	w := httptest.NewRecorder()
	in.handler.ServeHTTP(w, r)
	return answer{in.t, w.Code, w.Header(), w.Body.Bytes()}
}

// as is do for a request that must succeed. It decodes the answer.
func (in *installation) as(key, method, path string, body any) any {
	in.t.Helper()
	a := in.do(key, method, path, body)
	if a.status/100 != 2 {
		in.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		in.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
	return v
}

// obj is a JSON object.
type obj = map[string]any

// results returns the memories of an answer in any shape.
func results(v any) (out []obj) {
	if o, ok := v.(obj); ok {
		v = o["results"]
	}
	list, _ := v.([]any)
	for _, e := range list {
		out = append(out, e.(obj))
	}
	return out
}

// texts returns the field memory of each record.
func texts(records []obj) []string {
	out := []string{}
	for _, r := range records {
		text, _ := r["memory"].(string)
		out = append(out, text)
	}
	return out
}

// settled waits until an event is over and returns it.
func (in *installation) settled(key, id string) obj {
	in.t.Helper()
	for range 6000 {
		e := in.as(key, "GET", "/v1/event/"+id+"/", nil).(obj)
		if e["status"] != statusPending {
			return e
		}
		time.Sleep(10 * time.Millisecond)
	}
	in.t.Fatal("the event is pending after a minute")
	return nil
}

// add hands in messages for a user and waits for the event.
func (in *installation) add(key string, body obj) obj {
	in.t.Helper()
	pending := in.as(key, "POST", "/v3/memories/add/", body).(obj)
	return in.settled(key, pending["event_id"].(string))
}

// say returns messages of the user and the assistant in turn.
func say(words ...string) []obj {
	var out []obj
	for i, text := range words {
		out = append(out, obj{"role": [...]string{"user", "assistant"}[i%2], "content": text})
	}
	return out
}

// addFact keeps one fact at once and returns its id.
func (in *installation) addFact(key, user, text string) string {
	in.t.Helper()
	v := in.as(key, "POST", "/v3/memories/add/", obj{"messages": say(text), "user_id": user, "infer": false}).(obj)
	return results(v)[0]["id"].(string)
}

// field returns the field that a problem names.
func (a answer) field() string {
	var p struct{ Field, Detail string }
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Errorf("%v in %s", err, a.body)
	}
	return p.Field
}
