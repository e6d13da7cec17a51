// Package lives measures memory as people see it: it plays conversations of
// some months through a running Remora, each at its own date, asks questions
// afterwards, and judges the block that each gets.
package lives

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

type options struct {
	remora   string
	settings string
	out      string
	verbose  bool
	files    []string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("lives", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "Usage: remora-bench lives [flags] FILE...\n\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&o.remora, "remora", "", "`path` of the remora binary (default: it is built from the checkout here)")
	flags.StringVar(&o.settings, "config", "", "`file` with settings that are added, as JSON")
	flags.StringVar(&o.out, "o", "", "`file` for all answers and all that is stored, as JSON")
	flags.BoolVar(&o.verbose, "v", false, "print every question that fails, with its block")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, cli.UsageError("lives: " + err.Error())
	}
	if o.files = flags.Args(); len(o.files) == 0 {
		return o, cli.UsageError("lives: no file of lives is named")
	}
	return o, nil
}

// Run plays the lives of some files and prints the score.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	all, err := read(o.files)
	if err != nil {
		return err
	}
	var settings object
	if o.settings != "" {
		text, err := os.ReadFile(o.settings)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &settings); err != nil {
			return fmt.Errorf("%s: %w", o.settings, err)
		}
	}
	dir, err := os.MkdirTemp("", "remora-bench-lives-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.remora == "" {
		if o.remora, err = cli.BuildRemora(ctx, dir); err != nil {
			return err
		}
	}
	r, err := start(ctx, o.remora, dir, settings)
	if err != nil {
		return err
	}
	defer r.stop()
	if err := r.play(ctx, scenes(all)); err != nil {
		return fmt.Errorf("%w\n%s", err, r.log())
	}
	answers, err := r.question(ctx, all)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, r.log())
	}
	if o.out != "" {
		if err := r.write(ctx, o.out, all, answers); err != nil {
			return err
		}
	}
	if o.verbose {
		for i := range answers {
			answers[i].explain(stdout)
		}
	}
	report(stdout, answers)
	return nil
}

// apart is the time between two turns.
const apart = 45 * time.Second

// play plays conversations.
func (r *remora) play(ctx context.Context, all []scene) error {
	for _, s := range all {
		var messages []object
		if s.System != "" {
			messages = append(messages, object{"role": "system", "content": s.System})
		}
		for i, t := range s.Turns {
			if err := r.setClock(s.at.Add(time.Duration(i) * apart)); err != nil {
				return err
			}
			messages = append(messages, object{"role": "user", "content": t.User})
			answer, err := t.answer()
			if err != nil {
				return err
			}
			if _, _, err := r.ask(ctx, s.user, s.Memory, messages, answer); err != nil {
				return fmt.Errorf("%s, %s: %w", s.user, s.At, err)
			}
			messages = append(messages, answer)
		}
		if err := r.settle(ctx); err != nil {
			return fmt.Errorf("%s, %s: %w", s.user, s.At, err)
		}
	}
	return nil
}

// answer is a question with what it got.
type answer struct {
	Life string `json:"life"`
	Lang string `json:"lang"`
	question
	Verdict string   `json:"verdict"`
	Status  string   `json:"status"`
	Block   []string `json:"block"` // its lines
	Help    int      `json:"good"`  // how many of them help
	Tokens  int      `json:"tokens"`
}

// question asks all questions. They leave nothing behind.
func (r *remora) question(ctx context.Context, all []life) (out []answer, err error) {
	for _, l := range all {
		for _, q := range l.Questions {
			at, _ := parseTime(cmp.Or(q.At, l.AskAt)) // checked
			if err := r.setClock(at); err != nil {
				return nil, err
			}
			block, status, err := r.ask(ctx, l.ID, "read", []object{{"role": "user", "content": q.Q}}, object{"role": "assistant", "content": "OK."})
			if err != nil {
				return nil, fmt.Errorf("%s, %q: %w", l.ID, q.Q, err)
			}
			a := answer{Life: l.ID, Lang: l.Lang, question: q, Status: status, Block: linesOf(block), Tokens: tokens(block)}
			a.Verdict, a.Help = judge(&q, a.Block)
			out = append(out, a)
		}
	}
	return out, nil
}

// explain prints a question that fails, with its block.
func (a *answer) explain(w io.Writer) {
	if a.Verdict == pass {
		return
	}
	fmt.Fprintf(w, "[%s %s] %s: %s\n    want %q avoid %+v\n", a.Life, a.Kind, a.Verdict, a.Q, a.Want, a.Avoid)
	for _, l := range a.Block {
		fmt.Fprintf(w, "    | %s\n", strings.ReplaceAll(l, "\n", "\n      "))
	}
}

// write keeps all answers, all memories, and all requests to forget.
func (r *remora) write(ctx context.Context, path string, all []life, answers []answer) error {
	memories, forget := map[string][]json.RawMessage{}, map[string][]json.RawMessage{}
	for _, l := range all {
		var err error
		if memories[l.ID], err = r.list(ctx, l.ID); err != nil {
			return err
		}
		if forget[l.ID], err = r.list(ctx, l.ID, "--forget"); err != nil {
			return err
		}
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(object{"questions": answers, "memories": memories, "forget": forget}); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o600)
}
