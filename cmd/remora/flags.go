package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

// usageError is a wrong command line, which has already been reported to the
// user.
type usageError struct{ what string }

func (e usageError) Error() string { return e.what }

// newFlags returns the flag set of one command. Its usage text goes to the
// standard error.
func newFlags(c command, s streams) *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(s.err)
	f.Usage = func() {
		fmt.Fprintf(s.err, "%s%s.\n\nUsage: %s\n", strings.ToUpper(c.summary[:1]), c.summary[1:], c.usage)
		has := false
		f.VisitAll(func(*flag.Flag) { has = true })
		if has {
			fmt.Fprint(s.err, "\nFlags:\n")
			f.PrintDefaults()
		}
	}
	return f
}

// parseFlags accepts flags only.
func parseFlags(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err.Error()}
	}
	if f.NArg() > 0 {
		fmt.Fprintf(f.Output(), "remora %s: unexpected argument %q\n", f.Name(), f.Arg(0))
		f.Usage()
		return usageError{"unexpected argument"}
	}
	return nil
}

// configFlags defines the flags of the most common settings; all others are in
// the file and the environment.
func configFlags(f *flag.FlagSet) *config.Overrides {
	o := storeFlags(f)
	o.Serves = true
	f.Lookup("data").Usage = "keep memories in `directory`"
	f.StringVar(&o.Listen, "listen", "", "listen on `address`, e.g. 127.0.0.1:8787")
	f.StringVar(&o.Upstream, "upstream", "", "send every path to this `URL`, e.g. https://api.openai.com")
	f.StringVar(&o.Forward, "forward", "", "also accept CONNECT, as HTTPS_PROXY does, on `address`")
	return o
}

// storeFlags defines the flags of commands that only need the store.
func storeFlags(f *flag.FlagSet) *config.Overrides {
	o := &config.Overrides{}
	f.StringVar(&o.File, "config", "", "read settings from `file` (default: config.json in the configuration directory, if it is there)")
	f.StringVar(&o.Data, "data", "", "the memories are in `directory`")
	return o
}

// parseArgs accepts flags and arguments in any order, and from minArgs to
// maxArgs arguments.
func parseArgs(f *flag.FlagSet, args []string, least, most int) (rest []string, err error) {
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError{err.Error()}
		}
		if args = f.Args(); len(args) == 0 {
			break
		}
		rest, args = append(rest, args[0]), args[1:]
	}
	if len(rest) < least || len(rest) > most {
		return nil, wrongCall(f, "wrong number of arguments")
	}
	return rest, nil
}

func wrongCall(f *flag.FlagSet, what string) error {
	fmt.Fprintf(f.Output(), "remora %s: %s\n", f.Name(), what)
	f.Usage()
	return usageError{what}
}
