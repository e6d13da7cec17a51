package mem0

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// What is wrong with a request is said by the field's name. Its value is never
// quoted.
func TestMalformed(t *testing.T) {
	in := start(t, identity.TenantAuto)
	id := in.addFact(adminToken, "ann", "The bell rings at noon.")
	const value = "walrus"
	for _, test := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"POST", "/v3/memories/add/", ``, 422, "body"},
		{"POST", "/v3/memories/add/", `{"messages":"walrus`, 422, "body"},
		{"POST", "/v3/memories/add/", `["walrus"]`, 422, "body"},
		{"POST", "/v3/memories/add/", `{"messages":"a"} {"walrus":1}`, 422, "body"},
		{"POST", "/v3/memories/add/", `{}`, 422, "messages[0]"},
		{"POST", "/v3/memories/add/", `{"messages":[]}`, 422, "messages"},
		{"POST", "/v3/memories/add/", `{"messages":["walrus"]}`, 422, "messages[0]"},
		{"POST", "/v3/memories/add/", `{"messages":[{"content":"walrus"}]}`, 422, "messages[0].role"},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":7,"content":"walrus"}]}`, 422, "messages[0]"},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":["walrus"]}]}`, 422, "messages[1].content"},
		{"POST", "/v3/memories/add/", `{"messages":[{"role":"system","content":"walrus"}]}`, 422, "messages"},
		{"POST", "/v3/memories/add/", `{"messages":"a","user_id":["walrus"]}`, 422, "user_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","user_id":"{{walrus}}"}`, 422, "user_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","user_id":"*"}`, 422, "user_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","agent_id":"wal\u0007rus"}`, 422, "agent_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","app_id":"null"}`, 422, "app_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","run_id":"` + strings.Repeat("walrus", 100) + `"}`, 422, "run_id"},
		{"POST", "/v3/memories/add/", `{"messages":"a","infer":"walrus"}`, 422, "infer"},
		{"POST", "/v3/memories/add/", `{"messages":"a","metadata":"walrus"}`, 422, "metadata"},
		{"POST", "/v3/memories/add/", `{"messages":"a","metadata":{"` + strings.Repeat("walrus", 20) + `":1}}`, 422, "metadata"},
		{"POST", "/v3/memories/add/", `{"messages":"a","categories":["meta:walrus"]}`, 422, "categories[0]"},
		{"POST", "/v3/memories/add/", `{"messages":"a","infer":false,"categories":["said:walrus"]}`, 422, "categories"},
		{"POST", "/v3/memories/add/", `{"messages":"a","timestamp":"walrus"}`, 422, "timestamp"},
		{"POST", "/v3/memories/add/", `{"messages":"a","timestamp":99999999999}`, 422, "messages[0].timestamp"},
		{"POST", "/v3/memories/add/", `{"messages":"a","expiration_date":"walrus"}`, 422, "expiration_date"},
		{"POST", "/v3/memories/add/", `{"messages":"a","immutable":true}`, 422, "immutable"},
		{"POST", "/v3/memories/add/", `{"messages":"` + strings.Repeat("walrus ", 10000) + `"}`, 422, "messages[0].content"},
		{"POST", "/v3/memories/add/", `{"messages":"` + strings.Repeat("walrus ", 200000) + `"}`, 413, ""},
		{"POST", "/v3/memories/add/", strings.Repeat("[", 100) + strings.Repeat("]", 100), 422, "body"},
		{"POST", "/v3/memories/", `{"filters":"walrus"}`, 422, "filters"},
		{"POST", "/v3/memories/", `{"page":"walrus"}`, 422, "page"},
		{"POST", "/v3/memories/", `{"page_size":1001}`, 422, "page_size"},
		{"POST", "/v3/memories/?page=walrus", `{}`, 422, "page"},
		{"POST", "/v3/memories/?page=-1", `{}`, 422, "page"},
		{"POST", "/v3/memories/", `{"start_date":"walrus"}`, 422, "start_date"},
		{"GET", "/v1/memories/?user_id=%00walrus", ``, 422, "user_id"},
		{"GET", "/v1/memories/?limit=walrus", ``, 422, "limit"},
		{"GET", "/v1/memories/?end_date=walrus", ``, 422, "end_date"},
		{"GET", "/v1/memories/?metadata=walrus", ``, 422, "metadata"},
		{"POST", "/v3/memories/search/", `{}`, 422, "query"},
		{"POST", "/v3/memories/search/", `{"query":" "}`, 422, "query"},
		{"POST", "/v3/memories/search/", `{"query":"` + strings.Repeat("walrus ", 1000) + `"}`, 422, "query"},
		{"POST", "/v3/memories/search/", `{"query":"a","top_k":0}`, 422, "top_k"},
		{"POST", "/v3/memories/search/", `{"query":"a","top_k":101}`, 422, "top_k"},
		{"POST", "/v3/memories/search/", `{"query":"a","threshold":"walrus"}`, 422, "threshold"},
		{"POST", "/v1/memories/search/", `{"query":"a","limit":0}`, 422, "limit"},
		{"PUT", "/v1/memories/" + id + "/", `{}`, 422, "body"},
		{"PUT", "/v1/memories/" + id + "/", `{"text":""}`, 422, "text"},
		{"PUT", "/v1/memories/" + id + "/", `{"text":"` + strings.Repeat("walrus ", 1000) + `"}`, 422, "text"},
		{"PUT", "/v1/memories/" + id + "/", `{"text":7}`, 422, "text"},
		{"PUT", "/v1/memories/" + id + "/", `{"text":"a","timestamp":1}`, 422, "timestamp"},
		{"PUT", "/v1/memories/" + id + "/", `{"text":"a","expiration_date":"2030-01-01"}`, 422, "expiration_date"},
		{"PUT", "/v1/memories/" + id + "/", `{"metadata":["walrus"]}`, 422, "metadata"},
		{"PUT", "/v1/batch/", `{"memories":[]}`, 422, "memories"},
		{"DELETE", "/v1/batch/", `{"memories":["walrus"]}`, 422, "memories"},
		{"POST", "/v1/feedback/", `{"memory_id":"` + id + `","feedback":"walrus"}`, 422, "feedback"},
		{"POST", "/v1/feedback/", `{"memory_id":"` + id + `","feedback":"POSITIVE","feedback_reason":"` + strings.Repeat("walrus", 100) + `"}`, 422, "feedback_reason"},
		{"POST", "/v1/exports/", `{"filters":{"walrus":1}}`, 422, "filters.walrus"},
		{"GET", "/v1/memories/walrus/", ``, 404, ""},
		{"GET", "/v1/event/walrus/", ``, 404, ""},
	} {
		a := in.do(adminToken, test.method, test.path, test.body)
		if a.status != test.status || a.field() != test.field {
			t.Errorf("%s %s %.80s: %d %s, want %d about %q", test.method, test.path, test.body, a.status, a.body, test.status, test.field)
		}
		if strings.Contains(string(a.body), value) && test.field != "filters.walrus" {
			t.Errorf("%s %s %.80s quotes the value: %s", test.method, test.path, test.body, a.body)
		}
		if !strings.Contains(string(a.body), `"detail":"`) { // which mem0's clients show
			t.Errorf("%s %s: no detail: %s", test.method, test.path, a.body)
		}
	}
}

