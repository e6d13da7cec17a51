package page

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/remora-proxy/remora/api"
)

// functions are those that templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"ago":      func(at string) string { return ago(at, time.Now()) },
		"when":     when,
		"day":      day,
		"count":    func(n any) string { return group(whole(n)) },
		"percent":  func(part, all any) string { return percent(number(part), number(all)) },
		"ms":       func(micros int64) string { return milliseconds(micros) },
		"size":     func(n any) string { return size(float64(whole(n))) },
		"decimal":  func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) },
		"money":    money,
		"plural":   plural,
		"status":   statusOf,
		"reason":   reasonOf,
		"kindname": kindName,
		"marked":   marked,
		"has":      func(list []string, v string) bool { return slices.Contains(list, v) },
		"join":     strings.Join,
		"short":    shortID,
		"memory":   memoryPath,
		"quoted":   quoted,
		"person":   person,
		"target":   targetOf,
		"dict":     dict,
		"list":     func(values ...string) []string { return values },
		"svg":      func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
		"times":    func(a, b any) float64 { return number(a) * number(b) },
		"bars":     barsOf,
		"lines":    blockLines,
		"share100": func(part, all any) float64 { return 100 * number(part) / max(number(all), 1) },
		"code":     codeOf,
	}
}

// dict makes a map of names and values, for templates that take several.
func dict(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[plainText(pairs[i])] = pairs[i+1]
	}
	return out
}

// plainText returns a value of a template as text.
func plainText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func whole(n any) int64 { return int64(number(n)) }

func number(n any) float64 {
	switch n := n.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// group writes a number with thin spaces between thousands.
func group(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func percent(part, all float64) string {
	if all <= 0 {
		return "–"
	}
	share := part / all * 100
	if share > 0 && share < 1 {
		return "< 1 %"
	}
	return strconv.FormatFloat(math.Round(share), 'f', 0, 64) + " %"
}

func milliseconds(micros int64) string {
	switch {
	case micros <= 0:
		return "–"
	case micros < 1000:
		return strconv.FormatFloat(float64(micros)/1000, 'f', 2, 64) + " ms"
	case micros < 10_000:
		return strconv.FormatFloat(float64(micros)/1000, 'f', 1, 64) + " ms"
	case micros < 10_000_000:
		return group(micros/1000) + " ms"
	}
	return strconv.FormatFloat(float64(micros)/1e6, 'f', 1, 64) + " s"
}

// size writes a number of bytes.
func size(n float64) string {
	for _, unit := range [...]string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			digits := 0
			if n < 10 && unit != "B" {
				digits = 1
			}
			return strconv.FormatFloat(n, 'f', digits, 64) + " " + unit
		}
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " TiB"
}

// money writes an amount with as many digits as it needs.
func money(amount float64, currency string) string {
	digits := 2
	for v := math.Abs(amount); v > 0 && v < 0.1 && digits < 6; v *= 10 {
		digits++
	}
	return strconv.FormatFloat(amount, 'f', digits, 64) + "\u00a0" + currency
}

func plural(n any, one, many string) string {
	if whole(n) == 1 {
		return "1 " + one
	}
	return group(whole(n)) + " " + many
}

// when writes a time for people, in UTC.
func when(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05")
}

// day writes the day of a time, in UTC.
func day(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.UTC().Format("2 Jan 2006")
}

// ago writes how long ago something was, or its day if that is long.
func ago(at string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	switch d := now.Sub(t); {
	case d < -time.Minute:
		return t.UTC().Format("2 Jan 2006")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 14*24*time.Hour:
		return plural(int(d.Hours()/24), "day", "days") + " ago"
	}
	return t.UTC().Format("2 Jan 2006")
}

// shortID returns the part of an id that people can tell it by.
func shortID(id string) string {
	if len(id) <= 10 {
		return id
	}
	return id[:10] + "…"
}

// memoryPath returns the path of a memory's own view. Ids of imported memories
// may have any characters.
func memoryPath(id string) string { return "/memories/" + url.PathEscape(id) }

// quoted returns a text as it stands between quotes in a selector of CSS.
var quoted = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\n", "\\a ", "\r", "\\d ").Replace

// person names whose memory something is.
func person(t api.Target) string {
	if t.User == "" {
		return "nobody yet"
	}
	parts := []string{t.User}
	for _, part := range [...]string{t.Project, t.App} {
		if part != "" && part != "default" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " · ")
}

// sentence begins a text of the service with a capital letter and ends it.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first := []rune(text)
	first[0] = unicode.ToUpper(first[0])
	return strings.TrimRight(string(first), ".") + "."
}

