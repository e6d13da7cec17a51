package redact

import (
	"fmt"
	"log/slog"
)

// hidden is what every printable form of a Secret shows.
const hidden = "[redacted]"

// Secret is a string that shows itself to nobody: printing, logging and marshalling all give "[redacted]". Only
// [Secret.Reveal] returns the value. Don't use it as a map key: encoding/json writes keys of kind string as they are.
type Secret string

// Reveal returns the value. Call it where the value is used, never earlier.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string { return hidden }

func (s Secret) GoString() string { return hidden }

func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Format hides the value from every verb: without it %x and %q would print the bytes of the string.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }
