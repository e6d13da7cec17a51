package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/imports"
	"github.com/remora-proxy/remora/cmd/remora/client"
)

// The commands that are verbs of the control plane. Each declares its flags and
// returns the verb; package client has the rest.

// verbFlags are the flags in the usage of all of them.
const verbFlags = `
       with [--user USER] [--tenant TENANT] [--app APP] [--project PROJECT] [--json]
       and [--data DIRECTORY] [--config FILE], or [--server URL] [--token-file FILE]`

// makeVerb returns a verb, of the arguments that are not flags.
type makeVerb func(s streams, args []string) (client.Verb, error)

// verbCommand completes a command.
func verbCommand(c command, n need, define func(f *pflag.FlagSet) makeVerb) command {
	c.usage += verbFlags
	c.define = func(f *pflag.FlagSet) runner {
		r := reachFlags(f)
		f.BoolVar(&r.json, "json", false, "write what the control plane answers as JSON, one object a line")
		verb := define(f)
		return func(ctx context.Context, s streams, args []string) error {
			v, err := verb(s, args)
			if err != nil {
				return err
			}
			if _, ok := v.(*client.Follow); ok {
				return r.run(ctx, s, needRemora, v)
			}
			return r.run(ctx, s, n, v)
		}
	}
	return c
}

// maxWords is the maximum number of words of a text on the command line.
const maxWords = 10_000

func searchCommand() command {
	return verbCommand(command{
		name:    "search",
		summary: "search what is remembered of somebody, and see why it ranks",
		usage:   "remora search QUERY [--explain] [--gated] [--top N] [--kind KIND] [--tag TAG] [--conversation ID]",
		minArgs: 1, maxArgs: maxWords,
	}, needIndex, func(f *pflag.FlagSet) makeVerb {
		v := &client.Search{}
		f.BoolVar(&v.Explain, "explain", false, "take the scores apart")
		f.BoolVar(&v.Gated, "gated", false, "leave out what requests would not be given, and show why")
		f.IntVar(&v.TopK, "top", 0, "show the best `number` (default: recall.topK)")
		kindFlag(f, &v.Kinds)
		tagFlag(f, &v.Tags, "only those with this `tag`; may be repeated")
		f.StringVar(&v.Conversation, "conversation", "", "search as in the conversation of this `id`")
		return func(_ streams, args []string) (client.Verb, error) {
			v.Query = strings.Join(args, " ")
			return v, nil
		}
	})
}

// repeated defines a flag whose values are collected.
func repeated(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.Func(name, usage, func(given string) error { *to = append(*to, given); return nil })
}

func kindFlag(f *pflag.FlagSet, to *[]string) {
	repeated(f, to, "kind", "only of this `kind`: episode, fact, resource or curated; may be repeated")
}

func tagFlag(f *pflag.FlagSet, to *[]string, usage string) { repeated(f, to, "tag", usage) }

func showCommand() command {
	return verbCommand(command{
		name:    "show",
		summary: "show a memory, how it came to be, and what its placeholders stand for",
		usage:   "remora show ID [--history] [--originals]",
		minArgs: 1, maxArgs: 1,
	}, needIndex, func(f *pflag.FlagSet) makeVerb {
		v := &client.Show{}
		f.BoolVar(&v.History, "history", false, "show its changes, and what it superseded")
		f.BoolVar(&v.Originals, "originals", false, "show what its placeholders stand for, as far as that is kept")
		return func(_ streams, args []string) (client.Verb, error) {
			v.ID = args[0]
			return v, nil
		}
	})
}

func addCommand() command {
	return verbCommand(command{
		name:    "add",
		summary: "save a fact",
		usage:   "remora add TEXT|- [--tag TAG] [--conversation ID] [--event-time TIME] [--priority NUMBER]",
		minArgs: 1, maxArgs: maxWords,
	}, needStore, func(f *pflag.FlagSet) makeVerb {
		v := &client.Add{}
		tagFlag(f, &v.Tags, "with this `tag`; may be repeated")
		f.StringVar(&v.Conversation, "conversation", "", "as said in the conversation of this `id`")
		f.StringVar(&v.EventTime, "event-time", "", "as said at this `time`, as RFC 3339 or a day (default: now)")
		f.Float64Var(&v.Priority, "priority", 0, "a `number`, 0 to 1 (default: that of what users ask to be remembered)")
		return func(_ streams, args []string) (client.Verb, error) {
			v.Text = strings.Join(args, " ")
			return v, nil
		}
	})
}