func FuzzHandler(f *testing.F) {
	for _, e := range exchanges("id", "event", "export") {
		f.Add(e.method, e.path, "")
	}
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"I live in Porto."}],"user_id":"a","metadata":{"a":[1,{"b":null}]}}`,
		`{"query":"a","filters":{"AND":[{"user_id":"a"},{"created_at":{"gte":"2024-01-01"}}]},"top_k":3,"threshold":0.1}`,
		`{"memories":[{"memory_id":"a","text":"b"}]}`, `{"filters":{"OR":[{"categories":{"in":["a"]}}]},"fields":["memory"],"page":2}`,
		`{"text":"a","metadata":{"b":"c"}}`, `{"memory_id":"a","feedback":"POSITIVE"}`, `null`, `[]`, `"a"`,
	} {
		for _, path := range []string{"/v3/memories/add/", "/v3/memories/", "/v3/memories/search/", "/v1/batch/", "/v1/exports/get/", "/v1/feedback/", "/memories"} {
			f.Add("POST", path, body)
			f.Add("PUT", path, body)
		}
	}
	in := start(f, identity.TenantAuto)
	in.addFact(adminToken, "ann", "The bell rings at noon.")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body))
		target, err := r.URL.Parse(path)
		if err != nil || method == "" {
			return
		}
		r.Method, r.URL, r.RequestURI = method, target, target.RequestURI()
		r.Header.Set("Authorization", "Bearer "+adminToken)
		w := httptest.NewRecorder()
		in.handler.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 501 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
