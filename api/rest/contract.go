package rest

import (
	"net/http"

	"github.com/remora-proxy/remora/api"
)

// serveContract answers with the contract.
func serveContract(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(api.Contract)
}

// serveReference answers with a page that shows the contract. It needs nothing
// but itself.
func serveReference(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = w.Write(api.Reference)
}
