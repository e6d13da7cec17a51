package recall

import (
	"errors"
	"fmt"
)

// Weights are the fields and factors of a score. The score of a turn is
//
//	( sum over concepts: idf * weight * x / (K1 + x)  +  phrases ) * factors
//
// A concept is a term of the query together with the words that may stand for it. Its x sums, over the fields that hold
// one of them,
//
//	weight of the field * weight of the word * tf / (1 - b + b * length / mean length)
//
// (BM25F: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.6), and
// idf = ln(1 + (n - df + 0.5) / (df + 0.5)) over the scope's n turns.
//
// Tell and Ask weights go by sentence: what is asked counts differently from what is told.
type Weights struct {
	K1 float64

	// Own text.
	User       float64 // what the user tells
	UserAsk    float64 // what the user asks, as a share of User
	UserB      float64
	Assistant  float64 // the assistant's text, normalised by its own mean length
	AssistantB float64
	// AssistantAsked multiplies Assistant when the query is about what the assistant said.
	AssistantAsked float64

	// Neighbours in the same conversation lend their user's text: one and two turns before, one and two after, three away.
	Before1, Before1Ask float64
	Before1Answered     float64 // instead of Before1Ask where the answer stands in that turn
	Before2, Before2Ask float64
	After1, After1Ask   float64
	After2, After2Ask   float64
	Away3, Away3Ask     float64
	Session             float64 // all of the conversation's text
	SessionB            float64

	// Weights of the query's terms.
	Light   float64 // words that stand in many questions
	Request float64 // words about the conversation or the answer
	Proper  float64 // capitalised inside a sentence
	// A word that may stand for the query's: its share, times (idf of the word / idf of the term) ^ RelatedIDF where that
	// is below 1, so that common words add little.
	Synonym, KindOf float64
	RelatedIDF      float64
	// Phrase is the share of the lesser idf that two terms add which follow one another in query and text.
	Phrase float64

	// Factors.
	Date            float64 // 1 + Date * how well the turn's time fits a date in the query
	Speaker         float64 // the turn's speaker is the one whom the query names
	FirstPerson     float64 // the turn speaks in the first person,
	FirstPersonBoth float64 // and so does the query
	Project         float64 // the conversation is about what the request is about
	Opening         float64 // first turn of a conversation: people open with news
	Wish            float64 // the query asks for advice or work, the turn says how the user likes it
	TimeAnswer      float64 // the query asks when, the turn has a time
	NumberAnswer    float64 // the query asks how many, the turn has a number
	NameAnswer      float64 // the query asks who, where or which, the turn has a name
}

// DefaultWeights returns the measured weights; docs/recall.md has the figures behind them.
func DefaultWeights() Weights {
	return Weights{
		K1:   1.6,
		User: 1, UserAsk: 0.8, UserB: 0.4,
		Assistant: 0.11, AssistantB: 0.85, AssistantAsked: 1.5,
		Before1: 0.15, Before1Ask: 1.5, Before1Answered: 0.5,
		Before2: 0.44, Before2Ask: 0.3,
		After1: 0.35, After1Ask: 0.13,
		After2: 0.15, After2Ask: 0.15,
		Away3: 0.08, Away3Ask: 0.1,
		Session: 0.05, SessionB: 0.75,
		Light: 0.4, Request: 0.6, Proper: 1.2,
		Synonym: 0.35, KindOf: 0.35, RelatedIDF: 1.3,
		Phrase: 0.1,
		Date:   1.1, Speaker: 1.3, FirstPerson: 1.15, FirstPersonBoth: 1.1, Opening: 1.15, Wish: 2.5, Project: 1.1,
		TimeAnswer: 1.35, NumberAnswer: 1.1, NameAnswer: 1.15,
	}
}

// Weight is one of the weights with its key and what it means, for whoever shows or sets them.
type Weight struct {
	Key   string
	Doc   string
	Value *float64 // into the Weights
	share bool     // must lie in 0..1
}

