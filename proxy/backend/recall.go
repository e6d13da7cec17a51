package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// question is the body of a search.
type question struct {
	identity
	ConversationID string               `json:"conversation_id"`
	Query          string               `json:"query"`
	Scope          []recall.SearchScope `json:"scope"`
	TopK           int                  `json:"top_k"`
}

// found is what is read of a result.
type found struct {
	ID          string  `json:"id"`
	SessionID   string  `json:"session_id"`
	Text        string  `json:"text"`
	Score       float64 `json:"score"`
	SourceScope string  `json:"source_scope"`
	ResourceURI string  `json:"resource_uri"`
}

// maxText limits the text of a result, in bytes. A block shows no more.
const maxText = 2048

// gatewayTrust is the trust of what another server says that a user has said.
const gatewayTrust = 0.5

// How long a gateway whose searches fail is not asked: at first, and at most.
// Each request that asks it again may wait for its whole time.
const (
	minPause = 5 * time.Second
	maxPause = 30 * time.Second
)

// Recall searches the gateway, in one attempt. The scope of r is not sent: the
// memory is the configured user's, no matter who asks. After three failures in a
// row it fails at once, without asking, except once after each pause.
func (g *Gateway) Recall(ctx context.Context, r recall.Request) (recall.Result, error) {
	asked := g.query(&r)
	if asked == "" {
		return recall.Result{Vectors: recall.VectorsOff}, nil
	}
	began := g.deps.Now()
	topK := g.cfg.TopK
	if r.TopK > 0 {
		topK = min(r.TopK, recall.MaxTopK)
	}
	body := question{g.identity(), r.Conversation, asked, g.cfg.Scopes, topK}
	if len(r.Scopes) > 0 {
		body.Scope = r.Scopes
	}
	ok, probe := g.searches.Allow(began)
	if !ok {
		failed := &failure{op: opRecall, category: Paused}
		g.count(failed) // the pause is an event, not each search in it
		return recall.Result{}, failed
	}
	content, status, failed := g.post(ctx, opRecall, body)
	var results []found
	if failed == nil {
		results, failed = decode(content, status)
	}
	g.noteSearch(failed, probe, began)
	if failed != nil {
		g.noteRecallFailed(failed)
		if failed.category == Timeout {
			return recall.Result{}, fmt.Errorf("%w: %w", recall.ErrTimeout, failed)
		}
		return recall.Result{}, failed
	}
	out := recall.Result{Considered: len(results), Vectors: recall.VectorsOff, Memories: usable(results, &r, topK)}
	out.Took = g.deps.Now().Sub(began)
	g.noteRecall(body.Scope, len(out.Memories))
	return out, nil
}

// noteSearch has a search that began then decide whether further ones are made.
func (g *Gateway) noteSearch(failed *failure, probe bool, began time.Time) {
	now := g.deps.Now()
	switch {
	case failed == nil:
		if g.searches.Succeeded(probe) {
			g.deps.Log.Info("the memory gateway has recovered")
		}
	case failed.category == Canceled, failed.category == Timeout && now.Sub(began) < min(g.cfg.Timeout, g.cfg.RecallTimeout)/2:
		g.searches.Withdraw(probe) // it had not its time, which something else has taken
	case g.searches.Failed(now, probe, 0):
		g.deps.Log.Warn("the memory gateway fails or is too slow: requests are not given its memories for now", "category", string(failed.category), "status", failed.status)
	}
}

// maxQuery is how much of a message is redacted for its query, in bytes. The
// query has less of it.
const maxQuery = 64 << 10

// query returns what is asked for: the person's words, redacted, of a long
// message the beginning and the end.
func (g *Gateway) query(r *recall.Request) string {
	words := r.Newest
	if !r.HumanOnly {
		words = recall.HumanWords(words)
	}
	if len(words) > maxQuery {
		words = words[:maxQuery/2] + "\n" + words[len(words)-maxQuery/2:]
	}
	words = strings.ToValidUTF8(words, "")
	return strings.TrimSpace(query.HeadAndTail(g.deps.Redact(fence.Strip(words))))
}

// decode reads the results. Those that are not as they should be are left out.
func decode(content []byte, status int) ([]found, *failure) {
	if !json.Valid(content) {
		return nil, &failure{op: opRecall, category: InvalidJSON, status: status}
	}
	var top map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(content, &top) != nil || json.Unmarshal(top["results"], &list) != nil || list == nil {
		return nil, &failure{op: opRecall, category: WrongShape, status: status}
	}
	out := make([]found, 0, min(len(list), recall.MaxTopK))
	for _, raw := range list {
		var f found
		if json.Unmarshal(raw, &f) == nil && strings.TrimSpace(f.Text) != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

// usable returns the memories for a request: not what it carries already, nor
// what its policy forbids.
func usable(results []found, r *recall.Request, topK int) []recall.Scored {
	out := r.Into[:0]
	// The client sends its whole history, so it has every turn of its own
	// conversation. A window of it is not recognised, nor a client that sends
	// the newest message alone.
	whole := r.Previous != nil && r.VisibleTurns == 0
	var seen []string
	for i := range results {
		m := results[i].memory(r)
		if _, visible := r.VisibleIDs[m.ID]; visible || slices.Contains(seen, m.ID) {
			continue
		}
		if whole && m.Conversation != "" && m.Conversation == r.Conversation {
			continue
		}
		if r.Allow != nil && !r.Allow(m.Kind, m.Tags) {
			continue
		}
		if out = append(out, recall.Scored{Memory: m, Score: results[i].Score}); len(out) == topK {
			break
		}
		seen = append(seen, m.ID)
	}
	return out
}

// memory returns a result as the proxy shows memories.
func (f *found) memory(r *recall.Request) storage.Memory {
	text := f.Text
	if len(text) > maxText {
		if r.Screen != nil {
			text = r.Screen(text) // a part may not show what must be redacted
		}
		text = cut(text, maxText)
	}
	id := f.ID
	if id == "" || len(id) > storage.MaxID {
		sum := sha256.Sum256([]byte(f.ID + "\x00" + f.SessionID + "\x00" + f.Text))
		id = "gateway-" + hex.EncodeToString(sum[:16])
	}
	m := storage.Memory{ID: id, Kind: storage.KindEpisode, Text: text, Conversation: strings.TrimPrefix(f.SessionID, sessionPrefix), Trust: gatewayTrust, Source: "gateway"}
	if f.SourceScope == string(recall.Resources) {
		m.Kind = storage.KindResource
		if f.ResourceURI != "" {
			m.Tags = []string{storage.ResourceTag + f.ResourceURI}
		}
	}
	return m
}

// cut shortens a text to limit bytes, at a blank if one is near, with a mark at
// the end.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[:limit-len(extract.CutMark)]
	if space := strings.LastIndexAny(text, " \t\r\n"); space > limit/2 {
		text = text[:space]
	}
	return strings.ToValidUTF8(text, "") + extract.CutMark
}
