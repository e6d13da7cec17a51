package dialect

// Binder is a dialect whose servers bind parts of an assistant message to all
// that stood before it: Claude's thinking, Gemini's thought signatures. A
// server refuses such a part once anything before it has changed, and every
// later request with it. What helps is to send the conversation without the
// part.
type Binder interface {
	Dialect
	// Binds reports whether the body may hold bound parts. It reads no JSON, so
	// it may be wrong for text that mentions them.
	Binds(body []byte) bool
	// BoundRefusal reads a refusal.
	BoundRefusal(status int, body []byte) BoundRefusal
	// Unbind returns what takes the bound parts out of the messages first to
	// last of req, and the index of the last message that had any, -1 if none
	// had.
	Unbind(req *Request, first, last int) (cuts []Insertion, through int)
	// StopThinking returns what makes the server think no more for this
	// request, nil if it does not think.
	StopThinking(req *Request) []Insertion
	// DropBound returns what asks the server to leave out what it does not
	// accept, and the header that the request then needs, nil if that can't be
	// asked.
	DropBound(req *Request) (ask []Insertion, header, value string)
}

// BoundRefusal is what a refusal says about bound parts. The zero value says
// nothing.
type BoundRefusal struct {
	// Changed is set if a bound part was refused because what stands before it
	// has changed.
	Changed bool
	// Message is the index of the first message with such a part, -1 if the
	// refusal does not say.
	Message int
	// Missing is set if a part that an open tool loop needs is not there.
	Missing bool
}
