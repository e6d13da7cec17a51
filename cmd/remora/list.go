package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

func listCommand() command {
	return command{
		name:    "list",
		summary: "show what is remembered, and of whom",
		usage: `remora list             what is remembered, oldest first: id, time (UTC), kind, text; facts say what they come from
                               with [--kind KIND] [--tag TAG] [--search WORDS] [--state STATE] [--since TIME] [--until TIME]
                               [--source SOURCE] [--used] [--never-used] [--limit N],
                               with [--quarantined] only what is kept for review,
                               with [--conversation ID] what was said in that one
       remora list --users     of whom something is remembered, and how much
       remora list --forget    what users asked to forget in a conversation, and the facts that they seem to mean
       remora list --failed    turns that could not be stored and were set aside; these two on the machine of the store` + verbFlags + `

What is shown is redacted, as it is stored. It works while Remora runs, on the same machine and as the same user.
Ids are shown by their beginning, which every command takes, and --json whole. Turns that no audit has read yet are counted.`,
		define: listMemories,
	}
}

// listing selects what to show of the store.
type listing struct {
	forget, failed bool
	json           bool
	of             selection
}

func listMemories(f *pflag.FlagSet) runner {
	r := reachFlags(f)
	v := &client.List{}
	var l listing
	f.BoolVar(&v.Users, "users", false, "show users and counts")
	f.BoolVar(&l.forget, "forget", false, "show requests to forget")
	f.BoolVar(&l.failed, "failed", false, "show turns set aside, by id and problem")
	f.BoolVar(&v.Quarantined, "quarantined", false, "show only what is kept for review and never recalled")
	f.StringVar(&v.Conversation, "conversation", "", "show only what was said in the conversation of this `id`")
	kindFlag(f, &v.Kinds)
	tagFlag(f, &v.Tags, "only with this `tag`; may be repeated")
	f.StringVar(&v.Source, "source", "", "only what came in through this `surface`, such as proxy, api or import")
	f.StringVar(&v.Query, "search", "", "only with all of these `words`, in any order; remora search ranks")
	f.StringVar(&v.Query, "q", "", "the same as --search")
	_ = f.MarkHidden("q") // it is there
	repeated(f, &v.States, "state", "only in this `state`: current, superseded, quarantined or deleted; may be repeated (default: all but deleted)")
	f.StringVar(&v.Since, "since", "", "only of this `time` or later: RFC 3339, a day, or how long ago (90m, 12h, 3d, 2w)")
	f.StringVar(&v.Until, "until", "", "only before this `time`, as for --since")
	f.BoolVar(&v.Used, "used", false, "only what requests were given")
	f.BoolVar(&v.NeverUsed, "never-used", false, "only what no request was given")
	f.IntVar(&v.Limit, "limit", 0, "only the newest `number` of each user")
	f.BoolVar(&r.json, "json", false, "write one JSON object a line")
	return func(ctx context.Context, s streams, _ []string) error {
		l.of, l.json = *r.of, r.json
		several := 0
		for _, asked := range [...]bool{v.Users, l.forget, l.failed, v.Filters()} {
			if asked {
				several++
			}
		}
		if several > 1 {
			return wrongCall("one of --users, --forget and --failed, with none of the flags that select memories")
		}
		if !l.forget && !l.failed {
			return r.run(ctx, s, needIndex, v)
		}
		if server, err := r.remote(s); err != nil || server != "" {
			return cmp.Or[error](err, wrongCall("--forget and --failed work on the machine of the store"))
		}
		c, err := sealedConfig(r.flags, s)
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
	if l.failed {
		if err := l.turns(ctx, out, pipeline); err != nil {
			return err
		}
		return out.Flush()
	}
	scopes, unreadable, err := scopesOf(ctx, store, l.of)
	if err != nil {
		return err
	}
	for _, scope := range scopes {
		if err := l.requests(ctx, out, pipeline, scope); err != nil {
			return err
		}
		if err := out.Flush(); err != nil { // a pager may have quit
			return err
		}
	}
	if unreadable > 0 {
		fmt.Fprintf(s.err, "not shown: %d users whose key is missing or damaged; whose they are is not known\n", unreadable)
	}
	return nil
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
			_, err = fmt.Fprintf(w, "  %s  %s  %s\n", f.ID, f.At.Std().Format(time.DateOnly), client.OneLine(f.Text))
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
			_, err = fmt.Fprintf(w, "%s  %s  %s  %d tries: %s\n", t.Turn, t.Since.Std().Format(time.RFC3339), showScope(t.Scope), t.Tries, client.OneLine(t.Problem))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scopeJSON is whose something is, in the output of `remora list --json`.
type scopeJSON struct {
	Tenant  string `json:"tenant"`
	App     string `json:"app"`
	Project string `json:"project"`
	User    string `json:"user"`
}

// jsonScope returns the parts in the form that the flags take.
func jsonScope(s storage.Scope) scopeJSON {
	return scopeJSON{identity.Show(s.Tenant), identity.Show(s.App), identity.Show(s.Project), identity.Show(s.User)}
}

func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
