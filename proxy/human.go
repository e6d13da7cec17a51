package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/text"
)

// human is what of a message, given by its texts, a human typed, "" where that is nothing.
func (c *client) human(texts []string) string {
	kept := texts
	if slices.ContainsFunc(kept, c.harness) {
		kept = slices.DeleteFunc(slices.Clone(kept), c.harness)
	}
	for i, t := range kept {
		if cut := c.cutPreamble(t); len(cut) != len(t) {
			kept = slices.Clone(kept)
			kept[i] = cut
		}
	}
	return strings.TrimSpace(recall.HumanWords(text.CutElements(strings.Join(kept, "\n"), c.Wrappers)))
}

// maxHeard bounds how much of a request's texts is read for what humans typed beside its newest turn, in bytes. It is
// hundreds of messages of a tool loop; what a harness adds to results is short. Clients may send a body that is nothing
// but such texts, and nothing bounds the time of reading them but this. Each text counts for some bytes more than it has.
const (
	maxHeard  = 1 << 20
	textHeard = 64
)

// hear is what a human typed in message i. read is false where too much was read before.
func (x *exchange) hear(i int) (words string, read bool) {
	texts, read := x.textsHeard(i)
	if !read {
		return "", false
	}
	return x.client.human(texts), true
}

func (x *exchange) textsHeard(i int) (texts []string, read bool) {
	if x.heard >= maxHeard {
		return nil, false
	}
	texts = x.req.Texts(i)
	x.heard += textHeard
	for _, t := range texts {
		x.heard += len(t) + textHeard
	}
	return texts, true
}

// typed says whether a human typed any of message i. What nobody may read any more counts as a human's, and so does a picture
// without words.
func (x *exchange) typed(i int) bool {
	texts, read := x.textsHeard(i)
	if !read || strings.TrimSpace(strings.Join(texts, "")) == "" {
		return true
	}
	// Prose shows at once that it is no harness's, and mostly is all there is.
	if slices.ContainsFunc(texts, func(t string) bool {
		return strings.TrimSpace(t) != "" && !strings.ContainsAny(t, "<`") && !x.client.harness(t) && len(x.client.cutPreamble(t)) == len(t)
	}) {
		return true
	}
	return x.client.human(texts) != ""
}

// demote tells turns from tool results. Messages that are too many to be read stay turns, which is how what was inserted
// at them is found again; as they are the oldest, nothing new is.
func (x *exchange) demote() error {
	return x.req.Demote(func(i int) bool {
		words, read := x.hear(i)
		return words != "" || !read
	})
}

// harness says whether no human typed any of text.
func (c *client) harness(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return slices.ContainsFunc(c.Harness, func(o Opening) bool {
		rest, begins := strings.CutPrefix(text, o.Begins)
		return begins && strings.Contains(text, o.Holds) && (!o.Whole || strings.TrimRight(rest, " \t\r\n") == "")
	})
}

func (c *client) cutPreamble(text string) string {
	for _, p := range c.Preambles {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), p.Begins); ok {
			if i := strings.LastIndex(rest, p.Ends); i >= 0 {
				return rest[i+len(p.Ends):]
			}
		}
	}
	return text
}

// isSide says whether the request is no turn of a conversation. said is the human's words of its newest user message.
func (c *client) isSide(h http.Header, req *dialect.Request, said string) bool {
	said = strings.TrimLeft(said, "\"")
	var system []string // read once, where a rule asks for it
	read := false
	return slices.ContainsFunc(c.side, func(s sideRule) bool {
		switch {
		case s.User != "" && s.Whole && strings.TrimRight(said, "\" \t\r\n") != s.User,
			s.User != "" && !s.Whole && !strings.HasPrefix(said, s.User),
			s.Holds != "" && !strings.Contains(said, s.Holds),
			s.NoTools && req.Tools,
			s.NoStream && req.Stream,
			s.MaxTokens > 0 && (req.MaxTokens == 0 || req.MaxTokens > s.MaxTokens),
			s.Alone && !alone(req),
			s.source != nil && !slices.ContainsFunc(s.source.all(h, req), func(v string) bool { return slices.Contains(s.Values, v) }):
			return false
		}
		if s.System == "" {
			return true
		}
		if !read && !req.SystemMayStartWith(s.System) {
			return false
		}
		if !read {
			system, read = req.SystemPrefixes(systemBegin), true
		}
		return beginsOne(system, s.System)
	})
}

// alone says whether the newest user message is all that there is of the conversation.
func alone(req *dialect.Request) bool {
	if req.PreviousID != "" || req.Held || req.Turn < 0 || req.Turn != len(req.Messages)-1 {
		return false
	}
	return !slices.ContainsFunc(req.Messages[:req.Turn], func(m dialect.Message) bool { return m.Role != dialect.RoleSystem })
}

// maxDirectory bounds a working directory's path, and directoryReach how far into a text it is looked for, in bytes.
const (
	maxDirectory   = 1024
	directoryReach = 64 << 10
)

// directory is the agent's working directory, "" where it tells none.
func (c *client) directory(req *dialect.Request) string {
	if len(c.Directory) == 0 {
		return ""
	}
	if d := c.directoryIn(req.System()); d != "" {
		return d
	}
	for i := 0; i <= req.Turn && i < 4; i++ { // the harness speaks first
		if req.Messages[i].Role == dialect.RoleUser {
			if d := c.directoryIn(req.Text(i)); d != "" {
				return d
			}
		}
	}
	return ""
}

func (c *client) directoryIn(text string) string {
	text = text[:min(len(text), directoryReach)]
	for _, mark := range c.Directory {
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
