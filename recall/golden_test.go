package recall

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

var update = flag.Bool("update", false, "rewrite testdata/ranking.golden")

// goldenUser is a user of testdata/conversations.txt, which describes its
// format.
type goldenUser struct {
	name      string
	memories  []storage.Memory
	questions []goldenQuestion
	last      time.Time
}

type goldenQuestion struct {
	text    string
	answers map[string]bool // numbers of turns
}

func readGolden(t *testing.T) []*goldenUser {
	data, err := os.ReadFile("testdata/conversations.txt")
	if err != nil {
		t.Fatal(err)
	}
	var users []*goldenUser
	var u *goldenUser
	turn, seq, chat := 0, 0, 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case mark == "=":
			u = &goldenUser{name: rest}
			users = append(users, u)
			turn, chat = 0, 0
		case u == nil:
		case mark == "@":
			if u.last, err = time.Parse(time.DateOnly, rest); err != nil {
				t.Fatal(err)
			}
			chat++
		case mark == "?":
			text, answers, _ := strings.Cut(rest, " | ")
			q := goldenQuestion{text: text, answers: map[string]bool{}}
			for _, a := range strings.Fields(answers) {
				q.answers[a] = true
			}
			u.questions = append(u.questions, q)
		case strings.HasPrefix(mark, "u") || mark == "a:":
			m := storage.Memory{Kind: storage.KindEpisode, Scope: alice, Conversation: fmt.Sprint("chat", chat), Text: rest, Trust: 1}
			m.Provenance.Role = storage.RoleAssistant
			seq++
			if mark != "a:" {
				turn++
				seq = 0
				m.Provenance.Role = storage.RoleUser
				if speaker, text, ok := strings.Cut(rest, ": "); ok && mark == "u" {
					m.Provenance.Speaker, m.Text = speaker, text
				}
			}
			m.Provenance.Turn, m.Provenance.Seq = fmt.Sprint(turn), seq
			m.ID = storage.TurnMemoryID(m.Provenance.Turn, seq)
			m.EventTime = storage.TimeOf(u.last) + storage.Time(turn*60_000+seq*1000)
			u.memories = append(u.memories, m)
		}
	}
	return users
}

// The golden file has the best turns of every question with their scores, a
// star for those that answer it, and the relevance. A change of ranking shows
// as a diff. The share of questions whose first turn answers must not fall.
func TestRankingGolden(t *testing.T) {
	var b strings.Builder
	first, all := 0, 0
	for _, u := range readGolden(t) {
		e, _ := newEngine(t, patient(), u.memories)
		fmt.Fprintf(&b, "= %s\n", u.name)
		for _, q := range u.questions {
			res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: q.text, Now: u.last.Add(48 * time.Hour), TopK: 3, NoGate: true})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "? %s\n  %.2f", q.text, res.Relevance)
			for i, m := range res.Memories {
				star := ""
				if q.answers[m.Memory.Provenance.Turn] {
					star = "*"
					if i == 0 {
						first++
					}
				}
				fmt.Fprintf(&b, "  %s%s(%.2f)", star, m.Memory.ID, m.Score)
			}
			b.WriteString("\n")
			all++
		}
	}
	fmt.Fprintf(&b, "\n%d of %d questions: the first turn answers\n", first, all)
	const file = "testdata/ranking.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("ranking changed; if that is wanted, run with -update and review the diff:\n%s", d)
	}
}
