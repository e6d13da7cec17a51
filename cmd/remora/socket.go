package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/storage/process"
)

// listen serves commands that need the running Remora and not just its store,
// once the store is open. Only this user and root may connect.
func (s *system) listen(ctx context.Context) error {
	defer func() { <-ctx.Done() }()
	if !process.Supported || until(ctx, func() bool { return s.store.Status().Open }) != nil {
		return nil
	}
	server := &process.Server{
		Store: s.store, Local: s.store, Status: s.store.Status, Admin: s.command, Build: readBuild().String(), Log: s.log,
	}
	if err := server.Listen(ctx, s.config.Storage.Dir, process.FrontSocket); err != nil && ctx.Err() == nil {
		s.log.Warn("commands such as 'remora forget' can't reach this Remora", "error", err)
	}
	return nil
}

// Names of commands.
const (
	forgetName = "forget"
	httpName   = "http" // a request to the control plane
)

// command executes a command. What was forgotten is reported to the caller and
// counted in the log. Requests are those of the holder of the admin token: who
// reaches the socket can read the store.
func (s *system) command(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error) {
	if name == httpName {
		plane := s.controlPlane()
		return nil, client.Answer(ctx, plane.local, plane.token, args, out)
	}
	if name != forgetName {
		return nil, fmt.Errorf("this Remora knows nothing of %q: %w", name, errors.ErrUnsupported)
	}
	var f forgetting
	if err := json.Unmarshal(args, &f); err != nil {
		return nil, errors.New("what to forget can't be read")
	}
	done, err := s.forget(ctx, f)
	s.log.Info("a command had memories forgotten", "scopes", done.Scopes, "memories", done.Memories, "turns", done.Turns, "whole", err == nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(done)
}
