package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

func listCommand() command {
	return command{
		name:    "list",
		summary: "show what is remembered, and of whom",
		usage: `remora list             what is remembered, oldest first: id, day, kind, text
                               with [--quarantined] only what is kept for review, with [--conversation ID] what was said in that one
       remora list --users     of whom something is remembered, and how much
       remora list --forget    what users asked to forget in a conversation, and the facts that they seem to mean
       remora list --failed    turns that could not be stored and were set aside
       each with [--user USER] [--tenant TENANT] [--app APP] [--project PROJECT] [--json] [--data DIRECTORY] [--config FILE]

What is shown is redacted, as it is stored. It works while Remora runs, on the same machine and as the same user.
'remora forget' takes the ids.`,
		define: listMemories,
	}
}

// listing selects what to show of the store.
type listing struct {
	users, forget, failed bool
	quarantined           bool
	conversation          string
	json                  bool
	of                    selection
}

func listMemories(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	var l listing
	of := selectionFlags(f)
	f.BoolVar(&l.users, "users", false, "show users and counts")
	f.BoolVar(&l.forget, "forget", false, "show requests to forget")
	f.BoolVar(&l.failed, "failed", false, "show turns set aside, by id and problem")
	f.BoolVar(&l.quarantined, "quarantined", false, "show only what is kept for review and never recalled")
	f.StringVar(&l.conversation, "conversation", "", "show only what was said in the conversation of this `id`")
	f.BoolVar(&l.json, "json", false, "write one JSON object a line")
	return func(ctx context.Context, s streams, _ []string) error {
		l.of = *of
		several := 0
		for _, asked := range [...]bool{l.users, l.forget, l.failed, l.quarantined || l.conversation != ""} {
			if asked {
				several++
			}
		}
		if several > 1 {
			return wrongCall("one of --users, --forget and --failed, and --quarantined and --conversation with none of them")
		}
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		return withStore(ctx, c, func(store openStore) error { return l.run(ctx, s, c, store) })
	}
}

