package persist

// reading is the space that audits read into, one after another: it is the auditor's own while it is inside the gate, and
// what it holds of a conversation goes with the audit.
type reading struct {
	window    map[string]int // words of the messages of the window that are not fresh
	said      counter        // of the fresh ones, and then of the summary
	sentences []string
	fresh     []windowMessage
	own       []ownText // of fresh
	ranked    []rank
	seen      []int           // by the place of a word in said.list: the number of the last sentence that has it
	ids       map[string]bool // of what the turns say now
}

func newReading() *reading {
	r := &reading{}
	r.reset()
	return r
}

// take reads a fresh message.
func (r *reading) take(m *windowMessage) {
	own := ownTextOf(m.text)
	r.said.read(own.text)
	r.fresh, r.own = append(r.fresh, *m), append(r.own, own)
}

// reset lets go of what was read. The space is kept.
func (r *reading) reset() {
	r.said.reset()
	if r.window == nil || len(r.window) > maxSpace {
		r.window = make(map[string]int, summaryWords)
	}
	clear(r.window)
	r.sentences, r.fresh, r.own, r.ranked = emptied(r.sentences), emptied(r.fresh), emptied(r.own), emptied(r.ranked)
	clear(r.ids)
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
}

// maxSpace is how many elements a list, or a map, may have had for its space to be kept: a window has fewer words but for
// one of very long messages.
const maxSpace = 4096

func emptied[T any](list []T) []T {
	if cap(list) > maxSpace {
		return nil
	}
	clear(list)
	return list[:0]
}

// counter counts words that say something.
type counter struct {
	at   map[string]int // place in list
	list []Keyword      // in the order in which they were met
}

// reset empties c, and keeps its space.
func (c *counter) reset() {
	if len(c.list) > maxSpace {
		c.at = nil
	}
	clear(c.at)
	c.list = emptied(c.list)
	if c.at == nil {
		c.at = make(map[string]int, summaryWords)
	}
}

// countWords counts the words of text that say something.
func countWords(into map[string]int, text string) {
	for w := range eachWord(text) {
		if w.telling() {
			into[w.folded]++
		}
	}
}

// read counts the words of text.
func (c *counter) read(text string) {
	for w := range eachWord(text) {
		if w.telling() {
			c.add(w.folded, 1)
		}
	}
}

func (c *counter) add(word string, n int) {
	i, ok := c.at[word]
	if !ok {
		i = len(c.list)
		c.at[word] = i
		c.list = append(c.list, Keyword{Word: word})
	}
	c.list[i].Count += n
}
