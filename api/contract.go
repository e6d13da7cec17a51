package api

import _ "embed"

//go:generate go test -run ^TestReference$ . -update

// Contract is the contract of the REST face: OpenAPI 3.1.
//
//go:embed openapi.yaml
var Contract []byte

// Reference is the contract as a page for people, made from it by go generate.
//
//go:embed reference.html
var Reference []byte
