package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/text"
)

// Human returns the part of a message that a person typed, or "". texts are the
// message's.
func (p *Profile) Human(texts []string) string {
	kept, cloned := texts, false
	if slices.ContainsFunc(kept, p.isHarness) {
		kept, cloned = slices.DeleteFunc(slices.Clone(kept), p.isHarness), true
	}
	for i, t := range kept {
		if cut := p.cutPreamble(t); len(cut) != len(t) {
			if !cloned {
				kept, cloned = slices.Clone(kept), true
			}
			kept[i] = cut
		}
	}
	return strings.TrimSpace(text.HumanWords(fence.Strip(text.CutElements(strings.Join(kept, "\n"), p.Wrappers))))
}

// Typed reports whether a person typed any of a message with these texts. A
// message without text, such as a picture, counts as a person's.
func (p *Profile) Typed(texts []string) bool {
	if strings.TrimSpace(strings.Join(texts, "")) == "" {
		return true
	}
	// Plain prose needs no cutting, and mostly is all there is.
	if slices.ContainsFunc(texts, func(t string) bool {
		return strings.TrimSpace(t) != "" && !strings.ContainsAny(t, "<`") && !p.isHarness(t) && len(p.cutPreamble(t)) == len(t)
	}) {
		return true
	}
	return p.Human(texts) != ""
}

// isHarness reports whether no person typed any of text.
func (p *Profile) isHarness(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return slices.ContainsFunc(p.Harness, func(o Opening) bool {
		rest, begins := strings.CutPrefix(text, o.Begins)
		return begins && strings.Contains(text, o.Holds) && (!o.Whole || strings.TrimRight(rest, " \t\r\n") == "")
	})
}

// cutPreamble returns a text without the preamble that the client put before
// it.
func (p *Profile) cutPreamble(t string) string {
	for _, pre := range p.Preambles {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(t, " \t\r\n"), pre.Begins); ok {
			if i := strings.LastIndex(rest, pre.Ends); i >= 0 {
				return rest[i+len(pre.Ends):]
			}
		}
	}
	return text.AfterPreamble(t)
}

// Project returns the name of the project that the agent works on, or "". It is
// a keyed hash of the working directory, which it does not reveal.
func (p *Profile) Project(secret []byte, req *dialect.Request) string {
	directory := p.directory(req)
	if directory == "" {
		return ""
	}
	m := hmac.New(sha256.New, secret)
	for _, part := range [...]string{"remora project", directory} {
		_, _ = m.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		_, _ = m.Write([]byte(part))
	}
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// maxDirectory limits the path of a working directory, and directoryReach the
// part of a text that is searched for it, in bytes.
const (
	maxDirectory   = 1024
	directoryReach = 64 << 10
)

// directory returns the agent's working directory, or "".
func (p *Profile) directory(req *dialect.Request) string {
	if len(p.Directory) == 0 {
		return ""
	}
	if d := p.directoryIn(req.System()); d != "" {
		return d
	}
	for i := 0; i <= req.Turn && i < 4; i++ { // the harness comes first
		if req.Messages[i].Role == dialect.RoleUser {
			if d := p.directoryIn(req.Text(i)); d != "" {
				return d
			}
		}
	}
	return ""
}

func (p *Profile) directoryIn(text string) string {
	text = text[:min(len(text), directoryReach)]
	for _, mark := range p.Directory {
		_, after, found := strings.Cut(text, mark)
		if !found {
			continue
		}
		end := strings.IndexAny(after, "\n<")
		if end < 0 {
			end = len(after)
		}
		if d := strings.TrimRight(strings.TrimSpace(after[:end]), ".,"); d != "" && len(d) <= maxDirectory {
			return d
		}
	}
	return ""
}
