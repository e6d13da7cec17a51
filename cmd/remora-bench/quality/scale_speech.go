package quality

import (
	"fmt"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
	"github.com/remora-proxy/remora/storage"
)

// speech says things without end: the messages of a data set again and again
// with fresh names, or made-up statements.
type speech struct {
	said      []spoken
	questions []string
	made      *prose.Generator
	asked     *prose.Generator
}

type spoken struct {
	text, session, speaker string
	role                   storage.Role
}

// madeUpStart is when the first memory was said; one follows every second.
const madeUpStart storage.Time = 1_600_000_000_000

func newSpeech(path string) (*speech, error) {
	if path == "" {
		return &speech{made: prose.New(3), asked: prose.New(5)}, nil
	}
	d, err := readDataset(path)
	if err != nil {
		return nil, err
	}
	s := &speech{}
	for _, c := range d.Convs {
		turns, _ := turnsOf(d, c, unitTurn)
		for _, t := range turns {
			m := t.Messages[0]
			for rest := m.Text; rest != ""; {
				cut := min(len(rest), 1000)
				s.said = append(s.said, spoken{strings.ToValidUTF8(rest[:cut], ""), c.ID + t.Conversation, m.Speaker, m.Role})
				rest = rest[cut:]
			}
		}
		for _, q := range c.Questions {
			s.questions = append(s.questions, q.Text)
		}
	}
	if len(s.questions) == 0 {
		return nil, fmt.Errorf("scale: %s has no questions", path)
	}
	return s, nil
}

func (s *speech) question(i int) string {
	if s.made != nil {
		return s.asked.Question(s.asked.Statement(), 200)
	}
	return s.questions[i%len(s.questions)]
}

// memory is the i-th thing said.
func (s *speech) memory(scope storage.Scope, i int) storage.Memory {
	at := madeUpStart + storage.Time(i)*1000
	turn := fmt.Sprintf("%032x", i+1)
	m := storage.Memory{
		ID: storage.TurnMemoryID(turn, 0), Scope: scope, Kind: storage.KindEpisode, Trust: 1, Source: "import", Version: 1,
		CreatedAt: at, UpdatedAt: at, ValidFrom: at, EventTime: at,
		Provenance: storage.Provenance{Turn: turn, Chain: turn, Role: storage.RoleUser},
	}
	if s.made != nil {
		m.Text, m.Conversation = s.made.Statement(), fmt.Sprintf("%032x", i/8)
		return m
	}
	said, round := s.said[i%len(s.said)], i/len(s.said)
	m.Text, m.Conversation = said.text, fmt.Sprintf("%s-%d", said.session, round)
	m.Provenance.Role, m.Provenance.Speaker = said.role, said.speaker
	if round > 0 {
		m.Text = freshNames(said.text, round)
		if said.speaker != "" {
			m.Provenance.Speaker = fmt.Sprint(said.speaker, letters(round))
		}
	}
	return m
}

// freshNames gives every name inside a sentence another ending in every round,
// so that the vocabulary grows as it does with people.
func freshNames(text string, round int) string {
	words := strings.Split(text, " ")
	for i := 1; i < len(words); i++ {
		w, before := words[i], words[i-1]
		if len(w) < 3 || w[0] < 'A' || w[0] > 'Z' || before == "" || strings.ContainsAny(before[len(before)-1:], ".!?\n") {
			continue
		}
		end := len(w)
		for end > 0 && !(w[end-1] >= 'a' && w[end-1] <= 'z') {
			end--
		}
		words[i] = w[:end] + letters(round) + w[end:]
	}
	return strings.Join(words, " ")
}

func letters(n int) string {
	var b []byte
	for ; n > 0; n /= 26 {
		b = append(b, byte('a'+n%26))
	}
	return string(b)
}
