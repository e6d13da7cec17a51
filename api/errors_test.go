package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/storage"
)

// Every error has one kind, which docs/problems.md lists, a status and something
// to say that does not quote what was around it.
func TestKindsOfErrors(t *testing.T) {
	const canary = "canary-4711"
	for _, c := range []struct {
		err    error
		kind   string
		status int
	}{
		{ErrUnauthorized, "unauthorized", 401}, {ErrForbidden, "forbidden", 403}, {ErrNotFound, "not-found", 404}, {ErrGone, "gone", 410},
		{persist.ErrChanged, "changed", 412}, {ErrTooLarge, "too-large", 413}, {ErrUnsupportedMedia, "unsupported-media", 415},
		{invalid("text", "is empty"), "invalid", 422}, {storage.ErrInvalid, "invalid", 422}, {persist.ErrSecret, "secret", 422},
		{persist.ErrNoText, "no-text", 422}, {ErrExists, "invalid", 422}, {persist.ErrRateLimited, "too-many", 429}, {ErrBusy, "too-many", 429},
		{storage.ErrTooManyUsers, "too-many", 429}, {errors.New(canary), "internal", 500}, {storage.ErrDamaged, "internal", 500}, {ErrOff, "not-implemented", 501},
		{errors.ErrUnsupported, "not-implemented", 501}, {storage.ErrUnavailable, "unavailable", 503}, {persist.ErrClosed, "unavailable", 503},
		{context.Canceled, "unavailable", 503}, {context.DeadlineExceeded, "unavailable", 503}, {persist.ErrFull, "queue-full", 503},
	} {
		for _, err := range []error{c.err, fmt.Errorf("%s: %w", canary, c.err)} {
			kind, status := Kind(err)
			if kind != c.kind || status != c.status || !slices.Contains(problem.Kinds(), kind) {
				t.Errorf("%v: %s %d, want %s %d", err, kind, status, c.kind, c.status)
			}
			if detail := Detail(err); detail == "" || strings.Contains(detail, canary) {
				t.Errorf("%v: the detail is %q", err, detail)
			}
		}
	}
}

// Refusals name the field and never quote the value.
func TestFieldErrors(t *testing.T) {
	err := fmt.Errorf("add: %w", checkText("text", strings.Repeat("x", MaxText+1)))
	field, ok := errors.AsType[*FieldError](err)
	if !ok || field.Field != "text" || !errors.Is(err, storage.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if detail := Detail(err); detail != fmt.Sprintf("text: is longer than %d characters", MaxText) {
		t.Errorf("detail %q", detail)
	}
}
