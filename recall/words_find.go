package recall

import "math/bits"

// finding finds the words and signs of an ASCII text, and what is known of them.
type finding struct {
	known  []knownLine
	seed   wordSeed
	text   string
	blocks []block            // its own, and an empty one
	salt   uint64             // of the hashes
	nth    int                // block that is read
	tail   [2 * tailSize]byte // the last of the text, with room to read behind them
	left   uint64             // where words and signs begin in it that are still to be found
	found  [foundAtOnce]foundWord
}

// tailSize is how many bytes findPlain reads at a time.
const tailSize = 16

// foundAtOnce is how many words and signs are looked up before something is made of the first. What is known of each is far away.
const foundAtOnce = 128

// foundWord is a word or a sign of a text.
type foundWord struct {
	from, end uint32
	meaning
}

// knownLine is a line of a cache, where four words or signs may stand that have come before. Which of those that share a line comes first
// can't be foretold, so all are looked at. A newer one takes the place of an older one.
type knownLine struct {
	hashes   [knownAside]uint64 // as word's; 0 = nothing is here
	meanings [knownAside]meaning
}

const knownAside = 4

func newFinding(seed wordSeed, words int) finding {
	return finding{seed: seed, known: make([]knownLine, words/knownAside)}
}

func (f *finding) line(hash uint64) *knownLine { return &f.known[hash&uint64(len(f.known)-1)] }

// meaningOf returns what is known of a word.
func (f *finding) meaningOf(hash uint64) meaning {
	line := f.line(hash)
	for i := range line.hashes {
		if line.hashes[i] == hash {
			return line.meanings[i]
		}
	}
	return meaning{}
}

// note remembers a word that was not there.
func (f *finding) note(hash uint64, m meaning) {
	line, at := f.line(hash), int(hash>>32)%knownAside
	for i := range line.hashes {
		if line.hashes[i] == 0 {
			at = i
			break
		}
	}
	line.hashes[at], line.meanings[at] = hash, m
}

// start begins a text, whose blocks have been read.
func (f *finding) start(text string, salt uint64) {
	f.text, f.salt = text, salt
	copy(f.tail[:], text[max(len(text)-tailSize, 0):])
	f.move(0)
}

// move goes to what begins at a place of the text.
func (f *finding) move(to int) {
	f.nth = to / blockSize
	b, before := &f.blocks[f.nth], uint64(0)
	if f.nth > 0 {
		before = f.blocks[f.nth-1].letters >> (blockSize - 1)
	}
	f.left = (b.letters&^(b.letters<<1|before) | b.signs) >> (to % blockSize) << (to % blockSize)
}

// next finds the next words and signs, none at the end. They are good until the next call.
func (f *finding) next() []foundWord {
	n := 0
	for {
		n = f.findMost(n)
		for f.left == 0 {
			if f.nth == len(f.blocks)-1 {
				return f.found[:n]
			}
			f.move((f.nth + 1) * blockSize)
		}
		if n == len(f.found) {
			return f.found[:n]
		}
		from := f.nth*blockSize + bits.TrailingZeros64(f.left)
		f.left &= f.left - 1
		end, hash := from, uint64(0)
		if asciiKinds[f.text[from]] == kindLetter {
			end, hash = f.seed.cutWord(f.text, from)
		} else {
			end += asciiWord(f.text[from:])
			hash = f.seed.of(f.text[from:end])
		}
		if end > from+1 {
			f.move(end)
		}
		if end-from <= maxWord {
			f.found[n] = foundWord{uint32(from), uint32(end), f.meaningOf(hash + f.salt)}
			n++
		}
	}
}
