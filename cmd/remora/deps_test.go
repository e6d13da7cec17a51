package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/remora-proxy/remora/"

// layers puts each package on its floor. Imports go to lower floors only.
var layers = map[string]int{
	"storage/wire":               -1, // below the vocabulary, whose memories it encodes
	"cmd/remora":                 8,
	"cmd/remora/client":          7,
	"cmd/remora/config":          7,
	"cmd/remora/export":          7,
	"cmd/remora/manual":          7,
	"cmd/remora/notices":         7,
	"cmd/remora/machine":         0,
	"cmd/remora/agents":          0,
	"cmd/remora/doctor":          2,
	"cmd/remora/signals":         0,
	"cmd/remora/systemd":         0,
	"cmd/remora/wrap":            1,
	"cmd/remora-bench":           8,
	"cmd/remora-bench/load":      6,
	"cmd/remora-bench/quality":   6,
	"cmd/remora-check/economy":   5,
	"cmd/remora-check/notices":   5,
	"cmd/remora-check/tlsfront":  5,
	"cmd/remora-check/verify":    5,
	"cmd/remora-bench/cli":       0,
	"cmd/remora-bench/prose":     0,
	"api/gateway":                6,
	"api/mcp":                    6,
	"api/mem0":                   6,
	"api/page":                   6,
	"api/request":                5,
	"api":                        4,
	"proxy":                      4,
	"proxy/backend":              4,
	"recall":                     3,
	"persist":                    3,
	"cmd/remora-bench/control":   7,
	"cmd/remora-bench/telemetry": 7,
	"cmd/remora-bench/lives":     7,
	"api/rest":                   6,
	"api/imports":                0,
	"api/documents":              0,
	"recall/receipt":             2,
	"proxy/policy":               1,
	"proxy/problem":              0,
	"proxy/listener":             0,
	"proxy/forward":              1,
	"proxy/dialect":              1,
	"proxy/httpclient":           1,
	"proxy/identity":             2,
	"proxy/ledger":               2,
	"proxy/proxytest":            1,
	"recall/breaker":             0,
	"recall/embed":               1,
	"recall/fence":               1,
	"recall/query":               2,
	"recall/textcode":            1,
	"recall/vector":              1,
	"persist/distill":            1,
	"persist/extract":            0,
	"persist/facts":              1,
	"storage/badger":             1,
	"storage/process":            1,
	"storage/storagetest":        1,
	"background":                 0,
	"proxy/sse":                  0,
	"redact":                     0,
	"redact/checkdigit":          -1,
	"storage":                    0,
	"telemetry":                  -1,
	"text":                       -1,
	"text/updates":               0,
}

const layerReason = `Imports go downward only: cmd knows everything, surfaces (proxy) know the engines, engines (recall, persist) know the
vocabulary (storage), dialects and stores know nothing above them. Packages of one layer never import each other. So an engine can be
tested, replaced and understood without the proxy around it. See docs/ARCHITECTURE.md.`

// bans are imports that the layers alone would allow.
var bans = []struct{ from, to, reason string }{
	{"proxy", "storage/badger", storeReason},
	{"recall", "storage/badger", storeReason},
	{"persist", "storage/badger", storeReason},
	{"recall", "proxy/dialect", "The engine takes a message's text; how an API wraps it in JSON is the proxy's business."},
	{"persist", "proxy/dialect", "The pipeline takes a Turn; how an API wraps it in JSON is the proxy's business."},
	{"recall", "recall/embed", "The engine takes any Embedder; which server makes the vectors is decided where the program is put together."},
	{"proxy", "proxy/proxytest", testOnlyReason},
	{"recall", "proxy/proxytest", testOnlyReason},
	{"persist", "proxy/proxytest", testOnlyReason},
	{"cmd/remora", "storage/storagetest", testOnlyReason},
	{"proxy", "storage/storagetest", testOnlyReason},
	{"recall", "storage/storagetest", testOnlyReason},
	{"persist", "storage/storagetest", testOnlyReason},
	{"proxy", "storage/process", storeReason},
	{"recall", "storage/process", storeReason},
	{"persist", "storage/process", storeReason},
	{"storage/badger", "storage/storagetest", testOnlyReason},
	{"storage/process", "storage/storagetest", testOnlyReason},
}

