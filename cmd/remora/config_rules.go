package main

import "github.com/remora-proxy/remora/redact"

// customRules is the setting of the redaction rules that a person adds.
func customRules(to *[]redact.CustomRule) value {
	return objectList[redact.CustomRule]{to, ruleFields, ""}
}

func ruleFields(r *redact.CustomRule) []setting {
	if r.Validator == "" {
		r.Validator = redact.ValidateNone
	}
	return []setting{
		{key: "id", at: text(&r.ID), doc: "Of a-z, 0-9 and -, up to 64. Unique, also among the [built-in rules](redaction.md)."},
		{key: "pattern", at: text(&r.Pattern), doc: "Regular expression (RE2), up to 1,000 bytes, that does not match the empty string. Its first group is replaced, or without one the whole match."},
		{key: "placeholder", at: text(&r.Placeholder), doc: "`[NAME]`, where NAME is 2 to 19 of A-Z and _."},
		{key: "validator", at: choice(&r.Validator, redact.Validators()...), doc: "What the value must pass besides. `luhn`: the check digit of cards; `mod97`: the check digits of IBANs; `entropy`: at least 3 bits per byte. Left out = `none`."},
		{key: "keywords", at: names(&r.Keywords), doc: "Up to 10 words of 2 to 32 bytes. With them the pattern runs only over texts that hold one, in any case; without, over all, which costs time."},
	}
}
