package mem0

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/remora-proxy/remora/api"
)

// timeCondition selects memories by when they were said or changed. A day
// without a time is all of it.
func (s *selection) timeCondition(field, name string, value json.RawMessage) error {
	var operators map[string]json.RawMessage
	if json.Unmarshal(value, &operators) != nil || len(operators) == 0 {
		return invalid(field, "must be an object with gte, gt, lte or lt")
	}
	for _, op := range slices.Sorted(maps.Keys(operators)) {
		var test func(at, from, to time.Time) bool
		switch op {
		case "gte":
			test = func(at, from, _ time.Time) bool { return !at.Before(from) }
		case "gt":
			test = func(at, _, to time.Time) bool { return at.After(to) }
		case "lte":
			test = func(at, _, to time.Time) bool { return !at.After(to) }
		case "lt":
			test = func(at, from, _ time.Time) bool { return at.Before(from) }
		default:
			return invalid(field, "must be an object with gte, gt, lte or lt")
		}
		from, to, err := span(field+"."+op, operators[op])
		if err != nil {
			return err
		}
		s.tests = append(s.tests, func(m *api.Memory) bool {
			at, err := time.Parse(time.RFC3339, createdAt(m))
			if name == "updated_at" {
				at, err = time.Parse(time.RFC3339, m.UpdatedAt)
			}
			return err == nil && test(at, from, to)
		})
	}
	return nil
}

// dateLayouts are the forms of a time besides RFC 3339.
var dateLayouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}

// span reads a moment, or a day, which is the span from its first moment to its
// last.
func span(field string, raw json.RawMessage) (from, to time.Time, err error) {
	if at, ok := seconds(raw); ok {
		return at, at, nil
	}
	var v string
	if json.Unmarshal(raw, &v) != nil {
		return from, to, invalid(field, "must be a time")
	}
	if day, err := time.Parse(time.DateOnly, v); err == nil {
		return day, day.Add(24*time.Hour - time.Nanosecond), nil
	}
	for _, layout := range append([]string{time.RFC3339}, dateLayouts...) {
		if at, err := time.Parse(layout, v); err == nil {
			return at, at, nil
		}
	}
	return from, to, invalid(field, "must be a time as RFC 3339, or a day as YYYY-MM-DD")
}

// maxSeconds is the year 9999.
const maxSeconds = 253402300799

// seconds reads a number of seconds since 1970.
func seconds(raw json.RawMessage) (time.Time, bool) {
	var n float64
	if json.Unmarshal(bytes.Trim(raw, `"`), &n) != nil || !(n > 0 && n <= maxSeconds) {
		return time.Time{}, false
	}
	whole, part := math.Modf(n)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), true
}