const (
	storeReason    = "Nothing touches a store but through storage.Store: it will live in another process, and others will stand in its place."
	testOnlyReason = "A package for tests is imported by tests alone (and by the demo, which shows a fake upstream)."
)

// homes gives each third-party module the one place that may import it: a
// directory, or a file. Tests are free.
var homes = []struct {
	prefix string
	places []string
	reason string
}{
	{"github.com/elazarl/goproxy", []string{"proxy/forward"},
		"goproxy takes CONNECT and no more: its own request path is HTTP/1.1 only, does not cancel the upstream and escapes Shutdown."},
	{"github.com/gobwas/ws", []string{"proxy/websocket_pump.go", "proxy/listener"}, "Frames are read where the responses of a WebSocket get memory, and where an idle one is closed; all other upgrades are bytes."},
	{"github.com/tidwall/sjson", []string{"cmd/remora/config/write.go"}, "It edits JSON by path, as a configuration is written. Bodies are extended by inserting bytes."},
	{"github.com/tidwall/", []string{"proxy/dialect"},
		"Bodies are read in the dialects only. Elsewhere JSON from outside goes through a guard against depth and duplicate keys first, or through encoding/json."},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"cmd/remora-bench/load"}, "Latencies are counted where the load is measured; the program has OpenTelemetry's histograms."},
	{"github.com/KimMachineGun/automemlimit", []string{"cmd/remora", "cmd/remora/config"}, "The memory limit of a process is decided where the program is put together."},
	{"github.com/modelcontextprotocol/go-sdk", []string{"api/mcp"}, "MCP is spoken by one face; the verbs behind its tools know nothing of it."},
	{"github.com/sergi/go-diff", []string{"api/page"}, "How a text has changed is shown to people; nothing else compares texts so."},
	{"github.com/spf13/", []string{"cmd/remora", "cmd/remora/manual"}, "cobra and pflag read the command line, and its manual is made from them; nothing below has flags."},
	{"github.com/schollz/progressbar", []string{"cmd/remora/client"}, "Progress is for people who wait at a terminal."},
	{"github.com/rivo/uniseg", []string{"cmd/remora/client"}, "How wide a text is on a terminal, tables know."},
	{"golang.org/x/term", []string{"cmd/remora/client"}, "How wide a terminal is, tables know."},
	{"github.com/dgraph-io/", []string{"storage/badger"}, storeReason},
	{"go.opentelemetry.io/otel/sdk", []string{"cmd/remora/export"}, otelReason},
	{"go.opentelemetry.io/otel/exporters", []string{"cmd/remora/export"}, otelReason},
	{"go.opentelemetry.io/contrib/bridges/otelslog", []string{"cmd/remora/export"}, otelReason},
	{"go.opentelemetry.io/otel", []string{"cmd/remora", "cmd/remora/export", "proxy", "persist", "recall", "telemetry"}, "Spans and measurements are made where the work is done; the layers below stay free of them."},
	{"github.com/go-logr/logr", []string{"cmd/remora/export"}, "The SDK logs through it, and what it logs of its settings may hold a key."},
	{"github.com/zeebo/xxh3", []string{"proxy/ledger", "proxy/dialect", "recall", "storage"}, "The chain hash is the ledger's, fingerprints are the store's, and recall follows them; what must resist an attacker uses HMAC-SHA256."},
	{"github.com/klauspost/compress", []string{"proxy", "proxy/ledger"}, "Content codings end at the exchange; everything behind it sees plain bytes. The ledger compresses its segments."},
	{"github.com/andybalholm/brotli", []string{"proxy"}, "Content codings end at the exchange; everything behind it sees plain bytes."},
	{"github.com/blevesearch/snowballstem", []string{"text"}, "Words are analysed in one place, or queries and index disagree."},
	{"github.com/clipperhouse/uax29", []string{"text"}, "Words are analysed in one place, or queries and index disagree."},
	{"github.com/nyaruka/phonenumbers", []string{"redact"}, "What counts as personal data is decided in one place."},
	{"github.com/google/go-cmp", []string{"storage/storagetest"}, "Comparing values is for tests."},
	{"github.com/ledongthuc/pdf", []string{"api/documents"}, "It trusts its input, so it is used behind checks of our own."},
	{"golang.org/x/net", []string{"proxy", "api/documents"}, "HTTP is spoken by the proxy; HTML is read where documents are."},
	{"golang.org/x/sys", []string{"storage/badger", "storage/process", "proxy/httpclient", "cmd/remora-bench/load", "cmd/remora/signals"}, "Whether a request was read is known from what was acknowledged; whose signals a terminal sends is asked of it; free space is the store's to watch, and who is at the other end of a socket that of its process; the bench asks for short time slices."},
	{"golang.org/x/text", []string{"text", "recall/fence", "redact", "cmd/remora-bench/lives"}, "Text is normalised where it is analysed."},
}

