package page

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
)

// healthView is how the program does, and the settings in force.
type healthView struct {
	base
	At       string // when the numbers were read
	Metrics  api.Metrics
	Go       string
	Verdict  verdict
	Requests []tally
	Dropped  []tally
	Rejected []tally

	Query   string
	Changed bool // only settings that are not as by default
	Groups  []settingGroup
	All     int // settings, without the filter
	Shown   int

	Own *ownCounts // for somebody who is not the admin, instead of all else
}

// tally is a number of things of one sort.
type tally struct {
	Name, Meaning, Tone string
	Count               int64
	Share               float64 // of the largest
}

// settingGroup are the settings of a section.
type settingGroup struct {
	Name     string
	Settings []api.Setting
	Changed  int // of them
}

// ownCounts are the numbers of one person.
type ownCounts struct {
	States   []tally
	Requests int
	Hit      string
	Days     int
	Receipts bool // are kept
}

// showHealth shows how the program does.
func showHealth(c *call) error {
	b, err := c.begin("Health", "health")
	if err != nil && !isOf(err, "unavailable") { // a closed store is what this view reports
		return err
	}
	q := c.r.URL.Query()
	v := healthView{base: b, Query: strings.TrimSpace(q.Get("q")), Changed: q.Get("changed") == "1", At: c.now().UTC().Format(time.RFC3339), Go: runtime.Version()}
	v.Metrics, err = c.service.Metrics(c.ctx, c.p)
	switch {
	case errors.Is(err, api.ErrForbidden):
		return v.showOwn(c)
	case err != nil && !isOf(err, "unavailable"):
		return err
	case err != nil:
		v.Metrics.Memories.Total = -1
	}
	v.fill()
	if c.wants("numbers") {
		c.renderPart("health", "numbers", v)
		return nil
	}
	all, err := c.service.Settings(c.ctx, c.p)
	if err != nil {
		return err
	}
	v.All = len(all)
	v.Groups, v.Shown = settingsOf(all, v.Query, v.Changed)
	if c.wants("found") {
		c.renderPart("health", "found", v)
		return nil
	}
	c.render(http.StatusOK, "health", v)
	return nil
}

func (v *healthView) fill() {
	v.Verdict = verdictOf(&v.Metrics)
	v.Requests = tallies(v.Metrics.System.Requests, func(name string) (string, string) { s := statusOf(name); return s.Meaning, s.Tone })
	dropped := map[string]uint64{}
	for why, n := range v.Metrics.Pipeline.Jobs.Dropped {
		dropped[why.String()] = n
	}
	v.Dropped = tallies(dropped, func(name string) (string, string) { return dropNames[name], "" })
	v.Rejected = tallies(v.Metrics.Rejections.ByReason, func(name string) (string, string) { return rejectNames[name], "" })
}

// tallies sorts numbers, the largest first.
func tallies[N int64 | uint64](counts map[string]N, meaning func(name string) (text, tone string)) (out []tally) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := int64(counts[name]); n > 0 {
			text, tone := meaning(name)
			out = append(out, tally{name, text, tone, n, 0})
		}
	}
	slices.SortStableFunc(out, func(a, b tally) int { return cmp.Compare(b.Count, a.Count) })
	for i := range out {
		out[i].Share = float64(out[i].Count) / float64(out[0].Count)
	}
	return out
}

// dropNames say why what was said did not become a memory.
var dropNames = map[string]string{
	"invalid": "nobody is named whose memory it is, or there was no message", "full": "the queue was full", "rateLimited": "too much was said at once",
	"stopped": "Remora was stopping", "empty": "no text but what memory had inserted", "redactedAll": "nothing was left once it was redacted",
	"poison": "it could not be stored, three times", "erased": "its person or conversation was erased meanwhile",
	"declined": "the user asked not to keep it", "tooManyUsers": "the store takes no more users",
}

// rejectNames say why a sentence did not become a fact.
var rejectNames = map[string]string{
	"question": "a question", "command": "a command", "declined": "the user asked not to keep it", "fiction": "a story, a role or a joke",
	"quoted": "somebody else’s words", "template": "a text that comes back word for word", "smallTalk": "small talk", "passing": "true of a moment only", "code": "code, logs or data",
	"long": "too long for a statement", "notSelfContained": "unclear without what was said before", "nothing": "no statement worth keeping",
	"unimportant": "not important", "belowThreshold": "below the threshold", "overPerAudit": "more than are kept at a time",
	"duplicate": "known already", "stale": "older than what is known", "forgotten": "said before it was to be forgotten",
	"redactedAll": "nothing was left once it was redacted", "time": "there was no time left", "refused": "not borne out by what was said",
}

