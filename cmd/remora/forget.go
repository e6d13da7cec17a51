package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/process"
)

func forgetCommand() command {
	return command{
		name:    "forget",
		summary: "forget memories, a conversation, a user or everything",
		usage: `remora forget ID...              memories, by the ids that remora list shows, and the facts that came from them; what
                                 precedes an id's dot names everything said in that turn, including the answer;
                                 remora undo brings them back for 24 hours
       remora forget --now ID...        the same at once, and never to come back
       remora forget --conversation ID  all that was said in it
       remora forget --all --user USER  a user, with the key that the memories and their backups are sealed with
       remora forget --all --tenant T   all users of a tenant; without --tenant or --user, of the store
       remora forget --dismiss ID...    requests of remora list --forget, without forgetting anything
       each with [--yes], [--user USER] [--tenant TENANT] [--app APP] [--project PROJECT] [--data DIRECTORY] [--config FILE];
       ids without --now, and --conversation, also with [--server URL] [--token-file FILE]

It is deleted from what is searched, and from what current conversations repeat; with --now, --conversation and --all also
from the disk, which can't be undone. It also works while Remora runs, on the same machine and as the same user.`,
		define: forgetMemories, maxArgs: maxForget,
	}
}

// forgetting says what to forget: of the selected scopes, All, or a
// Conversation, or the memories with these IDs; or, with Dismiss, the requests
// with these IDs.
type forgetting struct {
	Of           selection
	All          bool
	Conversation string
	Dismiss      bool
	IDs          []string
}

// forgotten counts what was forgotten.
type forgotten struct {
	Scopes   int
	Memories int
	Derived  int // of them, facts extracted from what was named
	Turns    int // that were not memories yet
	Requests int // dismissed
	// Unreadable counts scopes that were skipped, because their names are lost
	// with their keys.
	Unreadable int
	NotFound   []string
}

func forgetMemories(f *pflag.FlagSet) runner {
	r := reachFlags(f)
	var what forgetting
	f.BoolVar(&what.All, "all", false, "forget everything of the selected users, permanently")
	f.StringVar(&what.Conversation, "conversation", "", "forget the conversation of this `id`, permanently")
	f.BoolVar(&what.Dismiss, "dismiss", false, "take requests to forget off their list")
	now := f.Bool("now", false, "forget these memories permanently")
	yes := yesFlag(f)
	why := ""
	whyFlag(f, &why)
	f.BoolVar(&r.json, "json", false, "with ids: write what the control plane answers as JSON, one object a line")
	return func(ctx context.Context, s streams, ids []string) error {
		what.Of, what.IDs = *r.of, ids
		server, err := r.remote(s)
		switch {
		case err != nil:
			return err
		case what.All && (what.Conversation != "" || what.Dismiss || len(ids) > 0), what.Conversation != "" && (what.Dismiss || len(ids) > 0),
			*now && (what.All || what.Conversation != "" || what.Dismiss):
			return wrongCall("one of ids, --conversation and --all")
		case !what.All && what.Conversation == "" && len(ids) == 0:
			return wrongCall("nothing to forget is named: ids, --conversation or --all")
		case server != "" && (what.All || what.Dismiss || *now):
			return wrongCall("--all, --now and --dismiss work on the machine of the store; remora erase erases a user of a server")
		case !what.All && what.Conversation == "" && !what.Dismiss && !*now:
			return r.run(ctx, s, needAll, &client.Forget{IDs: ids, Why: why})
		}
		if !what.Dismiss {
			if err := confirm(s, *yes, what.String()); err != nil {
				return err
			}
		}
		if server != "" {
			return r.run(ctx, s, needAll, &client.ForgetConversation{ID: what.Conversation})
		}
		if *now && slices.ContainsFunc(ids, client.Shortened) {
			if err := r.run(ctx, s, needIndex, client.FullIDs(ids, func(full []string) { what.IDs = full })); err != nil {
				return err
			}
		}
		c, err := sealedConfig(r.flags, s)
		if err != nil {
			return err
		}
		done, err := what.run(ctx, c, s)
		if err != nil {
			return err
		}
		return done.tell(s.err, what)
	}
}

