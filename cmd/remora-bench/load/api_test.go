package load

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// reader is what Remora reads the dialect of a with: another hand than the one
// that writes it here.
func reader(t *testing.T, a api) dialect.Dialect {
	t.Helper()
	for _, d := range []dialect.Dialect{dialect.Chat{}, dialect.Responses{}, dialect.Messages{}} {
		if d.Name() == a.name {
			return d
		}
	}
	t.Fatalf("no dialect is called %s", a.name)
	return nil
}

// What the mock upstream answers is a whole answer to whoever reads the
// dialect, as JSON and as a stream.
func TestMockSpeaksDialects(t *testing.T) {
	base := "http://" + startMock(t)
	ask := func(a api, body string) (contentType string, answer []byte) {
		r, err := http.Post(base+a.path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		answer, err = io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("status %d, %v", r.StatusCode, err)
		}
		return r.Header.Get("Content-Type"), answer
	}
	ids := map[string]bool{}
	for _, a := range apis() {
		t.Run(a.name, func(t *testing.T) {
			d := reader(t, a)
			for range 2 {
				kind, body := ask(a, `{"model":"any"}`)
				reply, err := d.Reply(body)
				if err != nil || reply.Finish != "stop" || len(reply.Text) < 200 || kind != "application/json" {
					t.Errorf("%s %+v, %v of\n%s", kind, reply, err, body)
				}
				if len(body) != jsonReplySize {
					t.Errorf("body has %d bytes, want %d", len(body), jsonReplySize)
				}
				kind, stream := ask(a, `{"model":"any","stream":true}`)
				reply2, err := d.ReplyStream(stream)
				if err != nil || reply2.Finish != "stop" || !reply2.Ended || len(strings.Fields(reply2.Text)) < 4 || kind != "text/event-stream" {
					t.Errorf("%s %+v, %v of\n%s", kind, reply2, err, stream)
				}
				if n := bytes.Count(stream, []byte(sentMark+"1")); n != 4 { // begins with 1 until 2033
					t.Errorf("%d of 4 events bear the time:\n%s", n, stream)
				}
				if a.name == "responses" {
					for _, id := range []string{reply.ID, reply2.ID} {
						if ids[id] || !strings.HasPrefix(id, idMark) {
							t.Errorf("id %q is none or was given twice", id)
						}
						ids[id] = true
					}
					if n := bytes.Count(stream, []byte(reply2.ID)); n != 3 {
						t.Errorf("the id %s stands %d times in its stream, want in each of 3 events", reply2.ID, n)
					}
				}
			}
		})
	}
}

func TestAPIAt(t *testing.T) {
	for line, want := range map[string]int{
		"POST /v1/chat/completions HTTP/1.1": 0, "POST /v1/responses HTTP/1.1": 1, "POST /v1/messages HTTP/1.1": 2,
		"POST /v1/messages/count_tokens HTTP/1.1": 0, "GET / HTTP/1.1": 0, "nonsense": 0,
	} {
		if got := apiAt(apis(), []byte(line)); got != want {
			t.Errorf("apiAt(%q) = %d, want %d", line, got, want)
		}
	}
}

func TestCellName(t *testing.T) {
	for _, tc := range []struct {
		api     int
		forward bool
		events  int
		rate    float64
		want    string
	}{
		{0, false, 0, 0, "json-16KiB-c64"},
		{0, false, 3, 500, "sse-16KiB-c64-r500"},
		{1, false, 0, 0, "responses-json-16KiB-c64"},
		{0, true, 0, 0, "forward-json-16KiB-c64"},
		{2, true, 3, 0, "forward-messages-sse-16KiB-c64"},
	} {
		c := cell{api: apis()[tc.api], forward: tc.forward, size: 16 << 10, conns: 64, rate: tc.rate, script: replyScript{events: tc.events}}
		if got := c.name(); got != tc.want {
			t.Errorf("name = %s, want %s", got, tc.want)
		}
	}
}

// checkConversation reads body as Remora does: a conversation whose newest turn
// is the question, which no other has.
func checkConversation(t *testing.T, a api, body []byte, question string) *dialect.Request {
	t.Helper()
	d := reader(t, a)
	req, err := d.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	if req.System() != benchSystem {
		t.Errorf("system prompt = %q", req.System())
	}
	messages := req.Messages
	first := 0
	if messages[0].Role == dialect.RoleSystem {
		first = 1
	}
	if n := len(messages) - first; n < 3 || n > 80 {
		t.Fatalf("%d messages, want a conversation of 3 to 80", n)
	}
	for i := first; i < len(messages); i++ {
		if want := []dialect.Role{dialect.RoleUser, dialect.RoleAssistant}[(i-first)%2]; messages[i].Role != want || req.Text(i) == "" {
			t.Errorf("message %d has role %v and text %q, want role %v", i, messages[i].Role, req.Text(i), want)
		}
	}
	newest := req.Text(len(messages) - 1)
	if req.Turn != len(messages)-1 || !strings.HasPrefix(newest, question+" ") {
		t.Errorf("turn %d of %d messages, the newest is %q", req.Turn, len(messages), newest)
	}
	ref := newest[len(newest)-refLen-1 : len(newest)-1]
	if !strings.HasPrefix(req.Text(first), ref) {
		t.Errorf("first user message %q lacks the reference %q", req.Text(first), ref)
	}
	if _, err := d.Insert(req, req.Turn, dialect.BeforeUser, "block"); err != nil {
		t.Errorf("no memory can be inserted: %v", err)
	}
	return req
}

func TestRequestTemplate(t *testing.T) {
	for _, a := range apis() {
		for _, size := range []int{minBody, 5000, 16 << 10, 256 << 10} {
			for _, events := range []int{0, 7} {
				t.Run(fmt.Sprintf("%s, %d bytes, %d events", a.name, size, events), func(t *testing.T) {
					testRequestTemplate(t, a, size, events)
				})
			}
		}
	}
}
