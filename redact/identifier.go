package redact

import (
	"strings"
)

// maxName is how much of an identifier around a keyword is examined, in bytes.
const maxName = 48

// fakeWords in an identifier show that its value is not genuine, or is valid
// only within one page.
var fakeWords = []string{
	"fake", "dummy", "mock", "bogus", "invalid", "wrong", "sample", "example", "placeholder",
	"csrf", "xsrf", "authenticity", "antiforgery",
}

// fakeIfNegated are fakeWords after "non" or "not": nonMatchingToken, but not
// NON_PROD_TOKEN.
var fakeIfNegated = []string{"matching", "match", "valid", "genuine", "real", "secret", "sensitive", "working", "existing", "existent", "a"}

// metadataWords at the end of an identifier show that its value is about a
// secret.
var metadataWords = []string{
	"name", "names", "file", "filename", "path", "dir", "url", "uri", "endpoint", "host", "length", "len", "size", "type", "count", "limit",
	"ttl", "expiry", "expires", "expiration", "version", "alias", "regex", "pattern", "format", "header", "field", "label", "title",
	"description", "scheme", "usage", "budget", "arn", "ref", "reference", "kind", "provider", "manager", "store", "class", "prefix", "index",
	"namespace", "issuer", "policy", "hint", "mode", "timestamp", "date", "digest", "checksum", "fingerprint", "thumbprint",
}

// isFake reports whether the identifier around i has a fake word before i:
// fake_key.
func isFake(text string, i int) bool {
	from := i
	for from > 0 && i-from < maxName && (isWord(text[from-1]) || text[from-1] == '-' || text[from-1] == '.') {
		from--
	}
	last := ""
	return anyWord(text[from:i], func(word string) bool {
		if strings.EqualFold(word, "public") && strings.EqualFold(text[i:min(len(text), i+5)], "token") {
			return true // PublicKeyToken
		}
		negated := strings.EqualFold(last, "non") || strings.EqualFold(last, "not")
		last = word
		return isOneOf(word, fakeWords) || negated && isOneOf(word, fakeIfNegated)
	})
}

// isMetadata reports whether the identifier that continues at i ends in one of
// metadataWords: secret_name, tokenUrl.
func isMetadata(text string, i int) bool {
	end := i
	for end < len(text) && end-i < maxName && isBase64URL(text[end]) {
		end++
	}
	last := ""
	anyWord(text[i:end], func(word string) bool { last = word; return false })
	if strings.EqualFold(last, "id") {
		return i >= 5 && strings.EqualFold(text[i-5:i], "token") // a secret's id may be secret: Vault's secret_id
	}
	return isOneOf(last, metadataWords)
}

// inflections make another word of token and secret: tokenizer, secretary.
var inflections = []string{"iz", "is", "ary", "ari", "ion", "ly", "ing"}

// isInflected reports whether the word that ends at i continues as another one.
func isInflected(text string, i int) bool {
	return i < len(text) && isLetter(text[i]) && hasAnyPrefix(text[i:], inflections)
}

// anyWord reports whether is holds for one of the words of an identifier. Words
// end at separators and before capitals.
func anyWord(identifier string, is func(word string) bool) bool {
	from := 0
	for i := 0; i <= len(identifier); i++ {
		hump := i > 0 && i < len(identifier) && isUpper(identifier[i]) && identifier[i-1] >= 'a' && identifier[i-1] <= 'z'
		if i < len(identifier) && isLetter(identifier[i]) && !hump {
			continue
		}
		if i > from && is(identifier[from:i]) {
			return true
		}
		from = i
		if i < len(identifier) && !hump {
			from++
		}
	}
	return false
}
