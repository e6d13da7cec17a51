package persist

import (
	"encoding/json"
	"testing"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// What is written out by hand is what encoding/json would write.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "plain", "a \"b\" \\ / <c> & d\n\r\t\b\f\x00\x1f\x7f", "é 請 \u2028\u2029\u202a \xff\xe2\x80", "😀"} {
		f.Add(s, int64(7), 0.25, uint8(3))
	}
	f.Add("x", int64(-1), 0.0, uint8(0))
	f.Fuzz(func(t *testing.T, s string, n int64, share float64, k uint8) {
		same := func(what string, got []byte, err error, v any) {
			t.Helper()
			want, wantErr := json.Marshal(v)
			if err != nil || wantErr != nil || string(got) != string(want) {
				t.Errorf("%s: %s (%v)\nwant %s (%v)", what, got, err, want, wantErr)
			}
		}
		sum := Summary{Conversation: s, Messages: int(n), Updated: storage.Time(n)}
		turn := Turn{ID: s, Scope: storage.Scope{Tenant: s, App: "a", Project: "<", User: s}, Conversation: s, Chain: s, Model: s, Finish: s, Source: s}
		r := AuditRecord{Conversation: s, From: storage.Time(n), To: 2, Messages: 3, Fresh: 4, Tokens: 5, Candidates: 6, Saved: 7, Superseded: 8, Reinforced: 9, Quarantined: 10, Soft: k&1 > 0, Distilled: k&2 > 0, TookMicros: n}
		if share >= 1e-6 && share <= 1e6 || share == 0 {
			r.Mean, r.Best = share, share/3
			if r.Best < 1e-6 {
				r.Best = 0
			}
		}
		if k > 0 {
			sum.Keywords, sum.Sentences, turn.Messages, r.Rejected = []Keyword{}, []string{}, []Message{}, map[string]int{}
			turn.Project = s
		}
		for i := range k % 5 {
			sum.Keywords, sum.Sentences = append(sum.Keywords, Keyword{s, int(n) + int(i)}), append(sum.Sentences, s)
			m := Message{Role: storage.RoleUser, Speaker: s, Text: s, Time: storage.Time(n)}
			if i == 2 {
				m.Originals = []redact.Original{{Rule: s, Placeholder: "[EMAIL]", Text: s, At: int(i)}}
			}
			turn.Messages = append(turn.Messages, m)
			r.Rejected[s+string(rune('a'+4-i))] = int(n)
		}
		same("summary", sum.encode(), nil, sum)
		same("record", r.encode(storage.Time(5).Std()), nil, r)
		e := spoolEntry{Version: 1, Seq: uint64(n), Tries: int(k), Problem: s, Since: storage.Time(n), Turn: turn}
		got, err := e.encode()
		same("entry", got, err, e)
		e.Due = &dueNote{s, storage.Time(n)}
		got, err = e.encode()
		same("mark", got, err, e)
	})
}