// verdict is how well everything works.
type verdict struct {
	Tone     string // good, warn or bad
	Text     string
	Troubles []trouble
}

// trouble is something that is wrong, and what to do about it.
type trouble struct{ Tone, What, Do string }

// Bounds of what is still well.
const (
	maxLagSeconds   = 60
	maxQueued       = 1000
	maxFailedShare  = 0.02 // of requests that asked for memory
	minJudgedAsking = 50   // fewer requests say nothing
)

// verdictOf judges the numbers: what stops memory is bad, and what loses some
// of it is a warning.
func verdictOf(m *api.Metrics) verdict {
	var v verdict
	note := func(is bool, tone, what, do string) {
		if is {
			v.Troubles = append(v.Troubles, trouble{tone, what, do})
		}
	}
	s, jobs, state := &m.System, &m.Pipeline.Jobs, &m.Pipeline.Health
	note(!s.StoreOpen, "bad", "The store is not open"+because(s.StoreReason)+".",
		"Requests pass without memory until it is, and Remora keeps trying. “remora verify” checks the store.")
	note(s.StoreEphemeral != "", "warn", "The memories are in a directory that does not last"+because(s.StoreEphemeral)+".",
		"Mount a volume that is kept there, or set storage.dir to a directory on one. The log names the directory.")
	for _, t := range pathTroubles(m) {
		note(true, t.Tone, t.What, t.Do)
	}
	note(state.LagSeconds > maxLagSeconds || m.Health.QueueDepth > maxQueued, "warn",
		fmt.Sprintf("%s to be stored, the oldest for %.0f s.", waits(m.Health.QueueDepth), state.LagSeconds),
		"What was said lately is not found yet. If this lasts, the disk or the processor is too slow for these many requests.")
	lost := uint64(0)
	for why, n := range jobs.Dropped {
		if name := why.String(); name == "full" || name == "poison" || name == "tooManyUsers" {
			lost += n
		}
	}
	note(lost > 0, "warn", plural(lost, "turn was", "turns were")+" lost since the start.", "“Not stored” says why. They are not remembered, and the requests themselves were not harmed.")
	note(jobs.Quarantined > 0, "warn", plural(jobs.Quarantined, "turn", "turns")+" could not be stored and "+wasWere(jobs.Quarantined)+" set aside.", "Remora’s log names what went wrong.")
	note(state.DamagedSpool > 0, "warn", plural(state.DamagedSpool, "record", "records")+" of the spool could not be read.", "Check the disk, and run “remora verify”.")
	note(m.Audits.Total > 0 && m.Pipeline.Audits.GivenUp > 0, "warn", plural(m.Pipeline.Audits.GivenUp, "audit was", "audits were")+" given up.", "Facts may be missing from those conversations. The log names what went wrong.")
	note(m.Receipts.Dropped > 0, "warn", plural(m.Receipts.Dropped, "receipt was", "receipts were")+" dropped.", "Live and Benefit lack these exchanges. They came faster than the disk writes.")
	v.judge()
	return v
}

// pathTroubles are those of requests: the index and recall.
func pathTroubles(m *api.Metrics) (out []trouble) {
	n := m.System.Requests
	asked := int64(0)
	for status, count := range n {
		if api.AsksForMemory(status) {
			asked += count
		}
	}
	if failures := m.System.Index["failures"]; failures > 0 {
		out = append(out, trouble{"warn", plural(failures, "index", "indexes") + " of a user could not be loaded.", "Requests of that user passed without memory. “remora verify” checks the store."})
	}
	if late := n["timeout"]; asked >= minJudgedAsking && float64(late) > maxFailedShare*float64(asked) {
		out = append(out, trouble{"warn", percent(float64(late), float64(asked)) + " of the requests got no memory in time.", "Raise recall.deadline, or give Remora more processor."})
	}
	if failed := n["unavailable"]; asked >= minJudgedAsking && float64(failed) > maxFailedShare*float64(asked) {
		out = append(out, trouble{"warn", percent(float64(failed), float64(asked)) + " of the requests found the store closed.", "Look into the log for when it closed, and why."})
	}
	if rejected := n["rejected"]; rejected > 0 {
		out = append(out, trouble{"warn", plural(rejected, "request was", "requests were") + " refused by the upstream with memory in it, and accepted without.", "Their receipts, in Live, show what was inserted."})
	}
	if nobody := n["no-user"]; nobody > 0 && asked == 0 {
		out = append(out, trouble{"warn", "No request names a user.", "Send X-Remora-User, or set identity.anonymous, so that Remora knows whose memory it is."})
	}
	return out
}

