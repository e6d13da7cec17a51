package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
)

// Names become parts of scopes byte by byte: two names are one person only if
// all of their bytes are equal. What Remora itself puts there begins with NUL,
// which no name holds: KeyHolderUser, the installation of a known client, and
// the hash of a name that is too long.
const (
	installationPrefix = "\x00installation:"
	hashPrefix         = "\x00sha256:"
)

// Unusable says why a name in a request identifies nobody: a request with such
// a name gets no memory, because all others who send it would share it. The
// zero value says nothing.
type Unusable struct {
	Source string // the header's name, or "body" for a field of the body
	Why    string
}

// Reasons why a text can't be a name.
const (
	whyControl     = "has control characters or broken UTF-8"
	whyPlaceholder = "is a placeholder that nobody has filled in"
	whyComposite   = "is an id of several parts, one of them a session"
	whyRepeated    = "is there twice, with different values"
)

// nameOf returns a name as a part of a scope, "" for an empty one, or why it
// can't be one. The result is a copy: a header's value may keep the whole head
// in memory.
func nameOf(v string) (part, why string) {
	switch {
	case strings.TrimFunc(v, unicode.IsSpace) == "":
		return "", ""
	case !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }):
		return "", whyControl // U+FFFD is what a decoder makes of half a surrogate pair
	case placeholder(v):
		return "", whyPlaceholder
	}
	return bounded("", v), ""
}

// bounded returns prefix and v, or a hash of both if they are too long for a
// part of a scope.
func bounded(prefix, v string) string {
	if len(prefix)+len(v) <= storage.MaxScopePart {
		return prefix + strings.Clone(v)
	}
	sum := sha256.Sum256([]byte(prefix + v))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// emptyWords are what programs write for a value that is not there, and what
// applications call everybody who has not signed in; in lower case, letters and
// digits only.
var emptyWords = words(`undefined null nil none nan na unset notset missing empty unknown anonymous anon guest nobody
	userid user_id user-id yourname yourid youruserid yourusername username insertuserid optionalempty dbnull void`)

// placeholders are shapes of templates that nobody has filled in, and of values
// that were turned into text without being one. They are matched without white
// space and quotes around them.
var placeholders = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\{\{.*\}\}`, `\$\{.*\}`, `\$\(.*\)`, `#\{.*\}`, `\{%.*%\}`, `<%.*%>`, `%\(.*\)s`, `@\{.*\}`, // template languages, anywhere
	`^\{[a-z_][a-z0-9_.\- ]*\}$`, `^<[^<>@]*>$`, `^\[[a-z_][a-z0-9_.\- ]*\]$`, `^__[a-z0-9_]+__$`, // {user_id}, <your id>, [USER], __USER__
	`^\$[a-z_][a-z0-9_.]*$`, `^%[a-z_][a-z0-9_]*%$`, `^:[a-z_]+$`, `^%[svdq]$`, `%!.?\(`, // $USER, %USER%, :user_id, %s, %!s(<nil>)
	`^\[object \w+\]$`, `^function\b.*\{`, `^<[\w.]+ object at 0x`, `^optional(\.empty|\[.*\])$`, `^\(?(null|nil|none|undefined)\)?$`,
}, "|"))

// placeholder reports whether v stands for a name and is none.
func placeholder(v string) bool {
	v = strings.Trim(strings.TrimFunc(v, unicode.IsSpace), "\"'`")
	if v == "" {
		return true
	}
	if len(v) <= longestPlaceholder && emptyWords[letters(v)] {
		return true
	}
	return (strings.ContainsAny(v, "{}()<>[]$%") || v[0] == ':' || v[0] == '_' || v[0]|0x20 == 'o') && placeholders.MatchString(v) // few names have one of these
}

// longestPlaceholder is the longest text that is looked up in emptyWords, in
// bytes.
const longestPlaceholder = 24

// letters returns the letters and digits of v in lower case.
func letters(v string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, v)
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[letters(w)] = true
	}
	return set
}

// sessionPart is in ids that name a session besides a user: "user:7|session:9",
// "user_7_session_5f3a...".
var sessionPart = regexp.MustCompile(`(?i)(^|[^a-z])(session|conversation|chat|thread|request|trace)(_?id)?["']?[:=]|[^a-z](session|conversation|thread)_[0-9a-f-]{8,}`)