const otelReason = "Packages use the OpenTelemetry API; which SDK runs, and whether any does, is decided where the program is put together."

// source is one Go file of the project.
type source struct {
	dir, file string // relative to the root, with slashes
	imports   []string
	syntax    *ast.File
	lines     int
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s := source{file: filepath.ToSlash(relative), syntax: syntax, lines: set.File(syntax.Pos()).LineCount()}
		s.dir = path.Dir(s.file)
		for _, i := range syntax.Imports {
			s.imports = append(s.imports, strings.Trim(i.Path.Value, `"`))
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d files: looking in the wrong place", len(all))
	}
	return all
}

func TestLayers(t *testing.T) {
	for _, s := range sources(t) {
		from, known := layers[s.dir]
		if !known {
			t.Errorf("%s: package %s stands on no layer; give it one in this test and in docs/ARCHITECTURE.md", s.file, s.dir)
			continue
		}
		for _, name := range s.imports {
			imported, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			to, known := layers[imported]
			if !known || to >= from {
				t.Errorf("%s imports %s, which is not below it.\n%s", s.file, imported, layerReason)
			}
			for _, ban := range bans {
				if ban.from == s.dir && ban.to == imported {
					t.Errorf("%s imports %s.\n%s", s.file, imported, ban.reason)
				}
			}
		}
	}
}

func TestOneHomePerModule(t *testing.T) {
	for _, s := range sources(t) {
		for _, name := range s.imports {
			if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") || strings.HasPrefix(name, module) {
				continue
			}
			i := slices.IndexFunc(homes, func(h struct {
				prefix string
				places []string
				reason string
			}) bool {
				return strings.HasPrefix(name, h.prefix)
			})
			if i < 0 {
				t.Errorf("%s imports %s, which has no home; a new dependency gets a decision record and a row in this test", s.file, name)
				continue
			}
			if !slices.Contains(homes[i].places, s.dir) && !slices.Contains(homes[i].places, s.file) {
				t.Errorf("%s imports %s, whose home is %s.\n%s", s.file, name, strings.Join(homes[i].places, ", "), homes[i].reason)
			}
		}
	}
}

func TestHabits(t *testing.T) {
	documented := map[string]bool{}
	var dirs []string
	for _, s := range sources(t) {
		dirs = append(dirs, s.dir)
		if s.syntax.Doc != nil {
			if documented[s.dir] {
				t.Errorf("%s: package %s has a second package comment; one file bears it", s.file, s.dir)
			}
			documented[s.dir] = true
		}
		if s.lines > 600 {
			t.Errorf("%s has %d lines: split it by concept at 600", s.file, s.lines)
		}
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function: what runs before main can't be configured, tested or switched off", s.file)
			}
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if !documented[dir] {
			t.Errorf("package %s has no package comment: what it does, what it refuses, what it guarantees", dir)
		}
	}
}
