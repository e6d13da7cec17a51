package main

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// What is shown of a part of a scope names it, on a command line, too, and no
// other.
func TestPartsAreShownAndRead(t *testing.T) {
	seen := map[string]string{}
	for _, part := range []string{
		"ann", "key:0123", "name:team", "o'neil", "ann smith", `"ann"`, `a\b`, "(key holder)", identity.KeyHolderUser, "\x1b[31m", "zo\u00eb", "\u202eabc", "a\xffb",
	} {
		shown := identity.Show(part)
		if strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' || r == 0x202e }) {
			t.Errorf("%q is shown as %q", part, shown)
		}
		if other, taken := seen[shown]; taken {
			t.Errorf("%q and %q are shown alike: %s", part, other, shown)
		}
		seen[shown] = part
		if got, err := identity.Parse(shown); err != nil || got != part {
			t.Errorf("%q is shown as %s and read as %q, %v", part, shown, got, err)
		}
	}
}
