package mem0

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// defaultTopK is how many memories a search returns unless it asks for more.
const defaultTopK = 10

// searchRequest asks for memories by what they say.
type searchRequest struct {
	ids
	Query        string          `json:"query"`
	Filters      json.RawMessage `json:"filters"`
	TopK         *int            `json:"top_k"`
	Limit        *int            `json:"limit"`
	Threshold    *float64        `json:"threshold"`
	Categories   []string        `json:"categories"`
	Metadata     json.RawMessage `json:"metadata"`
	Fields       []string        `json:"fields"`
	OutputFormat string          `json:"output_format"`
}

// hit is a memory that a search found, with its score from 0 to 1.
type hit struct {
	memory api.Memory
	score  float64
}

// searching answers with the memories that match a question, best first.
func searching(as shape) verb {
	return func(c *call) error {
		var q searchRequest
		if err := c.decode(&q); err != nil {
			return err
		}
		if err := checkQuestion(q.Query); err != nil {
			return err
		}
		top := defaultTopK
		for _, asked := range [...]struct {
			field string
			n     *int
		}{{"limit", q.Limit}, {"top_k", q.TopK}} {
			if asked.n == nil {
				continue
			}
			if top = *asked.n; top < 1 || top > api.MaxTopK {
				return invalid(asked.field, "must be 1.."+strconv.Itoa(api.MaxTopK))
			}
		}
		list := listRequest{ids: q.ids, Filters: q.Filters, Categories: q.Categories, Metadata: q.Metadata}
		s, err := list.selection()
		if err != nil {
			return err
		}
		hits, err := c.search(c.r.Context(), s, q.Query)
		if err != nil {
			return err
		}
		results := []any{}
		for i := range hits {
			if q.Threshold != nil && hits[i].score < *q.Threshold || len(results) == top {
				break
			}
			r := recordOf(&hits[i].memory)
			r.Score = &hits[i].score
			shown, err := r.chosen(q.Fields)
			if err != nil {
				return err
			}
			results = append(results, shown)
		}
		if as == shapeList && q.OutputFormat != "v1.1" {
			return c.write(http.StatusOK, results)
		}
		return c.write(http.StatusOK, map[string]any{"results": results})
	}
}

// checkQuestion is what every search checks, also that of nothing.
func checkQuestion(question string) error {
	switch {
	case strings.TrimSpace(question) == "":
		return invalid("query", "is empty")
	case len(question) > api.MaxQuery:
		return invalid("query", fmt.Sprintf("must have at most %d bytes", api.MaxQuery))
	}
	return nil
}

// search searches all spaces of a selection and returns what matches, best
// first: of each space at most [api.MaxTopK] facts and as many passages.
func (c *call) search(ctx context.Context, s *selection, question string) ([]hit, error) {
	targets, err := c.spaces(s)
	if err != nil {
		return nil, err
	}
	var all []hit
	for _, t := range targets {
		hits, err := c.searchSpace(ctx, t, s, question)
		if err != nil {
			return nil, err
		}
		all = append(all, hits...)
	}
	slices.SortStableFunc(all, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return all, nil
}

// statements are the kinds of memories that are one each for mem0's clients.
var statements = []string{string(storage.KindFact), string(storage.KindResource), string(storage.KindCurated)}

// maxStandIns bounds the turns of which others than the matching passages are
// shown.
const maxStandIns = 20

// searchSpace searches what one user told one app or agent. Facts and passages
// are searched apart, because a fact and the passage that it was made of say
// the same, and only the better one would be found. Where a passage matches
// that is not shown, the facts of its turn stand for it. Private memories are
// left out: programs put what is found into prompts, and no policy can decide
// where these go.
func (c *call) searchSpace(ctx context.Context, t api.Target, s *selection, question string) ([]hit, error) {
	q := api.Search{Query: question, TopK: api.MaxTopK, Kinds: statements}
	if run := s.run(); run != "" {
		q.Conversation, q.Scopes = run, []string{"current_chat"}
	}
	stated, err := c.service.Search(ctx, c.p, t, q)
	if err != nil {
		return nil, err
	}
	q.Kinds = []string{string(storage.KindEpisode)}
	said, err := c.service.Search(ctx, c.p, t, q)
	if err != nil {
		return nil, err
	}
	scale := scaleOf(&stated, &said)
	v := &space{target: t}
	if len(said.Results) > 0 { // only they depend on other memories
		if v, err = c.open(ctx, t); err != nil {
			return nil, err
		}
	}
	found, stood := map[string]bool{}, map[string]bool{}
	var out []hit
	take := func(m *api.Memory, score float64) {
		if !found[m.ID] && v.shows(m) && s.takes(m) && !slices.Contains(m.Tags, storage.PrivateTag) {
			found[m.ID] = true
			out = append(out, hit{*m, min(score*scale, 1)})
		}
	}
	for i := range stated.Results {
		take(&stated.Results[i].Memory, stated.Results[i].Score)
	}
	for i := range said.Results {
		r := &said.Results[i]
		if v.shows(&r.Memory) {
			take(&r.Memory, r.Score)
			continue
		}
		if stood[r.Memory.Turn] || len(stood) == maxStandIns {
			continue
		}
		stood[r.Memory.Turn] = true
		stand, err := c.ofTurn(ctx, v, r.Memory.Turn)
		if err != nil {
			return nil, err
		}
		for k := range stand {
			take(&stand[k], r.Score)
		}
	}
	return out, nil
}

// scaleOf returns the factor that makes scores comparable between users and
// questions: the best one becomes the relevance of its search, which is 0 to 1.
// At 0.2 and above, memories are inserted into requests by default.
func scaleOf(stated, said *api.Results) float64 {
	scale, best := 0.0, 0.0
	for _, res := range []*api.Results{stated, said} {
		if len(res.Results) > 0 && res.Results[0].Score > best {
			best = res.Results[0].Score
			scale = res.Relevance / best
		}
	}
	return scale
}
