package distill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist/extract"
)

// Limits of a proposal, in characters.
const (
	maxQuote     = 400
	maxStatement = 300
)

// parse reads an answer. It refuses all of it if any part is not as requested:
// a model that was talked into something else is not trusted with the rest.
func parse(answer string, messages, limit int) ([]extract.Proposal, error) {
	if !utf8.ValidString(answer) {
		return nil, refused("not UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	facts, err := object(d, func(key string, value json.RawMessage) ([]json.RawMessage, error) {
		if key != "facts" {
			return nil, refused("unknown key")
		}
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil || list == nil {
			return nil, refused("facts is not a list")
		}
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refused("text after the object")
	}
	if facts == nil || len(facts) > limit {
		return nil, refused("no list of facts, or too long")
	}
	out := []extract.Proposal{}
	for _, raw := range facts {
		p, err := proposal(raw)
		if err != nil {
			return nil, err
		}
		if p.Message < 0 || p.Message >= messages {
			return nil, refused("no such message")
		}
		if err := check(&p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func refused(why string) error { return fmt.Errorf("distill: %s: %w", why, ErrRefused) }

// object reads an object and calls take for each key; a duplicate key is
// refused. It returns what take returned last.
func object[T any](d *json.Decoder, take func(string, json.RawMessage) (T, error)) (out T, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return out, refused("not an object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok || seen[key] {
			return out, refused("not an object with each key once")
		}
		seen[key] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return out, refused("not JSON")
		}
		if out, err = take(key, value); err != nil {
			return out, err
		}
	}
	if _, err := d.Token(); err != nil {
		return out, refused("not JSON")
	}
	return out, nil
}

func proposal(raw json.RawMessage) (extract.Proposal, error) {
	var p extract.Proposal
	keys := 0
	_, err := object(json.NewDecoder(bytes.NewReader(raw)), func(key string, value json.RawMessage) (struct{}, error) {
		var into any
		switch key {
		case "message":
			into = &p.Message
		case "quote":
			into = &p.Quote
		case "statement":
			into = &p.Statement
		case "kind":
			into = &p.Kind
		default:
			return struct{}{}, refused("unknown key")
		}
		keys++
		if err := json.Unmarshal(value, into); err != nil || bytes.Equal(value, []byte("null")) {
			return struct{}{}, refused("wrong type")
		}
		return struct{}{}, nil
	})
	if err == nil && keys != 4 {
		err = refused("a key is missing")
	}
	return p, err
}

// check refuses what is not a plain statement.
func check(p *extract.Proposal) error {
	switch p.Kind {
	case "fact", "preference", "decision", "goal", "name":
	default:
		return refused("unknown kind")
	}
	if n := utf8.RuneCountInString(p.Statement); n < 5 || n > maxStatement {
		return refused("a statement is too short or too long")
	}
	if n := utf8.RuneCountInString(p.Quote); n < 3 || n > maxQuote {
		return refused("a quotation is too short or too long")
	}
	for _, r := range p.Statement {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return refused("control characters")
		}
	}
	low := strings.ToLower(p.Statement)
	if strings.HasSuffix(strings.TrimSpace(low), "?") {
		return refused("a question")
	}
	for _, sign := range [...]string{"ignore ", "disregard", "system prompt", "you must", "you are now", "you should", "assistant must", "assistant should always obey",
		"<|", "[inst", "<<sys", "</", "{{", "```", "tool_call", "function_call", "\"role\"", "system:", "assistant:"} {
		if strings.Contains(low, sign) {
			return refused("worded as an instruction")
		}
	}
	if strings.Contains(low, "://") && !strings.Contains(p.Quote, "://") || strings.Contains(low, "](") {
		return refused("a link that the user did not write")
	}
	// Numbers must be in the quotation.
	for _, digits := range strings.FieldsFunc(p.Statement, func(r rune) bool { return !unicode.IsDigit(r) }) {
		if !strings.Contains(p.Quote, digits) {
			return refused("a number that the user did not write")
		}
	}
	return nil
}
