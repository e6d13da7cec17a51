package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/storage"
)

// Failure is a problem that the control plane answered. It wraps the error of
// package api, or of those below it, that the problem was made of.
type Failure struct{ problem.Problem }

// Error returns what is wrong, and what helps if that is known.
func (f *Failure) Error() string {
	what := f.Detail
	if what == "" {
		what = strings.ToLower(f.Title[:min(len(f.Title), 1)]) + f.Title[min(len(f.Title), 1):]
	}
	switch {
	case f.Kind() == "unauthorized":
		return "the control plane does not accept the token: " + what
	case f.Kind() == "invalid" && (f.Field == "user" || f.Field == "tenant"):
		return what + "; --" + f.Field + " names it, as remora list --users shows it"
	}
	return what
}

// Unwrap returns the error that the problem was made of, nil if it is of none.
func (f *Failure) Unwrap() error {
	switch f.Kind() {
	case "unauthorized":
		return api.ErrUnauthorized
	case "forbidden":
		return api.ErrForbidden
	case "not-found":
		return api.ErrNotFound
	case "gone":
		return api.ErrGone
	case "changed":
		return persist.ErrChanged
	case "secret":
		return persist.ErrSecret
	case "no-text":
		return persist.ErrNoText
	case "too-many":
		return api.ErrBusy
	case "queue-full":
		return persist.ErrFull
	case "too-large":
		return api.ErrTooLarge
	case "unsupported-media":
		return api.ErrUnsupportedMedia
	case "not-implemented":
		return api.ErrOff
	case "unavailable":
		return storage.ErrUnavailable
	case "invalid":
		return &api.FieldError{Field: f.Field, Why: strings.TrimPrefix(f.Detail, f.Field+": ")}
	}
	return nil
}

// maxProblem bounds a problem that is read, in bytes.
const maxProblem = 64 << 10

// failureOf returns the error of an answer.
func failureOf(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	f := &Failure{}
	if json.Unmarshal(body, &f.Problem) == nil && f.Type != "" && f.Title != "" {
		f.Detail, f.Title = OneLine(f.Detail), OneLine(f.Title)
		return f
	}
	if res.StatusCode/100 == 3 {
		return fmt.Errorf("the server answered %d: it sends to another address, which is not followed", res.StatusCode)
	}
	return fmt.Errorf("the server answered %d: is this the control plane of a Remora?", res.StatusCode)
}

// named adds what was not found to the error.
func named(err error, what string) error {
	if errors.Is(err, api.ErrNotFound) {
		return &notFoundError{what}
	}
	return err
}

// notFoundError is an api.ErrNotFound that names what was not found.
type notFoundError struct{ what string }

func (e *notFoundError) Error() string { return "not found: " + OneLine(e.what) }

// Unwrap returns api.ErrNotFound.
func (e *notFoundError) Unwrap() error { return api.ErrNotFound }
