package imports

import (
	"encoding/json"
	"math"
	"time"
)

// moment is a time as exports write it: RFC 3339, the same without a zone
// (taken as UTC), or seconds or milliseconds since 1970. Anything else is
// the zero time.
type moment struct{ time.Time }

// layouts are the forms of times as text. A fraction of a second is accepted
// after each.
var layouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
	time.DateOnly,
}

const (
	// firstMillisecond is where numbers are milliseconds: as seconds they would
	// be in the year 5138, as milliseconds they are in 1973.
	firstMillisecond = 1e11

	// lastSecond ends the year 9999. Later times can't be written again.
	lastSecond = 253402300799
)

// UnmarshalJSON never fails.
func (m *moment) UnmarshalJSON(b []byte) error {
	m.Time = time.Time{}
	var text string
	if json.Unmarshal(b, &text) == nil {
		m.Time = parseTime(text)
		return nil
	}
	var number float64
	if json.Unmarshal(b, &number) != nil || number <= 0 {
		return nil
	}
	if number >= firstMillisecond {
		number /= 1000
	}
	if seconds, fraction := math.Modf(number); seconds <= lastSecond {
		// A float64 has microseconds left, and no more.
		m.Time = time.Unix(int64(seconds), int64(math.Round(fraction*1e6))*1000).UTC()
	}
	return nil
}

// parseTime returns the zero time for what is no time.
func parseTime(text string) time.Time {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 {
			return t.UTC()
		}
	}
	return time.Time{}
}
