package main

import (
	"fmt"
	"io"
	"strings"
)

const configDocsHead = "<!-- Generated from the table of settings in cmd/remora/settings.go by `make docs`. -->\n" + `
# Configuration

Settings come from four places, each winning over the one before:

1. the defaults below;
2. a JSON file: ` + "`--config FILE`, or `REMORA_CONFIG`, or `~/.config/remora/config.json` if it is there" + `;
3. the environment variable in the table. With ` + "`_FILE`" + ` after its name it holds the path of a file to read the value from, such as
   a mounted secret, which must not be empty. Lists are separated by commas, and an empty variable is as good as none;
4. the flags ` + "`--listen`, `--upstream`, `--data`, `--forward`" + `.

The file is strict: a key that does not exist, stands twice or has a value of the wrong type is an error, and all errors are
told at once, each with its key and line. [config.example.json](../config.example.json) is nothing but the defaults; a file of yours
needs only what differs. ` + "`remora check`" + ` tells what is wrong, or prints the configuration in effect with secrets hidden, reaches for the upstreams, the
embeddings server and the store, and says last what it found.

Durations are strings such as ` + "`30ms`, `1m30s` or `24h`" + `. Sizes are in bytes. Where the table tells no bound, an integer is 1,048,576 at most,
a size 1 TiB, a duration 100 years and a number 10^9; some are bounded by other settings, which is told with both where it is broken.

In a container whose memory is limited (a control group of Linux, the process's own or one above it) the bounds of what is held in memory
are a share of that, where the table says so and they are not set; a copy of config.example.json sets them all. The store's process keeps to ` + "`storage.memoryBytes`" + `; the proxy's runtime collects so as to stay
below what that leaves of 13/16, unless ` + "`GOMEMLIMIT`" + ` says otherwise. The rest is the system's: buffers, and files that are mapped.
128 MiB are enough for both.

Tracing is configured by the standard ` + "`OTEL_*`" + ` variables and off without them: ` + "`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_EXPORTER`" + ` (otlp,
console, none), ` + "`OTEL_EXPORTER_OTLP_PROTOCOL`" + ` (http/protobuf, grpc), ` + "`OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED`" + ` and the rest. The Go
runtime's ` + "`GOGC`, `GOMEMLIMIT` and `GOMAXPROCS`" + ` are respected.
`

// sectionDocs introduces the sections of docs/configuration.md.
var sectionDocs = map[string]string{
	"forward":   "For agents whose base URL can't be changed. The hosts of `forward.intercept` are decrypted with certificates of a local authority (`remora ca init`) and get memory; all others are tunnelled untouched.",
	"identity":  "Whose memory a request is about. Nobody sees another's: index, key, bounds and erasure are per tenant, app, project and user.",
	"limits":    "Every buffer has a bound. Over it, traffic goes on without that part of memory, and it is counted.",
	"recall":    "How memories are found.",
	"injection": "How they enter a request, and how long the same bytes are replayed there.",
	"responses": "What differs for the Responses API, whose conversations the upstream can keep.",
	"persist":   "How finished turns are stored.",
	"redact":    "What is taken out of a text before anything else sees it.",
	"storage":   "Where memories are kept. A store that can't be opened, read or written never fails a request: traffic passes without memory, and the log says why.",
	"timeouts":  "",
	"log":       "",
}

// writeConfigDocs writes docs/configuration.md.
func writeConfigDocs(w io.Writer, table []setting) error {
	var b strings.Builder
	b.WriteString(configDocsHead)
	section := "\x00"
	for _, s := range table {
		at, _, nested := strings.Cut(s.key, ".")
		if !nested {
			at = ""
		}
		if at != section {
			section = at
			if at == "" {
				b.WriteString("\n## The door\n\n")
			} else {
				fmt.Fprintf(&b, "\n## %s\n\n", at)
				if intro := sectionDocs[at]; intro != "" {
					b.WriteString(intro + "\n\n")
				}
			}
			b.WriteString("| Key | Type | Default | Environment | Meaning |\n|---|---|---|---|---|\n")
		}
		if err := writeRow(&b, s); err != nil {
			return err
		}
		writeFields(&b, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFields writes what each object of a list may hold.
func writeFields(b *strings.Builder, s setting) {
	list, ok := s.at.(interface{ each() []setting })
	if !ok {
		return
	}
	for _, f := range list.each() {
		f.key = s.key + "[]." + f.key
		fmt.Fprintf(b, "| `%s` | %s | | | %s |\n", f.key, f.at.kind(), f.doc)
		writeFields(b, f)
	}
}

func writeRow(b *strings.Builder, s setting) error {
	shown := s.note
	if shown == "" {
		data, err := encodeJSON(s.at.encode())
		if err != nil {
			return err
		}
		shown = "`" + strings.ReplaceAll(string(data), "|", "\\|") + "`"
	}
	if s.share > 0 {
		shown += fmt.Sprintf(", at most %.3g %% of a container's memory", 100*s.share)
	}
	env := "`" + s.env() + "`"
	if s.key == "upstreams" {
		env = "`REMORA_UPSTREAM` (one URL, for every path)"
	} else if _, ok := s.at.(interface{ each() []setting }); ok {
		env = ""
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", s.key, s.at.kind(), shown, env, s.doc)
	return nil
}

// each are the fields of one object.
func (l objectList[T]) each() []setting { return l.fields(new(T)) }
