package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// given is a memory as a class sees it.
type given struct {
	kind storage.Kind
	tags []string
}

const (
	fact     = storage.KindFact
	episode  = storage.KindEpisode
	resource = storage.KindResource
	curated  = storage.KindCurated
)

// The first rule that fits decides, whatever the later ones say.
func TestFirstRuleDecides(t *testing.T) {
	p := New([]Rule{
		{Upstream: "local", Allow: Allow{Tags: []string{storage.PrivateTag, AnyTag}}},
		{Upstream: "cloud", Model: "gpt-4*-mini", Memory: MemoryOff},
		{Upstream: "cloud", Model: "gpt-*", Memory: MemoryRead, Allow: Allow{Kinds: []string{"fact"}}},
		{Model: "*claude*", Allow: Allow{Tags: []string{"work"}}},
		{Upstream: "CLOUD", Memory: MemoryOff},
		{Upstream: "local", Memory: MemoryOff}, // never reached
	})
	for _, tt := range []struct {
		upstream, model string
		memory          string
		private, limits bool
	}{
		{"local", "anything", MemoryOn, true, false},
		{"LOCAL", "", MemoryOn, true, false},
		{"local", "claude-5", MemoryOn, true, false},
		{"cloud", "gpt-4o-mini", MemoryOff, false, false},
		{"cloud", "GPT-4o-Mini", MemoryOff, false, false},
		{"cloud", "gpt-4o-mini-x", MemoryRead, false, true},
		{"cloud", "gpt-5", MemoryRead, false, true},
		{"other", "gpt-5", MemoryOn, false, false},
		{"other", "anthropic/claude-5", MemoryOn, false, true},
		{"cloud", "claude-5", MemoryOn, false, true},
		{"cloud", "", MemoryOff, false, false},
		{"cloud", "llama", MemoryOff, false, false},
		{"", "llama", MemoryOn, false, false},
		{"locals", "llama", MemoryOn, false, false},
	} {
		c := p.For(tt.upstream, tt.model)
		if c.Memory != tt.memory || c.Private() != tt.private || c.Limits() != tt.limits {
			t.Errorf("%q, %q: got memory %s, private %t, limits %t, want %s, %t, %t",
				tt.upstream, tt.model, c.Memory, c.Private(), c.Limits(), tt.memory, tt.private, tt.limits)
		}
	}
}

func TestModelPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		fits    []string
		not     []string
	}{
		{"gpt-5", []string{"gpt-5", "GPT-5"}, []string{"gpt-5-mini", "xgpt-5", ""}},
		{"gpt*", []string{"gpt", "gpt-5", "gpt/a/b"}, []string{"a-gpt", ""}},
		{"*mini", []string{"mini", "gpt-mini", "a/b/mini"}, []string{"mini-2", ""}},
		{"*", []string{"", "a", "a/b"}, nil},
		{"**", []string{"", "a"}, nil},
		{"a*b*c", []string{"abc", "a1b2c", "abbc", "ab/c"}, []string{"ac", "acb", "abcd", "xabc"}},
		{"ab*ba", []string{"abba", "abxba"}, []string{"aba", "ab", "ba"}}, // the ends do not share a character
		{"*a*a", []string{"aa", "xaya"}, []string{"a", "ab"}},
		{"anthropic/*", []string{"anthropic/claude/5"}, []string{"anthropic"}},
		{"Ä*", []string{"ä1", "Ä"}, []string{"a"}},
	} {
		p := New([]Rule{{Model: tt.pattern, Memory: MemoryOff}})
		for _, name := range tt.fits {
			if got := p.For("any", name).Memory; got != MemoryOff {
				t.Errorf("%q does not fit %q", tt.pattern, name)
			}
		}
		for _, name := range tt.not {
			if got := p.For("any", name).Memory; got != MemoryOn {
				t.Errorf("%q fits %q", tt.pattern, name)
			}
		}
	}
}

// Without a rule everything may go anywhere but what is private.
func TestNoRules(t *testing.T) {
	for name, p := range map[string]*Policy{"none": New(nil), "nil": nil, "zero": {}, "another's": New([]Rule{{Upstream: "x", Memory: MemoryOff}})} {
		c := p.For("cloud", "gpt-5")
		if c.Memory != MemoryOn || c.Private() || c.Limits() || c.Name() != "" {
			t.Errorf("%s: got %+v", name, c)
		}
		for _, m := range []given{{fact, nil}, {episode, []string{"work"}}, {resource, []string{storage.ProjectTag + "p"}}, {curated, []string{"privates", "Private"}}} {
			if !c.Allows("", m.kind, m.tags) {
				t.Errorf("%s: a %s with %q is forbidden", name, m.kind, m.tags)
			}
			if tags := append(slices.Clone(m.tags), storage.PrivateTag); c.Allows("", m.kind, tags) {
				t.Errorf("%s: a %s with %q is allowed", name, m.kind, tags)
			}
		}
	}
}

