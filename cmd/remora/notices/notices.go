// Package notices holds the licences of everything that is compiled into remora: Go's standard
// library, each linked module, and data of others. They are in the binary, because most of these
// licences want their text to accompany every copy, and a binary is often copied alone.
//
// The text is generated, and a test of the generator fails if it is not current.
package notices

import _ "embed"

//go:generate go run ../../remora-check/notices -o THIRD_PARTY_NOTICES.txt

//go:embed THIRD_PARTY_NOTICES.txt
var text string

// Text returns the table of components and the texts of their licences.
func Text() string { return text }
