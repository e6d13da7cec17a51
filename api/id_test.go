package api

import "testing"

func TestShortIDsBeginTheirIDs(t *testing.T) {
	for id, want := range map[string]string{
		"426c9b3bc01b7e975699348a1824b2d2.12": "426c9b3bc.12", "f8bc90a8eb71adf3a0dad4b7802fdba1f": "f8bc90a8e", "short": "short", "": "",
	} {
		got := ShortID(id)
		if got != want || !beginsID(id, got) {
			t.Errorf("%q is shown as %q, want %q, and begins so: %v", id, got, want, beginsID(id, got))
		}
	}
	for short, want := range map[string]bool{"426c": true, "426c.1": true, "426c.0": false, "426c.": false, "26c": false, "426c9b.1.2": false} {
		if got := beginsID("426c9b3bc01b7e975699348a1824b2d2.1", short); got != want {
			t.Errorf("%q: %v, want %v", short, got, want)
		}
	}
}
