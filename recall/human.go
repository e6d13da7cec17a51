package recall

// HumanWords is what of a message a human typed: without the wrapper elements of agents, recalled blocks, long fenced
// code and quoted files. It may be empty: then there is nothing to recall for and nothing to remember.
func HumanWords(message string) string { return humanWords(message) }
