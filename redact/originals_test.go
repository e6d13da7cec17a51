package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOriginalsRestoreTheText checks that originals restore every text of the
// table except for secrets.
func TestOriginalsRestoreTheText(t *testing.T) {
	r := newRedactor(t)
	for _, c := range redactions {
		out, originals := r.RedactWithOriginals(c.in)
		want, findings := r.Redact(c.in)
		if out != want {
			t.Errorf("RedactWithOriginals(%q): got %q, want %q", c.in, out, want)
		}
		back, err := Restore(out, EncodeOriginals([]byte("salt"), originals))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
		}
		if !slices.ContainsFunc(findings, func(f Finding) bool { return !f.Personal }) && back != c.in {
			t.Errorf("restored %q, want %q", back, c.in)
		}
	}
}

// TestSecretsAreNeverKept checks that a secret of any rule is not among the
// originals, alone or within personal data.
func TestSecretsAreNeverKept(t *testing.T) {
	r := newRedactor(t)
	check := func(text string) {
		t.Helper()
		_, findings := r.Redact(text)
		_, originals := r.RedactWithOriginals(text)
		for _, f := range findings {
			for _, o := range originals {
				if !f.Personal && (strings.Contains(o.Text, text[f.Start:f.End]) || o.Rule == f.Rule) {
					t.Errorf("%s: the original of %s holds a secret", text, o.Rule)
				}
			}
		}
		for key, value := range EncodeOriginals([]byte("salt"), originals) {
			var e storedOriginal
			if err := json.Unmarshal([]byte(value), &e); err != nil || len(key) != 32 {
				t.Fatalf("%s: %v", key, err)
			}
			if id := ids(builtIn())[e.Type]; id.family() != familyPersonal {
				t.Errorf("an original of rule %s is kept", e.Type)
			}
		}
	}
	for _, c := range redactions {
		check(c.in)
		check("anna@example.org " + c.in + " +41 44 668 18 00")
	}
	for _, v := range services() {
		check(serviceExample(t, v))
	}
	check("ghp_" + pad(36) + "@example.org") // an address whose first part is a key
	check("https://anna:" + pad(30) + "@203.0.113.9/")
}

func TestEncodeOriginals(t *testing.T) {
	_, originals := newRedactor(t).RedactWithOriginals("anna@example.org, bob@example.org, anna@example.org")
	want := []Original{
		{Rule: "email", Placeholder: "[EMAIL]", Text: "anna@example.org", At: 0},
		{Rule: "email", Placeholder: "[EMAIL]", Text: "bob@example.org", At: 9},
		{Rule: "email", Placeholder: "[EMAIL]", Text: "anna@example.org", At: 18},
	}
	if diff := cmp.Diff(want, originals); diff != "" {
		t.Errorf("originals (-want +got):\n%s", diff)
	}
	one, other := EncodeOriginals([]byte("one"), originals), EncodeOriginals([]byte("other"), originals)
	if len(one) != 2 {
		t.Errorf("got %d entries of two addresses", len(one))
	}
	for key := range one {
		if other[key] != "" {
			t.Error("the salt has no effect")
		}
	}
	if got := EncodeOriginals([]byte("one"), nil); got != nil {
		t.Errorf("without originals: got %v", got)
	}
	for _, text := range []string{"[EMAIL]", "x[EMAIL], [EMAIL], [EMAIL]", ""} {
		if got, err := Restore(text, one); err == nil {
			t.Errorf("restored %q from the map of another text: %q", text, got)
		}
	}
}

func TestOriginalsAreLimited(t *testing.T) {
	r := newRedactor(t)
	text := strings.Repeat("a@example.org ", MaxOriginals+5)
	out, originals := r.RedactWithOriginals(text)
	if strings.Contains(out, "@") || len(originals) != MaxOriginals {
		t.Errorf("got %d originals", len(originals))
	}
	text = strings.Repeat(strings.Repeat("x", 60)+"@"+strings.Repeat("y", 150)+".org ", MaxOriginals)
	size := 0
	for _, o := range func() []Original { _, o := r.RedactWithOriginals(text); return o }() {
		size += len(o.Text)
	}
	if size > MaxOriginalBytes || size < MaxOriginalBytes/2 {
		t.Errorf("got %d bytes of originals", size)
	}
}

// TestSecretsInDisguise checks that the value of a secret is not kept even if
// it looks like personal data.
func TestSecretsInDisguise(t *testing.T) {
	r := newRedactor(t)
	for _, text := range []string{
		"password: +49 30 901820", "token=123-45-6789", "DB_PASSWORD='foo bar@example.com'", `{"api_key": "123-45-6789"}`,
		"my PIN is 4111 1111 1111 1111", "Mein Passwort ist +49 30 901820",
	} {
		out, kept := r.RedactWithOriginals(text)
		if out == text || len(kept) > 0 {
			t.Errorf("%q: %q, %d originals kept", text, out, len(kept))
		}
	}
	for _, text := range []string{"My password is gone, mail me at jane@example.com", "spinach = fine; call +49 30 901820"} {
		if _, kept := r.RedactWithOriginals(text); len(kept) != 1 {
			t.Errorf("%q: %d originals kept", text, len(kept))
		}
	}
}
