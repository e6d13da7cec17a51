package persist

// reading is the space that audits read into, one after another: it is the auditor's own while it is inside the gate, and
// what it holds of a conversation goes with the audit.
type reading struct {
	window    map[string]int // words of all messages of the window
	said      counter        // of the fresh ones
	all       counter        // of the summary, and what was said since
	own       counter        // of a sentence
	sentences []string
	fresh     []windowMessage
	ids       map[string]bool // of what the turns say now
}

// reset lets go of what was read. The space is kept.
func (r *reading) reset() {
	for _, c := range [...]*counter{&r.said, &r.all, &r.own} {
		c.reset()
	}
	if r.window == nil || len(r.window) > maxSpace {
		r.window = make(map[string]int, summaryWords)
	}
	clear(r.window)
	r.sentences, r.fresh = emptied(r.sentences), emptied(r.fresh)
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

// of returns how often a word was counted. The list must be in its order still.
func (c *counter) of(word string) int {
	if i, ok := c.at[word]; ok {
		return c.list[i].Count
	}
	return 0
}
