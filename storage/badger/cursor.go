package badger

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// cursor is the last record of a page. The next page begins after it, whatever
// was written or deleted since. It is encoded as base64 of: tag 16 | time 8 |
// id. The tag is a keyed hash of the scan and the rest, so a cursor that is
// altered or used in another scan is refused.
type cursor struct {
	at storage.Time
	id string // or the key of a record
}

// cursorTag identifies a scan.
type cursorTag struct {
	namer
	scan hash16
}

func (n namer) scanTag(scope hash16, q storage.Query) cursorTag {
	kinds := make([]string, 0, len(q.Kinds)+2)
	for _, k := range q.Kinds {
		kinds = append(kinds, string(k))
	}
	slices.Sort(kinds)
	if q.Newest {
		kinds = append(kinds, "", "newest") // a kind is never empty
	}
	parts := append([]string{string(scope[:]), q.Conversation}, slices.Compact(kinds)...)
	return cursorTag{n, n.hash("scan", parts...)}
}

func (n namer) recordsTag(scope hash16, b storage.Bucket) cursorTag {
	return cursorTag{n, n.hash("records", string(scope[:]), string(b))}
}

func (n namer) allRecordsTag(b storage.Bucket) cursorTag {
	return cursorTag{n, n.hash("all records", string(b))}
}

func (c cursor) encode(tag cursorTag) string {
	body := string(appendTime(nil, c.at)) + c.id
	sum := tag.hash("cursor", string(tag.scan[:]), body)
	return base64.RawURLEncoding.EncodeToString(append(sum[:], body...))
}

var errCursor = fmt.Errorf("cursor: not from this scan: %w", storage.ErrInvalid)

// parseCursor returns nil for the empty cursor, and errCursor for one that
// encode did not return for this tag.
func parseCursor(text string, tag cursorTag) (*cursor, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < hashSize+8 {
		return nil, errCursor
	}
	c := &cursor{at: parseTime(b[hashSize:]), id: string(b[hashSize+8:])}
	if c.encode(tag) != text {
		return nil, errCursor
	}
	return c, nil
}
