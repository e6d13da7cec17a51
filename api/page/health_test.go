package page

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
)

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *api.Metrics)
		tone   string
		want   string // in what is wrong
	}{
		"well":            {func(*api.Metrics) {}, "good", ""},
		"closed":          {func(m *api.Metrics) { m.System.StoreOpen, m.System.StoreReason = false, "another Remora has it" }, "bad", "not open: another Remora has it."},
		"ephemeral":       {func(m *api.Metrics) { m.System.StoreEphemeral = "it is on an emptyDir" }, "warn", "does not last: it is on an emptyDir."},
		"behind":          {func(m *api.Metrics) { m.Pipeline.Health.LagSeconds, m.Health.QueueDepth = 90, 4 }, "warn", "4 turns wait to be stored, the oldest for 90 s."},
		"lost":            {func(m *api.Metrics) { m.Pipeline.Jobs.Dropped = map[persist.Drop]uint64{persist.DropFull: 3} }, "warn", "3 turns were lost"},
		"declined":        {func(m *api.Metrics) { m.Pipeline.Jobs.Dropped = map[persist.Drop]uint64{persist.DropDeclined: 3} }, "good", ""},
		"set aside":       {func(m *api.Metrics) { m.Pipeline.Jobs.Quarantined = 1 }, "warn", "1 turn could not be stored and was set aside"},
		"index":           {func(m *api.Metrics) { m.System.Index = map[string]int64{"failures": 1} }, "warn", "1 index of a user"},
		"late":            {func(m *api.Metrics) { m.System.Requests = map[string]int64{"injected": 90, "timeout": 10} }, "warn", "10 % of the requests got no memory in time"},
		"late at first":   {func(m *api.Metrics) { m.System.Requests = map[string]int64{"injected": 9, "timeout": 1} }, "good", ""},
		"nobody is named": {func(m *api.Metrics) { m.System.Requests = map[string]int64{"no-user": 3} }, "warn", "No request names a user"},
		"some unnamed":    {func(m *api.Metrics) { m.System.Requests = map[string]int64{"no-user": 3, "injected": 1} }, "good", ""},
		"receipts":        {func(m *api.Metrics) { m.Receipts.Dropped = 2 }, "warn", "2 receipts were dropped"},
	} {
		var m api.Metrics
		m.System.StoreOpen = true
		c.change(&m)
		v := verdictOf(&m)
		said := ""
		for _, trouble := range v.Troubles {
			said += trouble.What
			if trouble.Do == "" {
				t.Errorf("%s: it is not said what to do", name)
			}
		}
		if v.Tone != c.tone || !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s: %s, %q, want %s, %q", name, v.Tone, said, c.tone, c.want)
		}
	}
}

func TestVerdictNamesTheWorst(t *testing.T) {
	var m api.Metrics
	m.Receipts.Dropped = 1 // and the store is closed
	if v := verdictOf(&m); v.Tone != "bad" || len(v.Troubles) != 2 || !strings.Contains(v.Text, "does not work") {
		t.Errorf("%+v", v)
	}
}

func TestSettingsOf(t *testing.T) {
	all := []api.Setting{
		{Section: "recall", Key: "recall.topK", Value: "8", Doc: "How many memories."},
		{Section: "recall", Key: "recall.deadline", Value: "50ms", Changed: true},
		{Section: "api", Key: "api.listen", Value: "127.0.0.1:9", From: "config.json:3", Changed: true},
		{Section: "recall", Key: "recall.gate", Value: "0.2"}, // a section may be in several places
	}
	for name, c := range map[string]struct {
		query   string
		changed bool
		want    string
	}{
		"all":           {"", false, "recall.topK recall.deadline recall.gate api.listen"},
		"changed":       {"", true, "recall.deadline api.listen"},
		"by doc":        {"MANY memories", false, "recall.topK"},
		"by place":      {"config.json", false, "api.listen"},
		"both":          {"recall", true, "recall.deadline"},
		"by name":       {"recall.", false, "recall.topK recall.deadline recall.gate"},
		"matches none":  {"nothing", false, ""},
		"part of words": {"call dead", false, "recall.deadline"},
	} {
		groups, shown := settingsOf(all, c.query, c.changed)
		var keys []string
		for _, g := range groups {
			for _, s := range g.Settings {
				keys = append(keys, s.Key)
				if s.Section != g.Name {
					t.Errorf("%s: %s is below %s", name, s.Key, g.Name)
				}
			}
		}
		if got := strings.Join(keys, " "); got != c.want || shown != len(keys) {
			t.Errorf("%s: %d, %q, want %q", name, shown, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[int64]string{5: "5 s", 90: "1 min", 3700: "1 h 1 min", 200_000: "2 days 7 h"} {
		if got := duration(seconds); got != want {
			t.Errorf("%d: %q, want %q", seconds, got, want)
		}
	}
}
