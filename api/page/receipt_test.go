package page

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// shownBlock renders an insertion and returns the text of its lines as a
// browser reads them, and where each line leads.
func shownBlock(t *testing.T, in receipt.Insertion) (text string, links []string) {
	t.Helper()
	var page bytes.Buffer
	views := parseViews(readAssets())
	if err := views["receipt"].ExecuteTemplate(&page, "insertion", map[string]any{"b": base{}, "i": &inserted{Insertion: in}}); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&page)
	if err != nil {
		t.Fatal(err)
	}
	class := func(n *html.Node, want string) bool {
		for _, a := range n.Attr {
			if a.Key == "class" && strings.Fields(a.Val + " ")[0] == want {
				return true
			}
		}
		return false
	}
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode && n.Data == "span" && class(n, "words"):
			for child := range n.Descendants() {
				if child.Type == html.TextNode {
					text += child.Data
				}
			}
			text += "\n"
			links = append(links, "")
		case n.Type == html.ElementNode && n.Data == "a" && len(links) > 0:
			for _, a := range n.Attr {
				if a.Key == "href" {
					links[len(links)-1] = a.Val
				}
			}
		}
	}
	return text, links
}

// TestInsertion compares what is shown with the bytes that went out.
func TestInsertion(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "</span></div> & &amp; &lt;", `{{.}} ${x} 'quotes' "double"`,
		"  two  spaces  ", "naïve façade, 日本語, 👩‍👩‍👧, \u202eright to left", strings.Repeat("unbreakable", 200), "a\\nb\ttab",
	}
	var lines []fence.Line
	for i, text := range hostile {
		lines = append(lines, fence.Line{ID: string(rune('a' + i)), Who: "user", Text: text, Time: 1_700_000_000_000})
	}
	block := fence.Render("00112233aabbccdd", lines, fence.Options{})
	for _, replayed := range []bool{false, true} {
		text, links := shownBlock(t, receipt.Insertion{Placement: "beforeUser", Offset: 12, Replayed: replayed, Text: block.Text, Spans: block.Spans})
		if diff := cmp.Diff(block.Text, text); diff != "" {
			t.Errorf("replayed %t (-want +got):\n%s", replayed, diff)
		}
		want := []string{"", ""}
		for _, s := range block.Spans {
			want = append(want, "/memories/"+s.ID)
		}
		if diff := cmp.Diff(append(want, ""), links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
	}
	if text, _ := shownBlock(t, receipt.Insertion{Placement: "system", Offset: -1}); text != "" {
		t.Errorf("a block of which nothing is left: got %q", text)
	}
}