func (v *verdict) judge() {
	v.Tone, v.Text = "good", "Everything works."
	for _, t := range v.Troubles {
		if t.Tone == "bad" {
			v.Tone, v.Text = "bad", "Memory does not work. Requests pass unchanged."
			return
		}
		v.Tone, v.Text = "warn", "Memory works, with "+plural(len(v.Troubles), "thing", "things")+" to look at."
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(why, ".")
}

func waits(n int) string {
	if n == 1 {
		return "1 turn waits"
	}
	return group(int64(n)) + " turns wait"
}

func wasWere(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// Uptime says for how long the program has run.
func (v healthView) Uptime() string { return duration(v.Metrics.System.UptimeSecs) }

// duration writes a number of seconds with its two largest units.
func duration(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%d h %d min", seconds/3600, seconds%3600/60)
	}
	return fmt.Sprintf("%d days %d h", seconds/86400, seconds%86400/3600)
}

// LastAudit says how long ago the last audit was, "" if there was none.
func (v healthView) LastAudit() string {
	if v.Metrics.Health.LastAuditMSAgo < 0 {
		return ""
	}
	return duration(v.Metrics.Health.LastAuditMSAgo/1000) + " ago"
}

// Asked counts all requests since the start.
func (v healthView) Asked() (n int64) {
	for _, t := range v.Requests {
		n += t.Count
	}
	return n
}

// NumbersLink returns the path that the numbers are read from again.
func (v healthView) NumbersLink() string { return v.Link("/health") }

// settingsOf returns the settings that a query matches, by section.
func settingsOf(all []api.Setting, query string, changed bool) (groups []settingGroup, shown int) {
	words := strings.Fields(strings.ToLower(query))
	for _, s := range all {
		text := strings.ToLower(strings.Join([]string{s.Key, s.Env, s.Value, s.From, s.Doc}, " "))
		if changed && !s.Changed || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		i := slices.IndexFunc(groups, func(g settingGroup) bool { return g.Name == s.Section })
		if i < 0 {
			i = len(groups)
			groups = append(groups, settingGroup{Name: s.Section})
		}
		groups[i].Settings = append(groups[i].Settings, s)
		if s.Changed {
			groups[i].Changed++
		}
		shown++
	}
	return groups, shown
}

// span is a part of the text about a setting.
type span struct {
	Text string
	Code bool
}

// codeOf takes a text apart at the backquotes around names of code.
func codeOf(doc string) (out []span) {
	for i, part := range strings.Split(doc, "`") {
		if part != "" {
			out = append(out, span{part, i%2 == 1})
		}
	}
	return out
}

// ownDays is the span that a person's own requests are counted over.
const ownDays = 7

// showOwn shows somebody who is not the admin what is theirs.
func (v *healthView) showOwn(c *call) error {
	own := ownCounts{Days: ownDays}
	for _, state := range [...]struct{ name, meaning, tone string }{
		{api.StateCurrent, "can be recalled", "good"}, {api.StateSuperseded, "a later statement holds", ""}, {api.StateQuarantined, "not recalled until somebody has looked at it", "warn"},
	} {
		n, err := c.service.Count(c.ctx, c.p, c.whose, api.Filter{States: []string{state.name}})
		if err != nil {
			return err
		}
		if n == 0 {
			state.tone = ""
		}
		own.States = append(own.States, tally{Name: state.name, Meaning: state.meaning, Tone: state.tone, Count: int64(n)})
	}
	since := c.now().AddDate(0, 0, -ownDays).UTC().Format(time.RFC3339)
	b, err := c.service.Benefit(c.ctx, c.p, c.whose, api.BenefitQuestion{Since: since})
	if err != nil && !errors.Is(err, api.ErrOff) {
		return err
	}
	own.Receipts, own.Requests, own.Hit = err == nil, b.Totals.Exchanges, rate(b.Totals.HitRate, b.Totals.Asked)
	v.Own = &own
	c.render(http.StatusOK, "health", v)
	return nil
}
