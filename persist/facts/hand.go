package facts

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// What people decide about facts: which stay, which of two holds, and which say
// the same.

// Pinned reports whether somebody has pinned a memory: see storage.PinnedTag.
func Pinned(m *storage.Memory) bool { return slices.Contains(m.Tags, storage.PinnedTag) }

// linkTags are the prefixes of the tags that a preference changes.
var linkTags = []string{tagSupersedes, tagContradicts, tagLast}

func isLink(tag string) bool {
	return slices.ContainsFunc(linkTags, func(prefix string) bool { return strings.HasPrefix(tag, prefix) })
}

// Prefer makes a superseded fact current again. holder is the fact that holds
// in its place, nil if none does; it is superseded by the older one from then
// on. The older one counts as said at that time, so that a statement from
// before, audited later, does not take its place again.
func (c *Changes) Prefer(older, holder *storage.Memory, now storage.Time) {
	m := *older
	m.ValidTo, m.SupersededBy = 0, ""
	setLastSaid(&m, max(LastSaid(&m), now))
	if m.ExpiresAt != 0 {
		keep := c.cfg.Retention
		if m.Priority >= c.cfg.KeepLonger {
			keep = c.cfg.LongRetention
		}
		m.ExpiresAt = max(m.ExpiresAt, now+storage.Time(keep.Milliseconds()))
	}
	if holder != nil {
		link := tagSupersedes
		if Contradicts(holder, older) {
			link = tagContradicts
		}
		h := *holder
		h.Tags = slices.DeleteFunc(slices.Clone(h.Tags), func(tag string) bool {
			return tag == tagSupersedes+m.ID || tag == tagContradicts+m.ID
		})
		h.ValidTo, h.SupersededBy = max(now, h.ValidFrom), m.ID
		m.Tags = append(m.Tags, link+h.ID)
		c.relink(h)
	}
	c.relink(m)
}

// Relink gives a fact the validity that it had before a preference, or before
// one was taken back. The rest stays as it is.
func (c *Changes) Relink(m, before *storage.Memory, now storage.Time) {
	out := *m
	out.ValidTo, out.SupersededBy = before.ValidTo, before.SupersededBy
	if before.ExpiresAt > now && !Pinned(m) {
		out.ExpiresAt = before.ExpiresAt
	}
	out.Tags = slices.DeleteFunc(slices.Clone(m.Tags), isLink)
	for _, tag := range before.Tags {
		if isLink(tag) {
			out.Tags = append(out.Tags, tag)
		}
	}
	c.relink(out)
}

func (c *Changes) relink(m storage.Memory) {
	c.put(m)
	c.turns[m.Provenance.Turn] = true
}

// Absorb makes a fact stand for others, too, which say the same or a part of
// it: their repetitions do not count again, it was last said when any of them
// was, and it lives as long as any of them.
func Absorb(m *storage.Memory, others []storage.Memory) {
	last := LastSaid(m)
	for i := range others {
		o := &others[i]
		last = max(last, LastSaid(o))
		if m.ExpiresAt != 0 && (o.ExpiresAt == 0 || o.ExpiresAt > m.ExpiresAt) {
			m.ExpiresAt = o.ExpiresAt
		}
		m.Confidence += (1 - m.Confidence) * confidenceGain
	}
	setLastSaid(m, last)
	for i := range others {
		if mark := tagSaid + statementMark(others[i].ID); !slices.Contains(m.Tags, mark) {
			m.Tags = append(m.Tags, mark)
		}
	}
	trimSaid(m)
}

// trimSaid drops the oldest marks of repetitions beyond maxSaid.
func trimSaid(m *storage.Memory) {
	said := func(tag string) bool { return strings.HasPrefix(tag, tagSaid) }
	for n := countFunc(m.Tags, said); n > maxSaid; n-- {
		i := slices.IndexFunc(m.Tags, said)
		m.Tags = slices.Delete(m.Tags, i, i+1)
	}
}