// List returns every weight in the order of the declaration.
func (w *Weights) List() []Weight {
	return []Weight{
		{"k1", "BM25's saturation of repeated evidence.", &w.K1, false},
		{"user", "What the user tells.", &w.User, false},
		{"userAsk", "What the user asks, as a share of `user`.", &w.UserAsk, false},
		{"userB", "How much the length of the user's text counts against it, 0 to 1.", &w.UserB, true},
		{"assistant", "The assistant's text.", &w.Assistant, false},
		{"assistantB", "How much its length counts against it, 0 to 1.", &w.AssistantB, true},
		{"assistantAsked", "Multiplies `assistant` where the message is about what the assistant said.", &w.AssistantAsked, false},
		{"before1", "What the turn before tells.", &w.Before1, false},
		{"before1Ask", "What the turn before asks.", &w.Before1Ask, false},
		{"before1Answered", "What it asks where the answer stands in that turn.", &w.Before1Answered, false},
		{"before2", "What is told two turns before.", &w.Before2, false},
		{"before2Ask", "What is asked two turns before.", &w.Before2Ask, false},
		{"after1", "What the turn after tells.", &w.After1, false},
		{"after1Ask", "What the turn after asks.", &w.After1Ask, false},
		{"after2", "What is told two turns after.", &w.After2, false},
		{"after2Ask", "What is asked two turns after.", &w.After2Ask, false},
		{"away3", "What is told three turns before or after.", &w.Away3, false},
		{"away3Ask", "What is asked three turns before or after.", &w.Away3Ask, false},
		{"session", "All words of the conversation.", &w.Session, false},
		{"sessionB", "How much their number counts against them, 0 to 1.", &w.SessionB, true},
		{"light", "Weight of words that stand in many questions.", &w.Light, false},
		{"request", "Weight of words about the conversation or the answer.", &w.Request, false},
		{"proper", "Weight of capitalised words inside a sentence.", &w.Proper, false},
		{"synonym", "Share of a word that means the same as the message's, 0 to 1.", &w.Synonym, true},
		{"kindOf", "Share of a word for a thing of the kind that the message names, 0 to 1.", &w.KindOf, true},
		{"relatedIdf", "How much less such words count where they are commoner than the message's, as an exponent.", &w.RelatedIDF, false},
		{"phrase", "Added, as a share of the idf, where two words follow one another as in the message.", &w.Phrase, false},
		{"date", "How much a fitting date adds, as a share of the score.", &w.Date, false},
		{"speaker", "Factor where the speaker is the one whom the message names.", &w.Speaker, false},
		{"firstPerson", "Factor where the turn speaks in the first person.", &w.FirstPerson, false},
		{"firstPersonBoth", "The same where the message does, too.", &w.FirstPersonBoth, false},
		{"project", "Factor where the conversation is about the same project as the request: an agent's working directory.", &w.Project, false},
		{"opening", "Factor of the first turn of a conversation.", &w.Opening, false},
		{"wish", "Factor where the message asks for advice or work and the turn says how the user likes it.", &w.Wish, false},
		{"timeAnswer", "Factor where the message asks when and the turn has a time.", &w.TimeAnswer, false},
		{"numberAnswer", "Factor where the message asks how many and the turn has a number.", &w.NumberAnswer, false},
		{"nameAnswer", "Factor where the message asks who, where or which and the turn has a name.", &w.NameAnswer, false},
	}
}

func (w Weights) validate() []error {
	var errs []error
	for _, f := range w.List() {
		limit := 100.0
		if f.share {
			limit = 1
		}
		if v := *f.Value; !(v >= 0 && v <= limit) { // also refuses NaN
			errs = append(errs, fmt.Errorf("weights.%s: must be 0..%g", f.Key, limit))
		}
	}
	if w.K1 == 0 {
		errs = append(errs, errors.New("weights.k1: must be > 0"))
	}
	return errs
}
