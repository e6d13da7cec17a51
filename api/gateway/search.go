package gateway

import (
	"context"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// defaultTopK is how many results a search has that names no number.
const defaultTopK = 8

// search is the body of a search.
type search struct {
	caller
	ConversationID string   `json:"conversation_id"`
	Query          string   `json:"query"`
	Scope          []string `json:"scope"`
	TopK           *int     `json:"top_k"`
}

// results is the answer to a search.
type results struct {
	Results []result `json:"results"`
}

type result struct {
	ID          string  `json:"id"`
	SessionID   string  `json:"session_id"`
	Text        string  `json:"text"`
	Score       float64 `json:"score"`
	SourceScope string  `json:"source_scope"`
	ResourceURI string  `json:"resource_uri"`
}

func (f *face) search(ctx context.Context, p api.Principal, t api.Target, q *search) (any, error) {
	if len(q.Scope) == 0 {
		return nil, &api.FieldError{Field: "scope", Why: "must have at least one of current_chat, resources and all_user_memory"}
	}
	topK := defaultTopK
	if q.TopK != nil {
		if topK = *q.TopK; topK < 1 {
			return nil, &api.FieldError{Field: "top_k", Why: "must be 1..100"}
		}
	}
	found, err := f.service.Retrieve(ctx, p, t, api.Retrieval{Query: q.Query, Conversation: q.ConversationID, Scopes: q.Scope, TopK: topK})
	if err != nil {
		return nil, err
	}
	out := results{Results: make([]result, len(found))}
	for i := range found {
		m := &found[i].Memory
		out.Results[i] = result{m.ID, sessionOf(m.Conversation), m.Text, found[i].Score, q.source(m), m.ResourceURI}
	}
	return out, nil
}

// source returns the scope that a memory comes from.
func (q *search) source(m *api.Memory) string {
	switch {
	case m.Conversation != "" && m.Conversation == q.ConversationID:
		return string(recall.CurrentChat)
	case m.Kind == string(storage.KindResource):
		return string(recall.Resources)
	}
	return string(recall.AllUserMemory)
}

// sessionPrefix is before the conversation in the id of a session.
const sessionPrefix = "chat:"

func sessionOf(conversation string) string {
	if conversation == "" {
		return ""
	}
	return sessionPrefix + conversation
}

func conversationOf(session string) string { return strings.TrimPrefix(session, sessionPrefix) }
