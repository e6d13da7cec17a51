package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/manual"
)

// usageError is a wrong command line, which has already been reported to the
// user.
type usageError struct{ what string }

func (e usageError) Error() string { return e.what }

// wrongCall is a wrong command line, which run reports together with the usage
// text.
type wrongCall string

func (w wrongCall) Error() string { return string(w) }

// runner runs a command with the arguments that are not flags.
type runner func(ctx context.Context, s streams, args []string) error

// command is one command of the program.
type command struct {
	name    string
	summary string
	usage   string
	// run is set for commands without flags. Others declare them in define,
	// which returns what runs once they are set.
	run    runner
	define func(f *pflag.FlagSet) runner

	hidden           bool // from the overview: only releases need it
	minArgs, maxArgs int
	words            []string // that the first argument may be; for completion
	files            bool     // other arguments are files; for completion
}

// cobra returns the command for cobra.
func (c command) cobra(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: strings.TrimPrefix(c.usage, "remora "), Short: c.summary, DisableFlagsInUseLine: true, Hidden: c.hidden,
		Args: func(_ *cobra.Command, args []string) error {
			switch n := len(args); {
			case n > 0 && c.maxArgs == 0:
				return wrongCall(fmt.Sprintf("unexpected argument %q", args[0]))
			case n < c.minArgs || n > c.maxArgs:
				return wrongCall("wrong number of arguments")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(given) == 0 && len(c.words) > 0:
				return c.words, cobra.ShellCompDirectiveNoFileComp
			case len(given) < c.maxArgs && c.files:
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	run := c.run
	if c.define != nil {
		run = c.define(cmd.Flags())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), s, args) }
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		kind, plain := pflag.UnquoteUsage(f)
		if kind == "" { // a switch
			return
		}
		f.Usage, f.Value = plain, valueOf{f.Value, kind}
		switch kind {
		case "file": // as shells do anyway
		case "directory":
			_ = cmd.MarkFlagDirname(f.Name)
		default:
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
	return cmd
}

// valueOf names the kind of a flag's value, so that the flag's usage need not
// quote it: completion shows that text as it is.
type valueOf struct {
	pflag.Value
	kind string
}

// Type returns the kind.
func (v valueOf) Type() string { return v.kind }

// configFlags defines the flags of the most common settings; all others are in
// the file and the environment.
func configFlags(f *pflag.FlagSet) *config.Overrides {
	o := storeFlags(f)
	o.Serves = true
	f.Lookup("data").Usage = "keep memories in `directory`"
	f.StringVar(&o.Listen, "listen", "", "listen on `address`, e.g. 127.0.0.1:8787")
	f.StringVar(&o.Upstream, "upstream", "", "send every path to this `URL`, e.g. https://api.openai.com")
	f.StringVar(&o.Forward, "forward", "", "also accept CONNECT, as HTTPS_PROXY does, on `address`")
	return o
}

// storeFlags defines the flags of commands that only need the store.
func storeFlags(f *pflag.FlagSet) *config.Overrides {
	o := &config.Overrides{}
	f.StringVar(&o.File, "config", "", "read settings from `file` (default: config.json in the configuration directory, if it is there)")
	f.StringVar(&o.Data, "data", "", "the memories are in `directory`")
	return o
}

// completionCommand prints what cobra generates. A script asks the program for
// whatever it completes, so it is made without the commands.
func completionCommand() command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return command{
		name:    "completion",
		summary: "print a script with which a shell completes commands and flags",
		usage: `remora completion bash | zsh | fish | powershell

To load it, put the line of the shell into its startup file:

       bash         source <(remora completion bash)      (needs the package bash-completion)
       zsh          source <(remora completion zsh)       (after compinit)
       fish         remora completion fish | source
       powershell   remora completion powershell | Out-String | Invoke-Expression`,
		minArgs: 1, maxArgs: 1, words: shells,
		run: func(_ context.Context, s streams, args []string) error {
			root := &cobra.Command{Use: "remora"}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.out, true)
			case "zsh":
				return root.GenZshCompletion(s.out)
			case "fish":
				return root.GenFishCompletion(s.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(s.out)
			}
			return wrongCall("completion takes one of " + strings.Join(shells, ", "))
		},
	}
}

// manCommand writes the manual pages, for packages. SOURCE_DATE_EPOCH is the date on them.
func manCommand() command {
	return command{
		name: "man", summary: "write the manual pages to a directory", usage: "remora man DIRECTORY",
		hidden: true, minArgs: 1, maxArgs: 1,
		run: func(_ context.Context, s streams, args []string) error {
			p := manual.Program{Root: newRoot(s), Version: readBuild().version, Overview: aboutProgram + "\n" + aboutSettings}
			if epoch := s.getenv("SOURCE_DATE_EPOCH"); epoch != "" {
				seconds, err := strconv.ParseInt(epoch, 10, 64)
				if err != nil {
					return fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %q", epoch)
				}
				p.Date = time.Unix(seconds, 0)
			}
			return p.Write(args[0])
		},
	}
}