func editCommand() command {
	return verbCommand(command{
		name:    "edit",
		summary: "change a memory",
		usage: `remora edit ID [--text TEXT] [--tag TAG] [--untag TAG] [--priority NUMBER] [--state current|quarantined] [--why WHY]
                              without these, $VISUAL or $EDITOR opens on the text`,
		minArgs: 1, maxArgs: 1,
	}, needAll, func(f *pflag.FlagSet) makeVerb {
		v := &client.Edit{}
		f.Func("text", "give it this `text`", func(text string) error { v.Text = &text; return nil })
		tagFlag(f, &v.Tag, "add this `tag`; may be repeated")
		repeated(f, &v.Untag, "untag", "take this `tag` away; may be repeated")
		f.Func("priority", "give it this `number`, 0 to 1", func(given string) error {
			n, err := strconv.ParseFloat(given, 64)
			v.Priority = &n
			return err
		})
		f.StringVar(&v.State, "state", "", "set its `state`: current releases it from quarantine")
		whyFlag(f, &v.Why)
		return func(_ streams, args []string) (client.Verb, error) {
			v.ID = args[0]
			return v, nil
		}
	})
}

func whyFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "why", "", "keep this `text` in its history")
}

func undoCommand() command {
	return verbCommand(command{
		name:    "undo",
		summary: "take back the last change of a memory",
		usage: `remora undo ID [--why WHY]
                              what was forgotten comes back with all that went with it, for 24 hours`,
		minArgs: 1, maxArgs: 1,
	}, needAll, func(f *pflag.FlagSet) makeVerb {
		v := &client.Undo{}
		whyFlag(f, &v.Why)
		return func(_ streams, args []string) (client.Verb, error) {
			v.ID = args[0]
			return v, nil
		}
	})
}

func eraseCommand() command {
	return verbCommand(command{
		name:    "erase",
		summary: "erase a user with the keys, and print the receipt",
		usage: `remora erase USER [--yes]
                              in all apps and projects, unless one is named; it can't be undone`,
		minArgs: 1, maxArgs: 1,
	}, needAll, func(f *pflag.FlagSet) makeVerb {
		yes := yesFlag(f)
		return func(s streams, args []string) (client.Verb, error) {
			return &client.Erase{User: args[0]}, confirm(s, *yes, "erasing a user")
		}
	})
}

func yesFlag(f *pflag.FlagSet) *bool {
	return f.Bool("yes", false, "do not ask whether it is meant")
}

func exportCommand() command {
	return verbCommand(command{
		name:    "export",
		summary: "write all memories, for another Remora, another tool or a reader",
		usage:   "remora export [-o FILE] [--format remora|mem0|markdown]",
	}, needIndex, func(f *pflag.FlagSet) makeVerb {
		v := &client.Export{}
		f.StringVar(&v.Format, "format", "", "write this `format`: "+strings.Join(api.ExportFormats(), ", ")+" (default: remora)")
		file := f.StringP("output", "o", "-", "write a new `file`")
		return func(s streams, _ []string) (client.Verb, error) {
			if *file == "-" {
				return v, nil
			}
			return client.VerbFunc(func(ctx context.Context, session *client.Session) error {
				return writeOut(s, *file, func(w io.Writer) error { v.To = w; return v.Run(ctx, session) })
			}), nil
		}
	})
}

func importCommand() command {
	return verbCommand(command{
		name:    "import",
		summary: "read an export of another tool, or of a Remora",
		usage: `remora import FILE|FOLDER [--dry-run] [--format FORMAT]
                              a zip is read as well; the same export again adds nothing`,
		minArgs: 1, maxArgs: 1, files: true,
	}, needStore, func(f *pflag.FlagSet) makeVerb {
		v := &client.Import{}
		f.BoolVar(&v.DryRun, "dry-run", false, "count what would come, and store nothing")
		f.StringVar(&v.Format, "format", "", "read it as this `format`: "+strings.Join(imports.Formats(), ", ")+" (default: it is detected)")
		return func(_ streams, args []string) (client.Verb, error) {
			v.Path = args[0]
			return v, nil
		}
	})
}

func exchangesCommand() command {
	return verbCommand(command{
		name:    "exchanges",
		summary: "show what memory did in each request, and why",
		usage: `remora exchanges [--limit N] [--conversation ID] [--status STATUS] [--model MODEL] [--memory ID]
       remora exchanges ID            one with all that is known of it
       remora exchanges --follow      those to come, until it is interrupted`,
		maxArgs: 1,
	}, needIndex, func(f *pflag.FlagSet) makeVerb {
		list := &client.Exchanges{}
		f.IntVar(&list.Limit, "limit", 20, "show the newest `number`")
		f.StringVar(&list.Conversation, "conversation", "", "only of the conversation of this `id`")
		f.StringVar(&list.Status, "status", "", "only with this `status`, as in X-Remora-Status")
		f.StringVar(&list.Model, "model", "", "only of this `model`")
		f.StringVar(&list.Memory, "memory", "", "only those that were given the memory of this `id`")
		follow := f.Bool("follow", false, "show those to come")
		return func(_ streams, args []string) (client.Verb, error) {
			switch {
			case *follow && len(args) > 0:
				return nil, wrongCall("one of an id and --follow")
			case *follow:
				return &client.Follow{}, nil
			case len(args) > 0:
				return &client.Exchange{ID: args[0]}, nil
			}
			return list, nil
		}
	})
}