// TestTalk puts blocks where they were inserted.
func TestTalk(t *testing.T) {
	const t1, t2, t3 = "2026-01-01T10:00:00.000Z", "2026-01-01T10:01:00.000Z", "2026-01-01T10:02:00.000Z"
	block := func(text string, replayed bool) receipt.Insertion {
		return receipt.Insertion{Text: text, Replayed: replayed}
	}
	exchange := func(id, at string, in ...receipt.Insertion) api.Exchange {
		return api.Exchange{Time: at, Receipt: receipt.Receipt{ID: id, Query: "q" + id, Inserted: in}}
	}
	said := func(role, text, at string) api.Memory { return api.Memory{Role: role, Text: text, EventTime: at} }
	before := []api.Exchange{exchange("2", t2, block("A", true), block("B", false)), exchange("1", t1, block("A", false))}
	talk := api.Said{
		Before: []api.Memory{said("user", "u1", t1), said("assistant", "a1", t1), said("user", "u2", t2), said("assistant", "a2", t2)},
		Turn:   []api.Memory{said("user", "u3", t3), said("assistant", "a3", t3)},
	}
	read := func(items []talkItem) (out []string) {
		for _, i := range items {
			switch {
			case i.Block != nil && i.Block.Replayed:
				out = append(out, "again "+i.Block.Text)
			case i.Block != nil:
				out = append(out, "new "+i.Block.Text)
			case i.Missing != "":
				out = append(out, i.Who+" is missing")
			default:
				out = append(out, i.Text)
			}
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		x      api.Exchange
		said   api.Said
		before []api.Exchange
		want   []string
	}{
		{"all is known", exchange("3", t3, block("A", true), block("B", true), block("C", false)), talk, before,
			[]string{"again A", "u1", "a1", "again B", "u2", "a2", "new C", "u3", "a3"}},
		{"an earlier exchange is gone", exchange("3", t3, block("A", true), block("C", false)), talk, before[:1],
			[]string{"again A", "u1", "a1", "u2", "a2", "new C", "u3", "a3"}},
		{"nothing is stored", exchange("3", t3, block("A", true), block("C", false)), api.Said{}, before,
			[]string{"again A", "new C", "q3", "assistant is missing"}},
		{"the question is not kept", api.Exchange{Time: t3}, api.Said{}, nil, []string{"user is missing", "assistant is missing"}},
	} {
		if diff := cmp.Diff(tt.want, read(talkOf(&tt.x, &tt.said, tt.before))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestStages(t *testing.T) {
	sum := func(list []stage) (total int64) {
		for _, s := range list {
			if !s.Nested {
				total += s.Took
			}
		}
		return total
	}
	for name, times := range map[string]receipt.Times{
		"all":                  {Plan: 100, Recall: 60, FirstByte: 500, Total: 900},
		"no answer":            {Plan: 100, Recall: 60, Total: 900},
		"without memory":       {FirstByte: 500, Total: 900},
		"more than there were": {Plan: 1000, Recall: 2000, FirstByte: 500, Total: 900},
	} {
		list := stagesOf(&times)
		if got := sum(list); got != 900 {
			t.Errorf("%s: the stages add up to %d", name, got)
		}
		for _, s := range list {
			if s.Took < 0 || s.Start < 0 || s.Start+s.Took > 900 {
				t.Errorf("%s: %s takes %d from %d", name, s.Name, s.Took, s.Start)
			}
		}
	}
	if got := stagesOf(&receipt.Times{Plan: 3}); got != nil {
		t.Errorf("without a total: got %v", got)
	}
}

// TestReceiptWithoutItsQuestion shows what is left of a receipt when the
// question and a memory are gone.
func TestReceiptWithoutItsQuestion(t *testing.T) {
	r := newRig(t)
	key := []string{"Authorization", "Bearer " + adminToken}
	x := &receipt.Receipt{
		At: storage.TimeOf(time.Now()), Scope: storage.Scope{Tenant: "local", App: "default", Project: "default", User: "ada"}, Status: "injected",
		Inserted:   []receipt.Insertion{{Placement: "beforeUser"}},
		Candidates: []receipt.Candidate{{ID: "gone", Score: 2, Inserted: true}},
	}
	r.service.Receipts.Record(x)
	kept(t, r, 1)
	target := "/exchanges/" + x.ID + "?user=ada"
	res, body := r.send(t, target, nil, key...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	for _, want := range []string{
		"The question is not kept", "The answer is not stored", "has been forgotten since", "A memory that is gone", "reported no tokens", "No times are known", "api.prices",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the view does not say %q", want)
		}
	}
	if strings.Contains(body, "Never for this kind of question") {
		t.Error("a memory that is gone can be unwanted for a question that is not known")
	}
	if res, _ := r.send(t, "/exchanges/"+x.ID+"/unwanted?user=ada", url.Values{"memory": {"gone"}}, key...); res.StatusCode != http.StatusNotFound {
		t.Errorf("a memory that is gone, unwanted: status %d", res.StatusCode)
	}
	if res, _ := r.send(t, "/exchanges/"+x.ID+"?user=bob", nil, key...); res.StatusCode != http.StatusNotFound {
		t.Errorf("the receipt of another user: status %d", res.StatusCode)
	}
}
