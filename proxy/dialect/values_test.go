package dialect

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ids returns all ids of a request.
func (r *Request) ids() []string {
	return []string{r.Model, r.User, r.Conversation, r.CacheKey, r.MetadataUser}
}

var idBodies = []struct {
	d    Dialect
	body string // $0 to $4 stand for the ids
}{
	{Chat{}, `{"model":"$0","user":"$1","conversation":{"pad":"p","id":"$2"},"prompt_cache_key":"$3","metadata":{"pad":[{}],"user_id":"$4"},"messages":[{"role":"user","content":"q"}]}`},
	{Messages{}, `{"model":"$0","metadata":{"user_id":"$4"},"messages":[{"role":"user","content":"q"}]}`},
	{Responses{}, `{"model":"$0","safety_identifier":"$1","conversation":"$2","prompt_cache_key":"$3","metadata":{"user_id":"$4"},"input":"q"}`},
}

func idBody(format string, ids [5]string) []byte {
	return []byte(strings.NewReplacer("$0", ids[0], "$1", ids[1], "$2", ids[2], "$3", ids[3], "$4", ids[4]).Replace(format))
}

// TestLongIDsAreNone checks the limit of ids, and that a conversation at the
// server must have a readable id.
func TestLongIDsAreNone(t *testing.T) {
	fits, long := strings.Repeat("x", maxID-2), strings.Repeat("x", maxID-1)
	for _, b := range idBodies {
		for at := range 5 {
			for _, id := range []string{fits, long} {
				ids := [5]string{"a", "b", "c", "d", "e"}
				ids[at] = id
				req, err := b.d.Parse(idBody(b.body, ids))
				if b.d.Name() == "responses" && at == 2 && id == long {
					if !errors.Is(err, ErrMalformed) {
						t.Errorf("a conversation with an unread id: %v", err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				want := ids
				if id == long {
					want[at] = ""
				}
				if b.d.Name() == "messages" {
					want = [5]string{want[0], "", "", "", want[4]}
				}
				if diff := cmp.Diff(want[:], req.ids()); diff != "" {
					t.Errorf("%s, id %d of %d bytes (-want +got):\n%.500s", b.d.Name(), at, len(id), diff)
				}
			}
		}
	}
}

// TestIDsKeepNothingAlive checks that the ids do not keep the body alive.
func TestIDsKeepNothingAlive(t *testing.T) {
	const size = 8 << 20
	for _, b := range idBodies {
		kept := make([][]string, 0, 4)
		before := heap()
		for range cap(kept) {
			body := idBody(b.body, [5]string{"a", "b", "c", "d", "e"})
			pad := `"pad":"` + strings.Repeat("p", size) + `",`
			body = []byte(strings.Replace(string(body), `"metadata":{`, `"metadata":{`+pad, 1))
			body = []byte(strings.Replace(string(body), `"conversation":{`, `"conversation":{`+pad, 1))
			req, err := b.d.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, req.ids())
		}
		if after := heap(); after > before+size {
			t.Errorf("%s: %d ids hold %d bytes", b.d.Name(), len(kept), after-before)
		}
		runtime.KeepAlive(kept)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMetadataIsNotDecoded checks that metadata of any size is walked, and not
// copied or decoded.
func TestMetadataIsNotDecoded(t *testing.T) {
	members := strings.Repeat(`"k":[1],`, 1<<20)
	for _, b := range []string{
		`{"messages":[{"role":"user","content":"q"}],"metadata":{` + members + `"user_id":"u"}}`,
		`{"messages":[{"role":"user","content":"q"}],"metadata":{"user_id":` + string(quoted("{"+members+`"z":1}`)) + `}}`,
		`{"messages":[{"role":"user","content":"q"}],"max_tokens":[` + strings.Repeat("1,", 1<<20) + `1]}`,
	} {
		body := []byte(b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Chat{}.Parse(body)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%.60s: %d bytes are allocated for a body of %d", body, took, len(body))
		}
	}
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

func TestMember(t *testing.T) {
	for _, tt := range []struct{ object, want string }{
		{`{"id":"a"}`, "a"},
		{` {"x":{"id":"no"},"id":"a\n\u00e9"} `, "a\né"},
		{`{"\u0069d":"a"}`, "a"},
		{`{"id":"a","id":"b"}`, "b"},
		{`{"id":"a","id":null}`, ""},
		{`{"id":7}`, ""},
		{`{"Id":"a"}`, ""},
		{`{"i.d":"a"}`, ""},
		{`["id"]`, ""},
		{`{"id":"a"`, ""},
		{`{"id":"a"}x`, ""},
		{``, ""},
		{strings.Repeat("[", 1<<20), ""},
		{strings.Repeat("[", maxObject), ""},
		{`{"id":"` + strings.Repeat("x", maxID) + `"}`, ""},
		{`{"pad":"` + strings.Repeat("x", maxObject) + `","id":"a"}`, ""},
	} {
		if got := Member(tt.object, "id"); got != tt.want {
			t.Errorf("%.40q: got %.40q, want %q", tt.object, got, tt.want)
		}
	}
}

func TestClientMetadataIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxClientMetadata)
	got := (Responses{}).ClientMetadata([]byte(`{"client_metadata":{"a":"1","n":[{}],"b":"` + long + `","c":"2"}}`))
	if diff := cmp.Diff(map[string]string{"a": "1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%.300s", diff)
	}
}
