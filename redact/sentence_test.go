package redact_test

import (
	"testing"

	"github.com/remora-proxy/remora/redact"
)

// TestPasswordsInSentences has ways in which people write a password or a key
// into a sentence, and sentences about them.
func TestPasswordsInSentences(t *testing.T) {
	r, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	const key = "501419bf4149b87a7178d32506afcb476de8d6e7916ae6315168d02250723222"
	for text, want := range map[string]string{
		"log in as root with password 'Zq8!vv2L'":             "log in as root with password '[PASSWORD]'",
		`use the password "hunter2" for it`:                   `use the password "[PASSWORD]" for it`,
		"use the password `Zq8!vv2L` for it":                  "use the password `[PASSWORD]` for it",
		"with the password Zq8!vv2L you get in":               "with the password [PASSWORD] you get in",
		"new password Zq8!vv2L, old password Kk9?pq3M":        "new password [PASSWORD], old password [PASSWORD]",
		"password → Zq8!vv2L":                                 "password → [PASSWORD]",
		"wifi password - kitty2019":                           "wifi password - [PASSWORD]",
		"wifi password – kitty2019":                           "wifi password – [PASSWORD]",
		"Password (for the VPN): kitty2019":                   "Password (for the VPN): [PASSWORD]",
		"the VPN's password has been changed to kitty2019":    "the VPN's password has been changed to [PASSWORD]",
		"parola: Zq8!vv2L":                                    "parola: [PASSWORD]",
		"mật khẩu: Zq8!vv2L":                                  "mật khẩu: [PASSWORD]",
		"كلمة المرور: Zq8vv2L99":                              "كلمة المرور: [PASSWORD]",
		"my ethereum private key is 0x" + key:                 "my ethereum private key is [SECRET]",
		"private key: " + key:                                 "private key: [SECRET]",
		"тел. 8 (912) 345-67-89":                              "тел. [PHONE]",
		"the password must have 8 characters and a Number1":   "",
		"My password manager is Bitwarden!":                   "",
		"the password 'secret' is a bad one":                  "",
		"hash the password 'sha256' says the manual":          "",
		"the password has been reset to its default":          "",
		"Password (at least 8 characters): required":          "",
		"a password - step two of the setup":                  "",
		"SELECT * FROM users WHERE password IS NOT NULL":      "",
		"la parola: ciao, come stai?":                         "",
		"The private key is on my laptop, not on the server.": "",
		"password":  "",
		"password ": "",
	} {
		if want == "" {
			want = text
		}
		if got, _ := r.Redact(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
