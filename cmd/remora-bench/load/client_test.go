package load

import (
	"fmt"
	"testing"
	"time"
)

// Events are found however the stream is cut into reads, and those that came
// together are told from those that were sent together.
func TestEventMeter(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	event := func(sent time.Time) string { return fmt.Sprintf("data: {%s%d}\n\n", sentMark, sent.UnixNano()) }
	type read struct {
		at    time.Time
		bytes string
	}
	e10, e20, e21 := event(ms(10)), event(ms(20)), event(ms(21))
	for _, tc := range []struct {
		name           string
		reads          []read
		events, merged int
		longest        time.Duration
	}{
		{"one each", []read{{ms(11), e10}, {ms(23), e20}}, 2, 0, 3 * time.Millisecond},
		{"held back", []read{{ms(25), e10 + e20}}, 2, 1, 15 * time.Millisecond},
		{"a stall is one", []read{{ms(40), e10 + e20 + event(ms(30)) + event(ms(40))}}, 4, 1, 30 * time.Millisecond},
		{"sent together", []read{{ms(22), e20 + e21 + streamEnd}}, 2, 0, 2 * time.Millisecond},
		{"in two pieces of one read", []read{{ms(25), e10[:9]}, {ms(25), e10[9:] + e20}}, 2, 1, 15 * time.Millisecond},
		{"cut between its line ends", []read{{ms(12), e10[:len(e10)-1]}, {ms(21), "\n" + e20}}, 2, 1, 11 * time.Millisecond},
		{"byte by byte", func() (r []read) {
			for i, c := range []byte(e10 + e20) {
				r = append(r, read{ms(30 + i), string(c)})
			}
			return r
		}(), 2, 0, time.Duration(30+len(e10+e20)-1-20) * time.Millisecond},
		{"outside of the measured time", []read{{ms(200), event(ms(150))}}, 1, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := &eventMeter{gap: 10 * time.Millisecond, window: window{start, ms(100)}}
			m.begin()
			for _, r := range tc.reads {
				m.piece([]byte(r.bytes), r.at)
			}
			if m.events != tc.events || m.merged != tc.merged || m.delays.max != tc.longest {
				t.Errorf("events, merged, longest delay = %d, %d, %v, want %d, %d, %v",
					m.events, m.merged, m.delays.max, tc.events, tc.merged, tc.longest)
			}
		})
	}
}

func TestSentTime(t *testing.T) {
	for _, a := range apis() {
		script := newReplies(a).stream(3, 3)
		for i, c := range script.chunks {
			if got, ok := sentTime(c.raw); !ok || got != 0 {
				t.Errorf("%s, unstamped event %d: %d, %v", a.name, i, got, ok)
			}
			stampDigits(c.raw[script.sent[i]:], 1_700_000_000_123_456_789)
			if got, ok := sentTime(c.raw); !ok || got != 1_700_000_000_123_456_789 {
				t.Errorf("%s, event %d: sent at %d, %v", a.name, i, got, ok)
			}
		}
	}
	if _, ok := sentTime([]byte(streamEnd)); ok {
		t.Error("the end of a stream bears a time")
	}
}
