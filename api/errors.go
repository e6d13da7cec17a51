package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Errors of the verbs, besides storage.ErrUnavailable and those of persist.
// Test with errors.Is.
var (
	// ErrUnauthorized: the caller has no valid key.
	ErrUnauthorized = errors.New("a valid key is required")
	// ErrForbidden: the verb is for the holder of the admin token.
	ErrForbidden = errors.New("this is for the holder of the admin token")
	// ErrNotFound: there is no such thing, or it is not the caller's.
	ErrNotFound = storage.ErrNotFound
	// ErrGone: it was there, and can't be brought back.
	ErrGone = errors.New("it can't be brought back any more")
	// ErrBusy: too many of these run already.
	ErrBusy = errors.New("too many of these run at the same time")
	// ErrOff: the feature is switched off by a setting.
	ErrOff = errors.New("switched off by a setting")
)

// FieldError is a field of a request that can't be used. It wraps
// storage.ErrInvalid and never quotes the value.
type FieldError struct {
	Field string // as the caller wrote it, with its path
	Why   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Why }

// Unwrap makes it a storage.ErrInvalid.
func (e *FieldError) Unwrap() error { return storage.ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// Kind names what an error means, as docs/problems.md lists it, and returns the
// HTTP status for it.
func Kind(err error) (kind string, status int) {
	switch {
	case errors.Is(err, ErrUnauthorized):
		return "unauthorized", 401
	case errors.Is(err, ErrForbidden):
		return "forbidden", 403
	case errors.Is(err, storage.ErrNotFound):
		return "not-found", 404
	case errors.Is(err, ErrGone):
		return "gone", 410
	case errors.Is(err, persist.ErrChanged):
		return "changed", 412
	case errors.Is(err, persist.ErrSecret):
		return "secret", 422
	case errors.Is(err, persist.ErrNoText):
		return "no-text", 422
	case errors.Is(err, persist.ErrRateLimited), errors.Is(err, ErrBusy), errors.Is(err, storage.ErrTooManyUsers):
		return "too-many", 429
	case errors.Is(err, persist.ErrFull):
		return "queue-full", 503
	case errors.Is(err, ErrTooLarge):
		return "too-large", 413
	case errors.Is(err, ErrUnsupportedMedia):
		return "unsupported-media", 415
	case errors.Is(err, ErrOff), errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, storage.ErrUnavailable):
		return "not-implemented", 501
	case errors.Is(err, storage.ErrInvalid):
		return "invalid", 422
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, persist.ErrClosed), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "unavailable", 503
	}
	return "internal", 500
}

// Detail returns what may be said of an error to the caller: texts of Remora's
// own, which name a field at most.
func Detail(err error) string {
	if field, ok := errors.AsType[*FieldError](err); ok {
		return field.Error()
	}
	kind, _ := Kind(err)
	switch kind {
	case "not-found":
		return "there is no such thing, or it is not yours"
	case "unavailable":
		return "the store can't serve now; try again"
	case "invalid":
		return "the request breaks a limit"
	case "internal":
		return "an internal error, which is in Remora's log"
	case "too-many":
		return "too many; try again later"
	case "secret":
		return "the text holds a secret, which is kept nowhere"
	case "no-text":
		return "nothing is left of the text once it is redacted"
	case "queue-full":
		return "too many turns wait to be stored; try again later"
	}
	for _, known := range [...]error{
		ErrUnauthorized, ErrForbidden, ErrGone, ErrOff, persist.ErrChanged, ErrTooLarge, ErrUnsupportedMedia,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "this store can't do that"
}