// run works on any store.
func (l listing) run(ctx context.Context, s streams, c config.Config, store openStore) error {
	out := bufio.NewWriter(s.out)
	// It only reads, and is not run.
	pipeline := persist.New(c.Persist, store, store, nil, nil, nil, nil)
	var err error
	unreadable := 0
	if l.failed {
		err = l.turns(ctx, out, pipeline)
	} else {
		var scopes []storage.Scope
		if scopes, unreadable, err = scopesOf(ctx, store, l.of); err != nil {
			return err
		}
		for _, scope := range scopes {
			switch {
			case l.users:
				err = l.count(ctx, out, store, scope)
			case l.forget:
				err = l.requests(ctx, out, pipeline, scope)
			default:
				err = l.memories(ctx, s.err, out, store, scope)
			}
			if err == nil {
				err = out.Flush() // a pager may have quit
			}
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if unreadable > 0 {
		fmt.Fprintf(s.err, "not shown: %d users whose key is missing or damaged; whose they are is not known\n", unreadable)
	}
	return out.Flush()
}

// count shows a user. Expired memories that have not been removed yet count.
func (l listing) count(ctx context.Context, w io.Writer, store storage.Digester, scope storage.Scope) error {
	d, err := store.Digest(ctx, scope)
	if err != nil {
		return err
	}
	if l.json {
		return writeLine(w, struct {
			Scope    scopeJSON `json:"scope"`
			Memories int       `json:"memories"`
		}{jsonScope(scope), d.Memories})
	}
	_, err = fmt.Fprintf(w, "%s: %d memories\n", showScope(scope), d.Memories)
	return err
}

func (l listing) memories(ctx context.Context, told, w io.Writer, store storage.Store, scope storage.Scope) error {
	headed, damaged := false, 0
	for page, err := range storage.ScanPages(ctx, store, scope, storage.Query{Conversation: l.conversation}) {
		if err != nil {
			return err
		}
		damaged += page.Damaged
		for i := range page.Memories {
			m := &page.Memories[i]
			if l.quarantined && m.Trust > 0 {
				continue
			}
			if l.json {
				err = writeLine(w, jsonMemory(m))
			} else {
				if !headed {
					headed = true
					fmt.Fprintf(w, "%s\n", showScope(scope))
				}
				_, err = fmt.Fprintf(w, "  %s  %s  %s  %s\n", m.ID, m.EventTime.Std().Format(time.DateOnly), describe(m), oneLine(m.Text))
			}
			if err != nil {
				return err
			}
		}
	}
	if damaged > 0 {
		fmt.Fprintf(told, "not shown: %d damaged memories of %s\n", damaged, showScope(scope))
	}
	return nil
}

// describe returns in a word or two what a memory is.
func describe(m *storage.Memory) string {
	what := string(m.Kind)
	if m.Kind == storage.KindEpisode {
		what = string(m.Provenance.Role)
	}
	switch {
	case m.Trust == 0:
		what += " (quarantined)"
	case m.SupersededBy != "" || m.ValidTo != 0:
		what += " (superseded)"
	}
	return what
}

func (l listing) requests(ctx context.Context, w io.Writer, p *persist.Pipeline, scope storage.Scope) error {
	all, err := p.PendingForgets(ctx, scope)
	if err != nil {
		return err
	}
	for i := range all {
		f := &all[i]
		if l.json {
			err = writeLine(w, struct {
				Scope        scopeJSON `json:"scope"`
				ID           string    `json:"id"`
				Said         time.Time `json:"said"`
				Conversation string    `json:"conversation"`
				Text         string    `json:"text"`
				Memories     []string  `json:"memories"`
			}{jsonScope(scope), f.ID, f.At.Std(), f.Conversation, f.Text, f.Memories})
		} else {
			if i == 0 {
				fmt.Fprintf(w, "%s\n", showScope(scope))
			}
			_, err = fmt.Fprintf(w, "  %s  %s  %s\n", f.ID, f.At.Std().Format(time.DateOnly), oneLine(f.Text))
			for _, id := range f.Memories {
				fmt.Fprintf(w, "    means %s\n", id)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l listing) turns(ctx context.Context, w io.Writer, p *persist.Pipeline) error {
	all, err := p.Quarantined(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if !l.of.covers(t.Scope) {
			continue
		}
		if l.json {
			err = writeLine(w, struct {
				Scope   scopeJSON `json:"scope"`
				Turn    string    `json:"turn"`
				Since   time.Time `json:"since"`
				Tries   int       `json:"tries"`
				Problem string    `json:"problem"`
			}{jsonScope(t.Scope), t.Turn, t.Since.Std(), t.Tries, t.Problem})
		} else {
			_, err = fmt.Fprintf(w, "%s  %s  %s  %d tries: %s\n", t.Turn, t.Since.Std().Format(time.RFC3339), showScope(t.Scope), t.Tries, oneLine(t.Problem))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oneLine keeps a text from ending its line and from controlling a terminal.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}

// scopeJSON and the types below are the output of `remora list --json`.
type scopeJSON struct {
	Tenant  string `json:"tenant"`
	App     string `json:"app"`
	Project string `json:"project"`
	User    string `json:"user"`
}

// jsonScope returns the parts in the form that the flags take.
func jsonScope(s storage.Scope) scopeJSON {
	return scopeJSON{showPart(s.Tenant), showPart(s.App), showPart(s.Project), showPart(s.User)}
}

type memoryJSON struct {
	Scope        scopeJSON  `json:"scope"`
	ID           string     `json:"id"`
	Kind         string     `json:"kind"`
	Role         string     `json:"role,omitempty"`
	Said         time.Time  `json:"said"`
	Expires      *time.Time `json:"expires,omitempty"`
	Conversation string     `json:"conversation"`
	Quarantined  bool       `json:"quarantined"`
	SupersededBy string     `json:"superseded_by,omitempty"`
	Text         string     `json:"text"`
}

func jsonMemory(m *storage.Memory) memoryJSON {
	out := memoryJSON{
		Scope: jsonScope(m.Scope), ID: m.ID, Kind: string(m.Kind), Role: string(m.Provenance.Role), Said: m.EventTime.Std(),
		Conversation: m.Conversation, Quarantined: m.Trust == 0, SupersededBy: m.SupersededBy, Text: m.Text,
	}
	if m.ExpiresAt != 0 {
		at := m.ExpiresAt.Std()
		out.Expires = &at
	}
	return out
}

func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