func TestAllows(t *testing.T) {
	private := storage.PrivateTag
	tagOf := func(project string) string { return storage.ProjectTag + project }
	for _, tt := range []struct {
		name    string
		allow   Allow
		project string // of the scope
		allowed []given
		not     []given
	}{
		{
			"everything", Allow{}, "",
			[]given{{fact, nil}, {episode, []string{"a"}}},
			[]given{{fact, []string{private}}, {episode, []string{"a", private, "b"}}},
		},
		{
			"any tag", Allow{Tags: []string{AnyTag}}, "",
			[]given{{fact, nil}, {episode, []string{"a"}}},
			[]given{{fact, []string{private}}, {fact, []string{private, AnyTag}}}, // * does not admit what is private
		},
		{
			"kinds", Allow{Kinds: []string{"fact", "resource"}}, "",
			[]given{{fact, nil}, {resource, []string{"a"}}},
			[]given{{episode, nil}, {curated, nil}, {fact, []string{private}}, {storage.KindEntry, nil}},
		},
		{
			"tags", Allow{Tags: []string{"work", "home"}}, "",
			[]given{{fact, []string{"work"}}, {fact, []string{"x", "home"}}},
			[]given{{fact, nil}, {fact, []string{"x"}}, {fact, []string{"Work"}}, {fact, []string{"work", private}}},
		},
		{
			"private only", Allow{Tags: []string{private}}, "",
			[]given{{fact, []string{private}}, {episode, []string{"a", private}}},
			[]given{{fact, nil}, {fact, []string{"a"}}},
		},
		{
			"private and all else", Allow{Tags: []string{private, AnyTag}}, "",
			[]given{{fact, []string{private}}, {fact, nil}, {episode, []string{"a"}}},
			nil,
		},
		{
			"private facts", Allow{Tags: []string{private, AnyTag}, Kinds: []string{"fact"}}, "",
			[]given{{fact, []string{private}}, {fact, nil}},
			[]given{{episode, []string{private}}, {episode, nil}},
		},
		{
			"a project by the tag", Allow{Projects: []string{"p1", "p2"}}, "p0",
			[]given{{fact, []string{tagOf("p1")}}, {fact, []string{"a", tagOf("p2")}}, {fact, []string{tagOf("p3"), tagOf("p1")}}},
			[]given{{fact, nil}, {fact, []string{"p1"}}, {fact, []string{tagOf("p3")}}, {fact, []string{tagOf("p1"), private}}},
		},
		{
			"a project by the scope", Allow{Projects: []string{"p1"}}, "p1",
			[]given{{fact, nil}, {fact, []string{tagOf("p3")}}},
			[]given{{fact, []string{private}}},
		},
		{
			"all at once", Allow{Kinds: []string{"fact"}, Tags: []string{"work"}, Projects: []string{"p1"}}, "",
			[]given{{fact, []string{"work", tagOf("p1")}}},
			[]given{{episode, []string{"work", tagOf("p1")}}, {fact, []string{tagOf("p1")}}, {fact, []string{"work"}}, {fact, []string{"work", tagOf("p1"), private}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := New([]Rule{{Upstream: "u", Allow: tt.allow}}).For("u", "m")
			for _, m := range tt.allowed {
				if !c.Allows(tt.project, m.kind, m.tags) {
					t.Errorf("a %s with %q is forbidden", m.kind, m.tags)
				}
			}
			for _, m := range tt.not {
				if c.Allows(tt.project, m.kind, m.tags) {
					t.Errorf("a %s with %q is allowed", m.kind, m.tags)
				}
			}
		})
	}
}

// The zero class is what a request has whose class is not known: it allows less
// than any other.
func TestZeroClassForbidsPrivate(t *testing.T) {
	var c Class
	if c.Private() || c.Allows("", fact, []string{storage.PrivateTag}) {
		t.Error("the zero class allows what is private")
	}
}

// Classes of one name allow the same, because what was inserted under one is
// replayed under the other.
func TestNames(t *testing.T) {
	allows := []Allow{
		{}, {Tags: []string{AnyTag}}, {Tags: []string{"work"}}, {Tags: []string{"work", AnyTag}}, {Tags: []string{storage.PrivateTag}},
		{Tags: []string{storage.PrivateTag, AnyTag}}, {Kinds: []string{"fact"}}, {Projects: []string{"fact"}}, {Tags: []string{"fact"}},
		{Kinds: []string{"fact", "episode"}}, {Projects: []string{"a", "b"}}, {Projects: []string{`a","b`}}, {Projects: []string{"a,b"}},
	}
	memories := []given{{fact, nil}, {episode, nil}}
	for _, tag := range []string{"work", "fact", storage.PrivateTag, storage.ProjectTag + "a", storage.ProjectTag + "a,b", storage.ProjectTag + `a","b`, storage.ProjectTag + "fact"} {
		memories = append(memories, given{fact, []string{tag}}, given{episode, []string{tag}})
	}
	names := map[string][]bool{}
	for _, a := range allows {
		c := New([]Rule{{Upstream: "u", Allow: a}}).For("u", "m")
		var got []bool
		for _, m := range memories {
			got = append(got, c.Allows("", m.kind, m.tags))
		}
		if want, ok := names[c.Name()]; ok && !slices.Equal(got, want) {
			t.Errorf("%+v has the name %q of a class that allows something else", a, c.Name())
		}
		names[c.Name()] = got
	}
	if len(names) != len(allows)-2 { // only the first two and the fourth allow the same
		t.Errorf("got %d names, want %d", len(names), len(allows)-2)
	}
	one := New([]Rule{{Upstream: "a", Memory: MemoryRead, Allow: Allow{Tags: []string{"work"}}}}).For("a", "")
	other := New([]Rule{{Model: "b", Allow: Allow{Tags: []string{"work"}}}}).For("x", "b")
	if one.Name() != other.Name() {
		t.Errorf("got %q and %q, want one name for what allows the same", one.Name(), other.Name())
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 129)
	for _, tt := range []struct {
		name  string
		rules []Rule
		want  []string // the beginnings of the messages
	}{
		{"none", nil, nil},
		{"all that is allowed", []Rule{
			{},
			{Memory: MemoryOn}, {Memory: MemoryRead}, {Memory: MemoryOff},
			{Upstream: "local", Model: "a*/b.c:d", Allow: Allow{Kinds: Kinds(), Tags: []string{storage.PrivateTag, AnyTag, long[:128]}, Projects: []string{"p"}}},
		}, nil},
		{"memory", []Rule{{}, {Memory: "On"}}, []string{"policy[1].memory: "}},
		{"model", []Rule{{Model: "gpt-[45]"}, {Model: "["}, {Model: `a\*`}, {Model: "a?"}},
			[]string{"policy[0].model: ", "policy[1].model: ", "policy[2].model: ", "policy[3].model: "}},
		{"kinds", []Rule{{Allow: Allow{Kinds: []string{"fact", "facts", "entry", ""}}}},
			[]string{"policy[0].allow.kinds[1]: ", "policy[0].allow.kinds[2]: ", "policy[0].allow.kinds[3]: "}},
		{"tags", []Rule{{Allow: Allow{Tags: []string{"a", "", long}}}}, []string{"policy[0].allow.tags[1]: ", "policy[0].allow.tags[2]: "}},
		{"private without an upstream", []Rule{{Model: "llama*", Allow: Allow{Tags: []string{AnyTag, storage.PrivateTag}}}}, []string{"policy[0].upstream: "}},
		{"several", []Rule{{Memory: "no", Model: "?", Allow: Allow{Tags: []string{storage.PrivateTag}}}, {Allow: Allow{Kinds: []string{"x"}}}},
			[]string{"policy[0].memory: ", "policy[0].model: ", "policy[0].upstream: ", "policy[1].allow.kinds[0]: "}},
	} {
		var got []string
		if err := Validate(tt.rules); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				place, _, _ := strings.Cut(line, ": ")
				got = append(got, place+": ")
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A policy keeps nothing of the caller's rules that could change afterwards.
func TestRulesAreCopied(t *testing.T) {
	rules := []Rule{{Upstream: "local", Memory: MemoryOff}}
	p := New(rules)
	rules[0] = Rule{}
	if got := p.For("local", "m").Memory; got != MemoryOff {
		t.Errorf("got %q, want off", got)
	}
}

// Other rules decide from then on; a class that was asked for stays.
func TestReplace(t *testing.T) {
	p := New([]Rule{{Upstream: "cloud", Memory: MemoryOff}})
	before := p.For("cloud", "m")
	p.Replace([]Rule{{Upstream: "other", Memory: MemoryOff}})
	if before.Memory != MemoryOff || p.For("cloud", "m").Memory != MemoryOn || p.For("other", "m").Memory != MemoryOff {
		t.Errorf("got %s before, %s and %s after", before.Memory, p.For("cloud", "m").Memory, p.For("other", "m").Memory)
	}
	p.Replace(nil)
	if got := p.For("other", "m").Memory; got != MemoryOn {
		t.Errorf("without rules: %s", got)
	}
}
