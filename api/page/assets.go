package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// asset is a file that browsers may cache forever: its hash is in its address.
type asset struct {
	mediaType   string
	hash        string
	plain, gzip []byte
}

// readAssets returns the embedded files by their names.
func readAssets() map[string]*asset {
	out := map[string]*asset{}
	entries, _ := assetFiles.ReadDir("assets") // is embedded
	for _, entry := range entries {
		content, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil || strings.HasSuffix(entry.Name(), ".LICENSE") {
			continue
		}
		sum := sha256.Sum256(content)
		a := &asset{mediaType: mime.TypeByExtension(path.Ext(entry.Name())), hash: hex.EncodeToString(sum[:6]), plain: content}
		if path.Ext(entry.Name()) == ".js" {
			a.mediaType = "text/javascript; charset=utf-8"
		}
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a valid level
		_, _ = w.Write(content)
		_ = w.Close()
		a.gzip = packed.Bytes()
		out[entry.Name()] = a
	}
	return out
}

// serveAsset serves an embedded file, also to those who have not logged in.
func (h *Handler) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := h.assets[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.mediaType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.gzip)
		return
	}
	_, _ = w.Write(a.plain)
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if name, parameters, _ := strings.Cut(part, ";"); strings.TrimSpace(name) == "gzip" {
			return strings.ReplaceAll(parameters, " ", "") != "q=0"
		}
	}
	return false
}

// assetPath returns the address of a file, with its hash.
func assetPath(assets map[string]*asset, name string) string {
	if a := assets[name]; a != nil {
		return "/assets/" + name + "?v=" + a.hash
	}
	return "/assets/" + name
}
