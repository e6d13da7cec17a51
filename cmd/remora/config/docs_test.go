package config

import (
	"fmt"
	"io"
	"strings"
)

const docsHead = "<!-- Generated from the table of settings in cmd/remora/config/settings.go by `make docs`. -->\n" + `
# Configuration

Settings come from four places; each one overrides those before it:

1. the defaults below;
2. a JSON file: ` + "`--config FILE`, or `REMORA_CONFIG`, or `~/.config/remora/config.json`" + ` if it exists;
3. the environment variable in the table. With ` + "`_FILE`" + ` appended, it is the path of a file to read the value from, such
   as a mounted secret, which must not be empty. Lists are separated by commas. An empty variable sets nothing;
4. the flags ` + "`--listen`, `--upstream`, `--data`, `--forward`" + `.

The file is strict: unknown keys, duplicate keys and values of the wrong type are errors. All errors are reported at
once, each with its key and line. [config.example.json](../config.example.json) holds the defaults; your file needs only
what differs. ` + "`remora check`" + ` reports what is wrong, or prints the effective configuration with secrets hidden, tries the
upstreams, the embeddings server and the store, and ends with what it found.

Durations are strings such as ` + "`30ms`, `1m30s` or `24h`" + `. Sizes are in bytes. No number may be negative. Unless the table
says otherwise, an integer is at most 1,048,576, a size 1 TiB, a duration 100 years and a number 10^9. Ranking weights,
batch sizes and internal timeouts are not settings: they are constants of the packages.

In a Linux container with a memory limit (of the process's control group or one above it), the limits of what is held in
memory default to a share of it, as the table says; values that are set apply unchanged, and a copy of
config.example.json sets them all. The store's process keeps to ` + "`storage.memoryBytes`" + `. The proxy's GOMEMLIMIT is 13/16
of the container's memory less that, unless the environment sets ` + "`GOMEMLIMIT`" + `. The rest is for buffers of the kernel and
mapped files. 128 MiB are enough for both processes. ` + "`GOGC` and `GOMAXPROCS`" + ` are left to Go.

Traces, metrics and logs are sent as the standard ` + "`OTEL_*`" + ` variables say, and nothing is sent without them:
` + "`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROTOCOL`, `OTEL_SERVICE_NAME`" + ` and the others that
[telemetry.md](telemetry.md) lists. Prometheus reads metrics from ` + "`health.listen`" + `.
`

// sectionDocs introduces the sections of docs/configuration.md.
var sectionDocs = map[string]string{
	"forward":   "For agents whose base URL can't be changed. The hosts of `forward.intercept` are decrypted with certificates of a\nlocal authority (`remora ca init`) and get memory; all others are tunnelled untouched.",
	"identity":  "Whose memory a request uses. Nobody sees another's: index, key, limits and erasure are per tenant, app, project and\nuser.",
	"limits":    "Every buffer is limited. Beyond its limit, traffic continues without that part of memory, and it is counted.",
	"recall":    "How memories are found.",
	"injection": "How they enter a request, and how long the same bytes are replayed there.",
	"responses": "What differs for the Responses API, whose conversations the upstream can keep.",
	"persist":   "How finished turns are stored.",
	"distill":   "An optional model that proposes facts.",
	"redact":    "What is removed from a text before anything else sees it.",
	"api":       "The control plane ([control-plane.md](control-plane.md)). It has a listener of its own, so that no admin route stands on\nthe port that agents use.",
	"memory":    "Whose memory requests get.",
	"gateway":   "The memory of mode `gateway`. Set nothing of it in another mode.",
	"curated":   "The memory of mode `curated`.",
	"storage":   "Where memories are kept. A store that can't be opened, read or written never fails a request: traffic passes without\nmemory, and the log says why.",
}

// writeDocs writes docs/configuration.md.
func writeDocs(w io.Writer, table []setting) error {
	var b strings.Builder
	b.WriteString(docsHead)
	last := "\x00"
	for _, s := range table {
		section := sectionOf(s.key)
		if section != last {
			last = section
			fmt.Fprintf(&b, "\n## %s\n\n", section)
			if intro := sectionDocs[section]; intro != "" {
				b.WriteString(intro + "\n\n")
			}
			b.WriteString("| Key | Type | Default | Range | Environment | Meaning |\n|---|---|---|---|---|---|\n")
		}
		if err := writeRow(&b, s); err != nil {
			return err
		}
		writeFields(&b, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRow(b *strings.Builder, s setting) error {
	byDefault := s.note
	if byDefault == "" {
		data, err := encodeJSON(s.at.encode())
		if err != nil {
			return err
		}
		byDefault = "`" + strings.ReplaceAll(string(data), "|", "\\|") + "`"
	}
	if s.share > 0 {
		byDefault += fmt.Sprintf(", at most %.3g %% of a container's memory", 100*s.share)
	}
	if s.each > 0 {
		byDefault += fmt.Sprintf(", at most one for each %s of a container's memory", formatBytes(int64(s.each)))
	}
	env := "`" + s.env() + "`"
	if s.key == "upstreams" {
		env = "`REMORA_UPSTREAM` (one URL, for every path)"
	} else if s.at.kind() == listOfObjects {
		env = ""
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s |\n", s.key, s.at.kind(), byDefault, documentedRange(s), env, s.doc)
	return nil
}

// writeFields writes what each object of a list may hold.
func writeFields(b *strings.Builder, s setting) {
	list, ok := s.at.(interface{ each() []setting })
	if !ok {
		return
	}
	for _, f := range list.each() {
		f.key = s.key + "[]." + f.key
		fmt.Fprintf(b, "| `%s` | %s | | %s | | %s |\n", f.key, f.at.kind(), documentedRange(f), f.doc)
		writeFields(b, f)
	}
}

func documentedRange(s setting) string {
	n, ok := s.at.(number)
	if !ok {
		return ""
	}
	if s.atLeast == "" {
		return n.limits()
	}
	return strings.TrimPrefix(n.limits()+", at least `"+s.atLeast+"`", ", ")
}
