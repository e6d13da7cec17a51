package api

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Limits of fields and answers. What exceeds one is a [FieldError].
const (
	MaxText       = persist.PassageRunes // characters of a fact or a passage
	MaxTags       = 32
	MaxTag        = 128  // bytes
	MaxQuery      = 4096 // bytes of a question
	MaxReason     = 512  // bytes of why something is changed
	MaxPage       = 500  // memories, receipts, users or entries in a page
	DefaultPage   = 50
	MaxTopK       = 100
	MaxIDs        = 500      // in one call
	MaxMessage    = 64 << 10 // bytes of an event's content
	MaxDocument   = 16 << 20 // bytes
	MaxEntry      = 64 << 10 // bytes of a keyed value
	MaxEntryKey   = 200      // bytes
	MaxNamespace  = 128      // bytes
	MaxEntries    = 10_000   // of one namespace
	MaxImport     = 1 << 30  // bytes of an import
	maxIdempotent = 128      // bytes of a key
)

var (
	// ErrTooLarge: a document or body exceeds its limit.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrUnsupportedMedia: a document of a type that can't be read.
	ErrUnsupportedMedia = errors.New("this media type can't be read")
)

func checkText(field, text string) error {
	switch {
	case text == "":
		return invalid(field, "is empty")
	case !utf8.ValidString(text):
		return invalid(field, "is not valid UTF-8")
	case len(text) > MaxText && utf8.RuneCountInString(text) > MaxText:
		return invalid(field, "is longer than %d characters", MaxText)
	}
	return nil
}

func checkTags(field string, tags []string) error {
	if len(tags) > MaxTags {
		return invalid(field, "has more than %d tags", MaxTags)
	}
	for i, tag := range tags {
		if tag == "" || len(tag) > MaxTag || !utf8.ValidString(tag) {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "must have 1 to %d bytes of UTF-8", MaxTag)
		}
	}
	return nil
}

func checkShare(field string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return invalid(field, "must be 0..1")
	}
	return nil
}

func checkLength(field, v string, limit int) error {
	if len(v) > limit || !utf8.ValidString(v) {
		return invalid(field, "must have at most %d bytes of UTF-8", limit)
	}
	return nil
}

func checkIDs(field string, ids []string) error {
	if len(ids) == 0 || len(ids) > MaxIDs {
		return invalid(field, "must have 1 to %d ids", MaxIDs)
	}
	for i, id := range ids {
		if id == "" || len(id) > storage.MaxID {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "must have 1 to %d bytes", storage.MaxID)
		}
	}
	return nil
}

// pageSize returns the size of a page that is asked for; 0 = the default.
func pageSize(n int) (int, error) {
	switch {
	case n == 0:
		return DefaultPage, nil
	case n < 0 || n > MaxPage:
		return 0, invalid("limit", "must be 1..%d", MaxPage)
	}
	return n, nil
}
