package identity

import "strings"

// Credentials that identify nobody: what people write where a program demands a
// key and the server does not. Many use the same, so where each credential is a
// tenant they would share one memory. docs/security.md lists the shapes.

// dummyWords are the words that dummies consist of, besides those of
// Config.DummyKeys.
var dummyWords = strings.Fields(`anything any my your the a an is no not none null nil undefined empty dummy fake mock sample example placeholder
	test testing tests local localhost api key keys apikey token secret password here needed required need require use used unused ignored ignore insert enter put
	change changeme replace me with openai anthropic gemini google azure ollama lmstudio lm studio vllm sglang litellm llama llamacpp cpp tgi localai koboldcpp
	default foo bar baz abc xyz xxx sk demo free public guest anonymous user admin na`)

// dummyKey reports whether a credential identifies nobody. own are words of the
// configuration, as letters returns them.
func dummyKey(key string, own map[string]bool) bool {
	plain := letters(key)
	if own[plain] || placeholder(key) {
		return true
	}
	if len(plain) < 2 {
		return true
	}
	plain = strings.TrimPrefix(plain, "sk")
	return plain == "" || sequence(plain) || own[plain] || ofWords(plain)
}

// sequence reports whether a text is one character three times or more, or
// counts up or down.
func sequence(s string) bool {
	if len(s) < 3 {
		return false
	}
	for _, step := range [...]byte{0, 1, 255} {
		i := 1
		for i < len(s) && (s[i]-s[i-1] == step || s[i] == '0' && s[i-1] == '9' && step == 1) {
			i++
		}
		if i == len(s) {
			return true
		}
	}
	return false
}

// ofWords reports whether a text consists of dummyWords, and digits at its end.
func ofWords(s string) bool {
	if len(s) > maxDummy {
		return false
	}
	if s = strings.TrimRight(s, "0123456789"); s == "" {
		return false
	}
	reached := make([]bool, len(s)+1)
	reached[0] = true
	for i := range len(s) {
		for _, w := range dummyWords {
			if reached[i] && strings.HasPrefix(s[i:], w) {
				reached[i+len(w)] = true
			}
		}
	}
	return reached[len(s)]
}

// maxDummy is the longest text that is looked at for words.
const maxDummy = 48
