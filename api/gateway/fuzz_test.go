package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzHandler checks that no body makes a server error, or an answer with the
// key.
func FuzzHandler(f *testing.F) {
	r := newRig(f, nil, Options{})
	h := Handler(r.service, Options{})
	for _, path := range []string{"/memories/search", "/memories/add", "/memories/flush", "/", "/memories/search/x"} {
		f.Add(path, body(map[string]any{"query": "dog", "scope": []string{"resources"}, "top_k": 3}))
		f.Add(path, body(map[string]any{"session_id": "chat:one", "messages": said("hello there", "hi")}))
		f.Add(path, body(map[string]any{"user_id": nil, "user_key": []string{token}}))
	}
	f.Add("/memories/add", `{"user_id":"ines","user_key":"`+token+`","session_id":"\ud800","messages":[{"role":"user","timestamp":1e3,"content":"\u0000"}]}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#%\x7f") || strings.ContainsFunc(path, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "http://remora"+path, strings.NewReader(body)))
		if w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("the answer holds the key: %s", w.Body)
		}
	})
}
