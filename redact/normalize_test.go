package redact

import (
	"strings"
	"testing"
)

// TestEncodedValues checks that a value is found in every encoding.
func TestEncodedValues(t *testing.T) {
	r := newRedactor(t)
	for text, want := range map[string]string{
		"call +33\u00a06\u00a012\u00a034\u00a056\u00a078 now":           "call [PHONE] now",
		"my phone: 06\u202f12\u202f34\u202f56\u202f78":                  "my phone: [PHONE]",
		"SSN: 219\u201309\u20139999":                                    "SSN: [SSN]",
		"card 4111\u20091111\u20091111\u20091111.":                      "card [CARD].",
		"card \uff14\uff11\uff11\uff11 1111 1111 1111":                  "card [CARD]",
		"mail jane\uff20example.com":                                    "mail [EMAIL]",
		"mail jane%40example.com":                                       "mail [EMAIL]",
		"mail jane&#64;example.com":                                     "mail [EMAIL]",
		"mail ja\u200bne@exam\u200bple.com":                             "mail [EMAIL]",
		"https://x.test/?phone=%2B14155552671&next=1":                   "https://x.test/?phone=%2B[PHONE]&next=1",
		"https://x.test/?card=4111%201111%201111%201111":                "https://x.test/?card=[CARD]",
		"https://x.test/?card=4111+1111+1111+1111":                      "https://x.test/?card=[CARD]",
		"https://x.test/?path=%2Fhome%2Fjanedoe%2Fnotes":                "https://x.test/?path=%2Fhome%2F[USER]%2Fnotes",
		"the price is 12\u202f000\u00a0\u20ac \u2013 10\u00a0% de plus": "the price is 12\u202f000\u00a0\u20ac \u2013 10\u00a0% de plus",
		"100%25 of R&amp;D &mdash; 2\u20133 people; 12+34=46":           "100%25 of R&amp;D &mdash; 2\u20133 people; 12+34=46",
	} {
		got, findings := r.Redact(text)
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		for _, f := range findings {
			if f.Start >= f.End || f.End > len(text) {
				t.Errorf("%q: finding %+v", text, f)
			}
		}
	}
}

// FuzzDecodeText checks that every byte of a decoded text has an offset in the
// original, in order, and that a decoded text stays as it is.
func FuzzDecodeText(f *testing.F) {
	for _, s := range []string{"", "%", "%4", "%40", "&#x40;", "&#64;&quot", "\u00a0\u202f\u2011\uff20\u200b", "1234+5678", "\xe2\x80", "\xc2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, ok := decodeText(s)
		if !ok {
			return
		}
		if len(w.at) != len(w.text)+1 || int(w.at[len(w.text)]) != len(s) || len(w.text) > len(s) {
			t.Fatalf("%q: %d offsets of %d bytes", s, len(w.at), len(w.text))
		}
		for i := range len(w.text) {
			if w.at[i] >= w.at[i+1] {
				t.Fatalf("%q: byte %d at %d, the next at %d", s, i, w.at[i], w.at[i+1])
			}
		}
		if again := strings.Map(func(c rune) rune {
			if c < 0x7f && c >= ' ' {
				return c
			}
			return -1
		}, s); again == s && !strings.ContainsAny(s, "%&+") {
			t.Fatalf("%q is decoded, and became %q", s, w.text)
		}
	})
}

// TestPartsOfKeys checks that the end of a private key is found, and its
// beginning, also numbered or encrypted.
func TestPartsOfKeys(t *testing.T) {
	r := newRedactor(t)
	line := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", 2)
	for _, text := range []string{
		"and the rest:\n" + line + "\n" + line + "\n-----END PRIVATE KEY-----\nthanks",
		"1 | -----BEGIN RSA PRIVATE KEY-----\n2 | " + line + "\n3 | " + line,
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + line + "\n" + line,
		"bot 110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
	} {
		if got, _ := r.Redact(text); strings.Contains(got, line[:16]) || strings.Contains(got, "AAHdq") {
			t.Errorf("%q: left %q", text, got)
		}
	}
}

// TestPasswordsWithBlanks checks that a quoted password is redacted whole.
func TestPasswordsWithBlanks(t *testing.T) {
	r := newRedactor(t)
	for text, want := range map[string]string{
		`DB_PASSWORD="p@ss w0rd with blanks 9"`:             `DB_PASSWORD="[PASSWORD]"`,
		`{"password":"p@ss w0rd-9!x","user":"ann"}`:         `{"password":"[PASSWORD]","user":"ann"}`,
		`password: "the one that you know", she said`:       `password: "the one that you know", she said`,
		"password: 'Kestrel88! is\nnot closed here' at all": "password: '[PASSWORD] is\nnot closed here' at all",
	} {
		if got, _ := r.Redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestOrdinaryNumbersStay checks that years and names made of words are not
// secrets.
func TestOrdinaryNumbersStay(t *testing.T) {
	r := newRedactor(t)
	for _, text := range []string{
		"iPhone 15 2023 2024", "tel aviv 2024 2025", "my number one song of 1999 2000 2001", "pip install sk-learn-contrib-tools-for-everyone-2024",
	} {
		if got, _ := r.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
