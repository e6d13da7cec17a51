package rest

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
)

// pdf returns a document of one page with one line.
func pdf(line string) []byte {
	stream := "BT /F1 12 Tf 72 720 Td (" + line + ") Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream), "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

// Documents of each type are found by what they say, and the same again changes
// nothing.
func TestDocuments(t *testing.T) {
	r := newService(t)
	for media, body := range map[string][]byte{
		"text/plain":               []byte("The harbour office keeps the papers of the schooner Albatross."),
		"text/markdown":            []byte("# Schooner\n\nThe harbour office keeps the papers of the schooner Albatross.\n"),
		"text/html; charset=utf-8": []byte("<html><head><title>Schooner</title><script>alert(1)</script></head><body><p>The harbour office keeps the papers of the <b>schooner</b> Albatross.</p></body></html>"),
		"application/pdf":          pdf("The harbour office keeps the papers of the schooner Albatross."),
		"":                         []byte("# Schooner\n\nThe harbour office keeps the papers of the schooner Albatross.\n"),
		"application/octet-stream": pdf("The harbour office keeps the papers of the schooner Albatross."),
		"application/pdf; x=\"y\"": pdf("The harbour office keeps the papers of the schooner Albatross."),
	} {
		user := url.QueryEscape("reader of " + media)
		target := "/v1/resources?user=" + user + "&tag=harbour&resource_uri=" + url.QueryEscape("file:///papers")
		first := get[api.Resource](t, r.send(t, "POST", target, body, "Content-Type", media).want(t, 201))
		if first.Passages != 1 || first.Known != 0 || first.Removed != 0 || first.URI != "file:///papers" || first.Updated == "" {
			t.Errorf("%q: %+v", media, first)
		}
		before := r.list(t, "user="+user)
		again := get[api.Resource](t, r.send(t, "POST", target, body, "Content-Type", media).want(t, 201))
		if again.Passages != 1 || again.Known != 1 || again.Removed != 0 {
			t.Errorf("%q again: %+v", media, again)
		}
		if diff := cmp.Diff(before, r.list(t, "user="+user)); diff != "" {
			t.Errorf("%q: the same again changed something:\n%s", media, diff)
		}
		if m := before[0]; m.Kind != "resource" || !strings.Contains(m.Text, "schooner Albatross") || strings.Contains(m.Text, "alert") || !slices.Equal(m.Tags, []string{"harbour"}) {
			t.Errorf("%q: %+v", media, m)
		}
		found := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user="+user, object{"query": "papers of the Albatross", "scope": []string{"resources"}}))
		if len(found.Results) != 1 {
			t.Errorf("%q: found %+v", media, found.Results)
		}
	}
}

func TestDocumentIsReplacedAndDeleted(t *testing.T) {
	r := newService(t)
	paragraph := func(n int) string {
		return fmt.Sprintf("Paragraph %d says: %s.", n, strings.Repeat(fmt.Sprintf("the ship number %d sails on ", n), 30))
	}
	put := func(paragraphs ...int) api.Resource {
		var all []string
		for _, n := range paragraphs {
			all = append(all, paragraph(n))
		}
		return get[api.Resource](t, r.send(t, "POST", "/v1/resources?user=ada&resource_uri=log&name=log.txt", strings.Join(all, "\n\n"), "Content-Type", "text/plain"))
	}
	first := put(1, 2, 3)
	if first.Passages < 3 {
		t.Fatalf("%+v", first)
	}
	second := put(1, 2, 4)
	if second.Known == 0 || second.Removed == 0 || second.Known+second.Removed < first.Passages {
		t.Errorf("replaced: %+v, before %+v", second, first)
	}
	for _, m := range r.list(t, "user=ada&kind=resource") {
		if strings.Contains(m.Text, "ship number 3") {
			t.Errorf("left of the old version: %s", m.Text)
		}
	}
	other := get[api.Resource](t, r.send(t, "POST", "/v1/resources?user=ada&resource_uri=other", "Another text.", "Content-Type", "text/plain"))
	list := get[struct{ Resources []api.Resource }](t, r.send(t, "GET", "/v1/resources?user=ada", nil)).Resources
	if len(list) != 2 || list[0].URI != "log" || list[0].Passages != second.Passages || list[1].URI != "other" || list[1].Passages != other.Passages {
		t.Errorf("listed %+v", list)
	}
	if list := r.send(t, "GET", "/v1/resources?user=ben", nil).want(t, 200).body; list != `{"resources":[]}`+"\n" {
		t.Errorf("of ben: %s", list)
	}
	gone := get[api.Removed](t, r.send(t, "DELETE", "/v1/resources?user=ada&resource_uri=log&why=old", nil))
	if len(gone.Deleted) != second.Passages || gone.UndoUntil == "" {
		t.Errorf("deleted %+v", gone)
	}
	r.send(t, "DELETE", "/v1/resources?user=ada&resource_uri=log", nil).problem(t, 404, "not-found", "")
	if list := get[struct{ Resources []api.Resource }](t, r.send(t, "GET", "/v1/resources?user=ada", nil)).Resources; len(list) != 1 {
		t.Errorf("listed after the deletion: %+v", list)
	}
	r.send(t, "POST", "/v1/memories/"+gone.Deleted[0]+"/undo?user=ada", nil).want(t, 200)
	if list := get[struct{ Resources []api.Resource }](t, r.send(t, "GET", "/v1/resources?user=ada", nil)).Resources; len(list) != 2 || list[0].Passages != second.Passages {
		t.Errorf("listed after undoing it: %+v", list)
	}
}

func TestDocumentRefusals(t *testing.T) {
	r := newService(t)
	target := "/v1/resources?user=ada&resource_uri=x"
	r.send(t, "POST", target, []byte{0x89, 'P', 'N', 'G', 0, 1, 2}, "Content-Type", "image/png").problem(t, 415, "unsupported-media", "")
	r.send(t, "POST", target, []byte("\x89PNG\x00\x01"), "Content-Type", "").problem(t, 415, "unsupported-media", "")
	r.send(t, "POST", target, bytes.Repeat([]byte("word "), api.MaxDocument/5+1), "Content-Type", "text/plain").problem(t, 413, "too-large", "")
	r.send(t, "POST", target, "", "Content-Type", "text/plain").problem(t, 422, "invalid", "body")
	// A passage with a secret is left out; the rest is remembered.
	text := strings.Repeat("The ship sails on and on. ", 40) + "\n\nThe key is sk-proj-Zk3vQ9sLr8TnW2yXbC4dEfGhJm5pRq7uVw1A.\n\n" + strings.Repeat("The crew sings and sings. ", 40)
	r.send(t, "POST", target, text, "Content-Type", "text/plain").want(t, 201)
	for _, m := range r.list(t, "user=ada") {
		if strings.Contains(m.Text, "sk-proj") {
			t.Errorf("kept %s", m.Text)
		}
	}
}

// Store, recall, list, delete and namespaces of keyed values, each with a time
// to live.
func TestEntries(t *testing.T) {
	r := newService(t)
	put := func(target string, value any, header ...string) answer {
		return r.send(t, "PUT", "/v1/entries/"+target, object{"value": value, "ttl": 600}, header...)
	}
	a := put("cart/items?user=ada", object{"items": []any{"rope", 1.5, nil, true}}).want(t, 201)
	saved := get[api.Entry](t, a)
	if saved.Key != "cart/items" || saved.Namespace != "default" || saved.Version != 1 || a.header.Get("ETag") != `"v1"` {
		t.Errorf("saved %+v", saved)
	}
	read := r.send(t, "GET", "/v1/entries/cart/items?user=ada", nil).want(t, 200)
	if read.body != a.body || read.header.Get("ETag") != `"v1"` {
		t.Errorf("read %s, saved %s", read.body, a.body)
	}
	if escaped := r.send(t, "GET", "/v1/entries/cart%2Fitems?user=ada", nil).want(t, 200); escaped.body != a.body {
		t.Errorf("read by an escaped key: %s", escaped.body)
	}
	created, expires := parse(t, saved.CreatedAt), parse(t, saved.ExpiresAt)
	if ttl := expires.Sub(created); ttl != 10*time.Minute {
		t.Errorf("it lives %s", ttl)
	}
	put("cart/items?user=ada", "newer", "If-Match", `"v3"`).problem(t, 412, "changed", "")
	if got := get[api.Entry](t, put("cart/items?user=ada", "newer", "If-Match", `"v1"`).want(t, 200)); got.Version != 2 || got.CreatedAt != saved.CreatedAt {
		t.Errorf("replaced by %+v", got)
	}
	put("new?user=ada", 1, "If-Match", `"v1"`).problem(t, 412, "changed", "")

	// Namespaces, users and projects are apart.
	for _, target := range []string{"cart/items?user=ada&namespace=other", "cart/items?user=ben", "cart/items?user=ada&project=boat"} {
		r.send(t, "GET", "/v1/entries/"+target, nil).problem(t, 404, "not-found", "")
		r.send(t, "DELETE", "/v1/entries/"+target, nil).problem(t, 404, "not-found", "")
		put(target, target).want(t, 201)
	}
	if got := get[api.Entry](t, r.send(t, "GET", "/v1/entries/cart/items?user=ada", nil)); string(got.Value) != `"newer"` {
		t.Errorf("ada's is %s", got.Value)
	}
	for i := range 25 {
		put(fmt.Sprintf("list/%02d?user=ada", i), i).want(t, 201)
	}
	var keys []string
	for cursor := ""; ; {
		page := get[api.EntryPage](t, r.send(t, "GET", "/v1/entries?user=ada&prefix=list/&limit=7&cursor="+url.QueryEscape(cursor), nil))
		for _, e := range page.Entries {
			keys = append(keys, e.Key)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(keys) != 25 || !slices.IsSorted(keys) || keys[24] != "list/24" {
		t.Errorf("keys %q", keys)
	}
	if page := get[api.EntryPage](t, r.send(t, "GET", "/v1/entries?user=ada&namespace=other", nil)); len(page.Entries) != 1 {
		t.Errorf("of another namespace: %+v", page)
	}
	if body := r.send(t, "GET", "/v1/entries?user=ada&prefix=none", nil).want(t, 200).body; body != `{"entries":[]}`+"\n" {
		t.Errorf("of nothing: %s", body)
	}
	if a := r.send(t, "DELETE", "/v1/entries/cart/items?user=ada", nil).want(t, 204); a.body != "" {
		t.Errorf("deleted with %q", a.body)
	}
	r.send(t, "GET", "/v1/entries/cart/items?user=ada", nil).problem(t, 404, "not-found", "")
	r.send(t, "GET", "/v1/entries/cart/items?user=ben", nil).want(t, 200)
	if left := r.list(t, "user=ada"); len(left) != 0 {
		t.Errorf("entries are memories: %+v", left)
	}
}

func TestEntriesExpire(t *testing.T) {
	r := newService(t)
	r.send(t, "PUT", "/v1/entries/short?user=ada", object{"value": 1, "ttl": 1}).want(t, 201)
	r.send(t, "PUT", "/v1/entries/long?user=ada", object{"value": 1, "ttl": 1000}).want(t, 201)
	r.eventually(t, func() bool { return r.send(t, "GET", "/v1/entries/short?user=ada", nil).status == 404 })
	page := get[api.EntryPage](t, r.send(t, "GET", "/v1/entries?user=ada", nil))
	if len(page.Entries) != 1 || page.Entries[0].Key != "long" {
		t.Errorf("left %+v", page)
	}
	r.send(t, "DELETE", "/v1/entries/short?user=ada", nil).problem(t, 404, "not-found", "")
	if again := get[api.Entry](t, r.send(t, "PUT", "/v1/entries/short?user=ada", object{"value": 2, "ttl": 9}).want(t, 201)); again.Version != 1 {
		t.Errorf("made again: %+v", again)
	}
}

func parse(t *testing.T, v string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, v)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