// String returns what is done, for people who are asked whether they mean it.
func (f forgetting) String() string {
	switch {
	case f.All && f.Of.Tenant == "" && f.Of.User == "":
		return "forgetting everybody's memories"
	case f.All:
		return "forgetting all memories of these users"
	case f.Conversation != "":
		return "forgetting a conversation"
	}
	return fmt.Sprintf("forgetting %d memories", len(f.IDs))
}

// flushPatience limits the wait for what was said just before, and
// forgetPatience each erasure.
const (
	flushPatience  = 5 * time.Second
	forgetPatience = time.Minute
)

// maxForget is the maximum number of ids of one call.
const maxForget = 10_000

// run lets the running Remora do it, whose indexes and conversations have what
// is to be forgotten. If none runs, it assembles one that does nothing else.
func (f forgetting) run(ctx context.Context, c config.Config, s streams) (done forgotten, err error) {
	if err := thereIsAStore(c); err != nil {
		return done, err
	}
	running, away := process.Dial(c.Storage.Dir, process.FrontSocket, readBuild().String())
	if away != nil {
		err = alone(ctx, c, s, away, needAll, func(sys *system) (err error) {
			done, err = sys.forget(ctx, f)
			return err
		})
		return done, err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	args, err := json.Marshal(f)
	if err != nil {
		return done, err
	}
	answer, err := running.Admin(ctx, forgetName, args, nil)
	if err != nil {
		return done, err
	}
	return done, json.Unmarshal(answer, &done)
}

// forget does the forgetting. If it is cut short, some of it is done, and it
// can be repeated.
func (s *system) forget(ctx context.Context, f forgetting) (done forgotten, err error) {
	// What was said just before gets an id, and counts as the memory that it
	// becomes.
	flushing, cancel := context.WithTimeout(ctx, flushPatience)
	_ = s.settle(flushing)
	cancel()
	waiting := s.pipeline.Waiting() // before the store is asked: what leaves the queue meanwhile is there
	scopes, unreadable, err := scopesOf(ctx, s.store, f.Of)
	if err != nil {
		return done, err
	}
	for _, scope := range waiting { // such as a user whose turns all wait for a full disk
		if f.Of.covers(scope) && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	switch {
	case f.All:
		return s.forgetAll(ctx, f.Of, scopes, unreadable)
	case f.Conversation != "":
		for _, scope := range scopes {
			e, err := s.patiently(ctx, func(ctx context.Context) (persist.Erasure, error) {
				return s.pipeline.ForgetConversation(ctx, scope, f.Conversation)
			})
			done.add(e)
			if err != nil {
				return done, err
			}
		}
		return done, nil
	case f.Dismiss:
		return s.dismiss(ctx, scopes, f.IDs)
	}
	return s.forgetMemories(ctx, scopes, f.IDs)
}

// patiently limits one erasure, which waits for turns that can't be stored now,
// for example on a full disk.
func (s *system) patiently(ctx context.Context, erase func(context.Context) (persist.Erasure, error)) (persist.Erasure, error) {
	bounded, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	e, err := erase(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		why := s.store.Status().Reason
		if why == "" {
			why = "it is busy"
		}
		err = fmt.Errorf("not all is forgotten: the store did not come to it in %s: %s; forget it again when that is over", forgetPatience, why)
	}
	return e, err
}

func (s *system) forgetAll(ctx context.Context, of selection, scopes []storage.Scope, unreadable int) (done forgotten, err error) {
	// What is named exactly is forgotten even if its key is lost, and with it
	// its name.
	if scope, ok := of.exact(); ok && len(scopes) == 0 && unreadable > 0 {
		scopes = append(scopes, scope)
	}
	for _, scope := range scopes {
		e, err := s.patiently(ctx, func(ctx context.Context) (persist.Erasure, error) { return s.pipeline.ForgetUser(ctx, scope) })
		done.add(e)
		if err != nil {
			return done, err
		}
	}
	done.Scopes = len(scopes)
	if of != (selection{}) {
		_, done.Unreadable, err = scopesOf(ctx, s.store, of)
		return done, err
	}
	if unreadable > 0 {
		receipt, err := s.store.EraseAll(ctx)
		done.Scopes += receipt.Scopes
		done.Memories += receipt.Memories
		return done, err
	}
	return done, nil
}

func (s *system) forgetMemories(ctx context.Context, scopes []storage.Scope, ids []string) (done forgotten, err error) {
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	take := func(scope storage.Scope, own []string) error {
		if len(own) == 0 {
			return nil
		}
		e, err := s.patiently(ctx, func(ctx context.Context) (persist.Erasure, error) {
			return s.pipeline.ForgetMemories(ctx, scope, own...)
		})
		done.add(e)
		return err
	}
	for _, scope := range scopes {
		var own []string
		for _, id := range ids {
			if !left[id] {
				continue
			}
			switch _, err := s.store.Memory(ctx, scope, id); {
			case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrInvalid):
			case err == nil, errors.Is(err, storage.ErrDamaged):
				own = append(own, id)
				delete(left, id)
			default:
				return done, err
			}
		}
		if err := take(scope, own); err != nil {
			return done, err
		}
	}
	for _, scope := range scopes {
		if len(left) == 0 {
			break
		}
		own, err := passagesOf(ctx, s.store, scope, left)
		if err != nil {
			return done, err
		}
		if err := take(scope, own); err != nil {
			return done, err
		}
	}
	done.notFound(ids, left)
	return done, nil
}

// passagesOf lists the passages of a scope's turns, and removes the turns that
// it found from the list.
func passagesOf(ctx context.Context, store storage.Store, scope storage.Scope, turns map[string]bool) (ids []string, err error) {
	found := map[string]bool{}
	for page, err := range storage.ScanPages(ctx, store, scope, storage.Query{Kinds: []storage.Kind{storage.KindEpisode}}) {
		if err != nil {
			return nil, err
		}
		for i := range page.Memories {
			if m := &page.Memories[i]; turns[m.Provenance.Turn] {
				found[m.Provenance.Turn] = true
				ids = append(ids, m.ID)
			}
		}
	}
	for turn := range found {
		delete(turns, turn)
	}
	return ids, nil
}

func (s *system) dismiss(ctx context.Context, scopes []storage.Scope, ids []string) (done forgotten, err error) {
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	for _, scope := range scopes {
		all, err := s.pipeline.PendingForgets(ctx, scope)
		if err != nil {
			return done, err
		}
		for i := range all {
			if id := all[i].ID; left[id] {
				if err := s.pipeline.DismissForget(ctx, scope, id); err != nil {
					return done, err
				}
				done.Requests++
				delete(left, id)
			}
		}
	}
	done.notFound(ids, left)
	return done, nil
}

func (d *forgotten) add(e persist.Erasure) {
	if e.Memories+e.Queued+e.Spooled > 0 {
		d.Scopes++
	}
	d.Memories += e.Memories
	d.Derived += e.Derived
	d.Turns += e.Queued + e.Spooled
}

func (d *forgotten) notFound(ids []string, left map[string]bool) {
	for _, id := range ids {
		if left[id] {
			d.NotFound = append(d.NotFound, id)
			delete(left, id)
		}
	}
}

// tell prints what was forgotten. What did not exist is an error.
func (d forgotten) tell(w io.Writer, f forgetting) error {
	switch {
	case f.Dismiss:
		fmt.Fprintf(w, "dismissed %d requests\n", d.Requests)
	case f.All:
		fmt.Fprintf(w, "forgot %d users: %d memories, %d turns that were not stored yet\n", d.Scopes, d.Memories, d.Turns)
		if d.Scopes == 0 {
			break
		}
		fmt.Fprintln(w, "their data keys are destroyed, so no backup brings them back with this keyring: replace exported keyrings (remora keys export)")
	default:
		fmt.Fprintf(w, "forgot %d memories, of them %d facts that came from the others, and %d turns that were not stored yet\n", d.Memories, d.Derived, d.Turns)
		if d.Memories > 0 {
			fmt.Fprintln(w, "backups that were made before still hold them")
		}
	}
	switch {
	case d.Unreadable > 0:
		fmt.Fprintf(w, "left: %d users whose key is missing or damaged, so that whose they are is not known; name their tenant and user exactly, or forget everything\n", d.Unreadable)
	case len(d.NotFound) > 0:
		return fmt.Errorf("not found: %s", strings.Join(d.NotFound, ", "))
	case f.All && d.Scopes == 0:
		return errors.New("there is nobody like that")
	case f.Conversation != "" && d.Memories+d.Turns == 0:
		return errors.New("not found: nothing is remembered of that conversation")
	}
	return nil
}