// status is what X-Remora-Status means, for people.
type status struct{ Name, Tone, Meaning string }

var statuses = map[string]status{
	"injected":    {"injected", "good", "Memories were found and inserted."},
	"replayed":    {"replayed", "good", "The memories of earlier requests of this conversation were inserted again, byte for byte."},
	"repaired":    {"repaired", "warn", "The conversation was repaired so that the upstream accepts it."},
	"empty":       {"empty", "plain", "Nothing that is remembered was relevant."},
	"observed":    {"observed", "info", "Memories were found but not inserted: this is observe mode."},
	"off":         {"off", "plain", "Memory was off for this request."},
	"no-user":     {"no-user", "warn", "The request named no user."},
	"timeout":     {"timeout", "bad", "Recall took longer than its deadline; the request passed unchanged."},
	"unavailable": {"unavailable", "bad", "The store could not serve; the request passed unchanged."},
	"unsupported": {"unsupported", "plain", "Memory does not support this kind of request."},
	"too-large":   {"too-large", "warn", "The request was larger than the limit."},
	"rejected":    {"rejected", "bad", "The upstream refused the request with memory, and got the original."},
}

func statusOf(name string) status {
	if s, ok := statuses[name]; ok {
		return s
	}
	return status{name, "plain", ""}
}

var reasons = map[string]string{
	"gate":        "not relevant enough",
	"floor":       "far below the best",
	"topK":        "ranked too low to fit",
	"budget":      "no room in the budget",
	"duplicate":   "duplicate of a better match",
	"visible":     "already in the request",
	"empty":       "small talk",
	"policy":      "withheld from this model by the policy",
	"unwanted":    "not wanted for this kind of question",
	"superseded":  "replaced by a later statement",
	"quarantined": "in quarantine",
	"observed":    "only observed",
}

// reasonOf returns why a candidate was turned down, for people.
func reasonOf(name string) string {
	if text, ok := reasons[name]; ok {
		return text
	}
	return name
}

func kindName(kind string) string {
	switch kind {
	case "episode":
		return "said"
	case "resource":
		return "document"
	case "curated":
		return "note"
	}
	return kind
}

// segment is a part of a text, which may be one that was searched for.
type segment struct {
	Text string
	Hit  bool
}

// marked takes a text apart so that the words of a query stand out: those that
// begin like one, or that one begins with.
func marked(text, query string) (out []segment) {
	var wanted []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(query), isNoWord) {
		if len(word) > 2 {
			wanted = append(wanted, word)
		}
	}
	rest, end := 0, 0
	for len(wanted) > 0 {
		next := strings.IndexFunc(text[end:], isWord)
		if next < 0 {
			break
		}
		start := end + next
		end = len(text)
		if n := strings.IndexFunc(text[start:], isNoWord); n >= 0 {
			end = start + n
		}
		word := strings.ToLower(text[start:end])
		if slices.ContainsFunc(wanted, func(w string) bool { return strings.HasPrefix(word, w) || len(word) > 3 && strings.HasPrefix(w, word) }) {
			out = append(out, segment{Text: text[rest:start]}, segment{text[start:end], true})
			rest = end
		}
	}
	return append(out, segment{Text: text[rest:]})
}

func isWord(r rune) bool   { return unicode.IsLetter(r) || unicode.IsDigit(r) }
func isNoWord(r rune) bool { return !isWord(r) }
