package client

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// Ids of two turns that begin alike, and of facts.
const (
	turnOne  = "426c9b3bc01b7e975699348a1824b2d2"
	turnTwo  = "426c9b3bcff6c1a09d1f0ee0aab1f0b2"
	factOne  = "f8bc90a8eb71adf3a0dad4b7802fdba1f"
	factTwo  = "f4d187310d742cc2fa73f92d11dd9882f"
	whenSaid = "2026-03-01T10:07:59.000Z"
)

// someMemories is a control plane with the memories of one user, as it lists
// them: it knows whole ids only.
func someMemories(t *testing.T, asked *[]string) *Client {
	t.Helper()
	said := func(turn, number, role, text, at string) api.Memory {
		return api.Memory{ID: turn + "." + number, Turn: turn, Kind: "episode", Role: role, Text: text, State: api.StateCurrent, EventTime: at}
	}
	all := []api.Memory{
		{ID: factOne, Turn: turnOne, Kind: "fact", Role: "user", Text: "I live in Porto.", State: api.StateCurrent, EventTime: whenSaid},
		said(turnOne, "0", "user", "I live in Porto. And you?", whenSaid),
		said(turnOne, "1", "assistant", "Nowhere.", "2026-03-01T10:08:00.000Z"),
		{ID: factTwo, Turn: strings.Repeat("e", 32), Kind: "fact", Role: "user", Text: "I have a cat.", State: api.StateSuperseded, EventTime: "2026-03-02T00:00:00.000Z"},
		said(turnTwo, "0", "user", "Good morning.", "2026-03-03T08:00:00.000Z"),
	}
	return New(pipeTo(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/users":
			request.Write(w, http.StatusOK, api.Users{Users: []api.User{{Tenant: "local", App: "web", Project: "p", User: "ann", Memories: 5, Unaudited: 3}}})
		case r.URL.Path == "/v1/memories":
			page := api.Memories{Memories: []api.Memory{}}
			head, tail, dotted := strings.Cut(r.URL.Query().Get("id"), ".")
			for _, m := range all {
				if strings.HasPrefix(m.ID, head) && (!dotted || strings.HasSuffix(m.ID, "."+tail)) {
					page.Memories = append(page.Memories, m)
				}
			}
			request.Write(w, http.StatusOK, page)
		default:
			*asked = append(*asked, r.URL.Path)
			request.Problem(api.ErrNotFound).Write(w)
		}
	}), Local, "", api.Target{})
}

// TestList checks what people see: short ids, the time of day, facts behind
// their words, and how many turns wait for an audit.
func TestList(t *testing.T) {
	const head = "tenant local, app web, project p, user ann\n"
	for width, want := range map[int]string{
		0: head + "  426c9b3bc.0  2026-03-01 10:07  user  I live in Porto. And you?\n" +
			"  f8bc90a8e  2026-03-01 10:07  fact  I live in Porto. (from 426c9b3bc.0)\n" +
			"  426c9b3bc.1  2026-03-01 10:08  assistant  Nowhere.\n" +
			"  f4d187310  2026-03-02 00:00  fact (superseded)  I have a cat. (from eeeeeeeee)\n" +
			"  426c9b3bc.0  2026-03-03 08:00  user  Good morning.\n",
		70: head + "  id           time (UTC)        kind  text\n" +
			"  426c9b3bc.0  2026-03-01 10:07  user  I live in Porto. And you?\n" +
			"  f8bc90a8e    2026-03-01 10:07  fact  I live in Porto. (from 426c9b3bc.0)\n" +
			"  426c9b3bc.1  2026-03-01 10:08  assistant  Nowhere.\n" +
			"  f4d187310    2026-03-02 00:00  fact (superseded)  I have a cat. (from eeeeeeeee)\n" +
			"  426c9b3bc.0  2026-03-03 08:00  user               Good morning.\n",
	} {
		var out, errs bytes.Buffer
		s := &Session{Client: someMemories(t, nil), Console: &Console{Out: &out, Err: &errs, width: width}}
		if err := (&List{}).Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, out.String(), want)
		}
		if want := "turns not audited yet, whose facts are still to come: 3 of tenant local, app web, project p, user ann\n"; errs.String() != want {
			t.Errorf("got %q, want %q", errs.String(), want)
		}
	}
}

// TestOriginsAreNotCut checks that a long fact gives way to where it comes from.
func TestOriginsAreNotCut(t *testing.T) {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	rows := (&Console{width: 60}).table(w, "kind", "text")
	rows.addRow(row{cells: []string{"fact", strings.Repeat("words ", 20)}, tail: "(from 426c9b3bc.0)"})
	rows.flush()
	_ = w.Flush() // into memory
	if want := "  kind  text\n  fact  words words words words words wo… (from 426c9b3bc.0)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestShortIDs checks that the beginning of an id is completed where it means
// one memory, or one turn where that may be meant, and is refused where it
// means several.
func TestShortIDs(t *testing.T) {
	for _, test := range []struct {
		given string
		turn  bool
		want  string
		err   string
	}{
		{"f8bc", false, factOne, ""},
		{"426c9b3bc.1", false, turnOne + ".1", ""},
		{"426c9b3bc0", true, turnOne, ""},
		{"426c9b3bc0", false, "", turnOne + ".0, " + turnOne + ".1"},
		{"426c9b3bc", true, "", turnTwo + ".0"},
		{"426c9b3bc.0", false, "", "is the beginning of several ids: " + turnOne + ".0, " + turnTwo + ".0"},
		{"426c9b3bcf.0", true, turnTwo + ".0", ""},
		{"0123", false, "0123", ""},
		{"426", false, "426", ""}, // too short to be a beginning
		{"", true, "", ""},
		{turnOne + ".7", false, turnOne + ".7", ""},
	} {
		got, err := someMemories(t, nil).fullID(t.Context(), test.given, test.turn)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: got %q, %v, want an error with %q", test.given, got, err, test.err)
			}
		} else if err != nil || got != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.given, got, err, test.want)
		}
	}
	var asked []string
	s := &Session{Client: someMemories(t, &asked), Console: &Console{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}}
	if err := (&Show{ID: "f8bc"}).Run(t.Context(), s); !errors.Is(err, api.ErrNotFound) || asked[0] != "/v1/memories/"+factOne {
		t.Errorf("show asks for %q, %v", asked, err)
	}
}

func TestTimesMayBeAges(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	for given, want := range map[string]string{
		"": "", "90m": "2026-03-15T10:30:00Z", "12h": "2026-03-15T00:00:00Z", "3d": "2026-03-12T12:00:00Z", "2w": "2026-03-01T12:00:00Z", "0d": "2026-03-15T12:00:00Z",
		"2026-03-01": "2026-03-01", "2026-03-01T10:00:00Z": "2026-03-01T10:00:00Z", "soon": "soon",
	} {
		if got, err := timeOrAge("since", given, now); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"-3h", "-3d", "d", "xw", "99999999d"} {
		if got, err := timeOrAge("since", given, now); err == nil || !strings.Contains(err.Error(), "--since") {
			t.Errorf("%q: got %q, %v, want an error that names --since", given, got, err)
		}
	}
}
