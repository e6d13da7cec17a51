package redact

import (
	"strings"
)

// What the identifier before a value says about it.

// disclaimers are words of an identifier that say that its value is not genuine, or of use within one page only.
var fakeWords = []string{
	"fake", "dummy", "mock", "bogus", "invalid", "wrong", "sample", "example", "placeholder",
	"csrf", "xsrf", "authenticity", "antiforgery",
}

// negated are words that say so behind "non" or "not": nonMatchingToken, but not NON_PROD_TOKEN.
var fakeIfNegated = []string{"matching", "match", "valid", "genuine", "real", "secret", "sensitive", "working", "existing", "existent", "a"}

// descriptors are words at the end of an identifier that say that its value is about a secret and not one.
var metadataWords = []string{
	"name", "names", "file", "filename", "path", "dir", "url", "uri", "endpoint", "host", "length", "len", "size", "type", "count", "limit",
	"ttl", "expiry", "expires", "expiration", "version", "alias", "regex", "pattern", "format", "header", "field", "label", "title",
	"description", "scheme", "usage", "budget", "arn", "ref", "reference", "kind", "provider", "manager", "store", "class", "prefix", "index",
	"namespace", "issuer", "policy", "hint", "mode", "timestamp", "date", "digest", "checksum", "fingerprint", "thumbprint",
}

// disclaimed reports that the identifier around i says before i that its value is not genuine: fake_key.
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
		not := strings.EqualFold(last, "non") || strings.EqualFold(last, "not")
		last = word
		return isOneOf(word, fakeWords) || not && isOneOf(word, fakeIfNegated)
	})
}

// describes reports that the last word of the identifier that goes on at i is one of descriptors: secret_name, tokenUrl.
func isMetadata(text string, i int) bool {
	end := i
	for end < len(text) && end-i < maxName && (isWord(text[end]) || text[end] == '-') {
		end++
	}
	last := ""
	anyWord(text[i:end], func(word string) bool { last = word; return false })
	if strings.EqualFold(last, "id") {
		return i >= 5 && strings.EqualFold(text[i-5:i], "token") // a secret's id may be one: Vault's secret_id
	}
	return last != "" && isOneOf(last, metadataWords)
}

// anyWord calls is for the words of an identifier, which end at separators and before capitals, until it is true.
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
