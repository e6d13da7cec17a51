package recall

// knownWords is what an analyzer that reads for an index remembers of the words with one term or none, at hand without a look
// anywhere else: a table in which a newer word takes the place of an older one. Each line of a cache has four.
type knownWords []knownWord

type knownWord struct {
	hash   uint64 // as word's; 0 = no word is here
	number uint32 // of the term + 1, 0 = none
	traits traits
	hints  timeHints
}

const knownAside = 4

// find returns a word's place, -1 if it is not there.
func (k knownWords) find(hash uint64) int32 {
	line := int32(hash) & int32(len(k)-knownAside)
	for i := range int32(knownAside) {
		if at := line + (int32(hash>>32)+i)&(knownAside-1); k[at].hash == hash {
			return at
		}
	}
	return -1
}

// note remembers a word that was not there, of the index ix.
func (k knownWords) note(e *word, ix *index) {
	if len(e.terms) > 1 {
		return
	}
	w := knownWord{hash: e.hash, traits: e.traits, hints: e.hints}
	if len(e.terms) == 1 {
		w.number = e.numberIn(ix) + 1
	}
	line := int32(e.hash) & int32(len(k)-knownAside)
	place := line + int32(e.hash>>32)&(knownAside-1)
	for i := range int32(knownAside) {
		if at := line + (int32(e.hash>>32)+i)&(knownAside-1); k[at].hash == 0 {
			place = at
			break
		}
	}
	k[place] = w
}
