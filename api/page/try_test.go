package page

import (
	"errors"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

func outcomeWith(block string, ids ...string) outcome {
	var a api.Answer
	a.Block, a.Memory = block, "on"
	for _, id := range ids {
		a.Results.Results = append(a.Results.Results, api.Found{Memory: api.Memory{ID: id}})
	}
	return outcomeOf(a, "", "ada")
}

func TestCompare(t *testing.T) {
	then := outcomeWith("<x>\n- Google\n- boat\n</x>\n", "google", "boat")
	now := outcomeWith("<x>\n- Meta\n- boat\n</x>\n", "meta", "boat")
	if compare(&then, &now) {
		t.Error("two blocks that differ are called the same")
	}
	only := func(o *outcome) (lines, ids []string) {
		for _, l := range o.Lines {
			if l.Only {
				lines = append(lines, l.Text)
			}
		}
		for _, f := range o.Found {
			if f.Only {
				ids = append(ids, f.Memory.ID)
			}
		}
		return lines, ids
	}
	for _, c := range []struct {
		o        *outcome
		line, id string
	}{{&then, "- Google", "google"}, {&now, "- Meta", "meta"}} {
		lines, ids := only(c.o)
		if strings.Join(lines, "|") != c.line || strings.Join(ids, "|") != c.id {
			t.Errorf("marked are %q and %q, want %q and %q", lines, ids, c.line, c.id)
		}
	}
	same, again := outcomeWith("<x>\n- boat\n</x>\n", "boat"), outcomeWith("<x>\n- boat\n</x>\n", "boat")
	lines, ids := only(&same)
	if !compare(&same, &again) || len(lines)+len(ids) > 0 {
		t.Errorf("equal outcomes differ in %q and %q", lines, ids)
	}
}

func TestWhyNothing(t *testing.T) {
	cut := func(reasons ...string) (out []api.Turned) {
		for _, r := range reasons {
			out = append(out, api.Turned{Reason: r})
		}
		return out
	}
	for name, c := range map[string]struct {
		a    api.Answer
		want string
	}{
		"policy":    {api.Answer{Memory: "off", Results: api.Results{Considered: 3, Relevance: 1}}, "policy switches memory off"},
		"no match":  {api.Answer{Memory: "on"}, "remembered of ada"},
		"gate":      {api.Answer{Memory: "on", Results: api.Results{Considered: 3, Relevance: 0.1, Gate: 0.2}}, "not relevant enough"},
		"kept back": {api.Answer{Memory: "on", Results: api.Results{Considered: 3, Relevance: 0.5, Gate: 0.2, Cut: cut("topK", "policy", "policy")}}, "withheld from this model"},
		"seen":      {api.Answer{Memory: "on", Results: api.Results{Considered: 1, Relevance: 0.5, Gate: 0.2, Cut: cut("visible")}}, "already in the request"},
	} {
		if got := whyNothing(&c.a, "ada"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
	}
}

func TestTrialLimits(t *testing.T) {
	for name, c := range map[string]struct {
		asked trial
		field string // "" = it can be asked
	}{
		"fits":        {trial{Message: strings.Repeat("a", maxTried)}, ""},
		"long":        {trial{Message: strings.Repeat("é", maxTried/2+1)}, "The message"},
		"long before": {trial{Message: "a", Previous: strings.Repeat("a", maxTried+1)}, "The message before"},
		"not a count": {trial{Message: "a", TopK: "many"}, "topK"},
		"none":        {trial{Message: "a", TopK: "0"}, "topK"},
	} {
		_, err := c.asked.question()
		got := ""
		if field, ok := errors.AsType[*api.FieldError](err); ok {
			got = field.Field
		}
		if got != c.field {
			t.Errorf("%s: %v, want field %q", name, err, c.field)
		}
	}
	q, err := trial{Message: "a", AsOf: "2026-05-03"}.question()
	if err != nil || q.AsOf != "2026-05-03T23:59:59Z" {
		t.Errorf("a day is %q, %v, want its end", q.AsOf, err)
	}
}
