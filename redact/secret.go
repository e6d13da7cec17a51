package redact

import (
	"fmt"
	"log/slog"
)

// hidden is the printable form of every Secret.
const hidden = "[redacted]"

// Secret is a string that never shows its value: printing, logging and
// marshalling give "[redacted]". Only [Secret.Reveal] returns it. It must not
// be a map key: encoding/json writes keys of kind string as they are.
type Secret string

// Reveal returns the value. Call it only where the value is used.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string { return hidden }

func (s Secret) GoString() string { return hidden }

func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Format hides the value from every verb; otherwise %x and %q would print its
// bytes.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }
