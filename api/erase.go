package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// Receipt is the proof of an erasure, for the person whose memory it was.
type Receipt struct {
	ID       string         `json:"id"`
	User     string         `json:"user"`
	Tenant   string         `json:"tenant"`
	Scopes   int            `json:"scopes"` // apps and projects in which something was remembered
	Memories int            `json:"memories"`
	Turns    int            `json:"turns"` // that were not memories yet
	Records  map[string]int `json:"records"`
	At       string         `json:"at"`
	By       string         `json:"by"`
	Note     string         `json:"note"`
}

const eraseNote = "The data keys are destroyed, so copies in backups can't be read with this keyring any more. " +
	"Keyrings that were exported earlier still hold the keys. What was sent to an upstream can't be called back."

// maxErased bounds the apps and projects that one call erases.
const maxErased = 10_000

// eraseTimeout bounds an erasure, which waits for a store that is busy.
const eraseTimeout = 2 * time.Minute

// Erase erases a user, in all apps and projects unless one is named. It can't
// be undone. A user of whom nothing is remembered is ErrNotFound.
func (s *memories) Erase(ctx context.Context, p Principal, t Target) (Receipt, error) {
	one, err := s.scope(p, t)
	if err != nil {
		return Receipt{}, err
	}
	s.settle(ctx)
	named := t
	named.User = identity.Show(one.User)
	scopes, err := s.scopesOf(ctx, p, named, maxErased)
	if err != nil {
		return Receipt{}, err
	}
	for _, waiting := range s.Pipeline.Waiting() { // a user whose turns are all still on their way
		if waiting == one && len(scopes) == 0 {
			scopes = append(scopes, one)
		}
	}
	if len(scopes) == 0 {
		return Receipt{}, ErrNotFound
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	out := Receipt{
		ID: "erasure-" + hex.EncodeToString(b[:]), User: identity.Show(one.User), Tenant: identity.Show(one.Tenant), Records: map[string]int{}, By: p.By, Note: eraseNote,
	}
	ctx, cancel := context.WithTimeout(ctx, eraseTimeout)
	defer cancel()
	for _, scope := range scopes {
		e, err := s.Pipeline.ForgetUser(ctx, scope)
		if err != nil {
			return out, err
		}
		out.Scopes++
		out.add(&e)
	}
	s.Log.Info("a user was erased through the control plane", "receipt", out.ID, "scopes", out.Scopes, "memories", out.Memories)
	return out, nil
}

func (r *Receipt) add(e *persist.Erasure) {
	r.Memories += e.Memories
	r.Turns += e.Queued + e.Spooled
	for bucket, n := range e.Records {
		r.Records[string(bucket)] += n
	}
	r.At = stamp(e.At)
}

// settlePatience is how long an erasure waits for what is being stored.
const settlePatience = 2 * time.Second

// settle waits until what was said before the call is stored, if the store can.
func (s *memories) settle(ctx context.Context) {
	if s.Settle != nil {
		ctx, cancel := context.WithTimeout(ctx, settlePatience)
		defer cancel()
		_ = s.Settle(ctx)
	}
}

// EraseConversation erases all that was said in a conversation permanently.
func (s *memories) EraseConversation(ctx context.Context, p Principal, t Target, conversation string) (Receipt, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return Receipt{}, err
	}
	s.settle(ctx)
	if conversation == "" {
		return Receipt{}, invalid("conversation", "is required")
	}
	if err := checkLength("conversation", conversation, storage.MaxScopePart); err != nil {
		return Receipt{}, err
	}
	e, err := s.Pipeline.ForgetConversation(ctx, scope, conversation)
	if err != nil {
		return Receipt{}, err
	}
	if e.Memories+e.Queued+e.Spooled == 0 {
		return Receipt{}, ErrNotFound
	}
	out := Receipt{User: identity.Show(scope.User), Tenant: identity.Show(scope.Tenant), Scopes: 1, Records: map[string]int{}, By: p.By}
	out.add(&e)
	return out, nil
}

// DeleteAll discards all memories of a user that a filter selects, which can be
// undone for a day by undoing the deletion of any of them.
func (s *memories) DeleteAll(ctx context.Context, p Principal, t Target, f Filter, why string) (Removed, error) {
	out := Removed{Deleted: []string{}}
	if err := checkLength("why", why, MaxReason); err != nil {
		return out, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return out, err
	}
	if len(f.States) == 0 {
		f.States = []string{StateCurrent, StateSuperseded, StateQuarantined}
	}
	chosen, err := s.compile(ctx, scope, f)
	if err != nil {
		return out, err
	}
	var ids []string
	for page, err := range storage.ScanPages(ctx, s.Store, scope, chosen.query()) {
		if err != nil {
			return out, err
		}
		for i := range page.Memories {
			if m := &page.Memories[i]; m.DeletedAt == 0 && chosen.matches(m) {
				ids = append(ids, m.ID)
			}
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	gone, err := s.Pipeline.Discard(ctx, scope, persist.Cause{By: p.By, Why: why}, ids...)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return out, err
	}
	for i := range gone {
		out.Deleted = append(out.Deleted, gone[i].ID)
	}
	out.UndoUntil = stamp(storage.TimeOf(s.Now().Add(persist.UndoTime)))
	return out, nil
}
