package extract

// Trust of a stored text. An assistant repeats, guesses and quotes. Quarantined
// text is kept for review and never recalled.
const (
	TrustUser      = 1.0
	TrustAssistant = 0.5
	Quarantined    = 0.0
)

// Trust returns how far a text may be trusted. It is [Quarantined] for text
// that is shaped like an instruction to a model, and for text that gives a
// model standing orders without being the user's own words.
func Trust(user bool, text string) float64 {
	l, short := scan(text), text[:min(len(text), maxInstruct)]
	switch {
	case l.mayInstruct() && instructing(short), !user && (exfiltrates(text) || l.mayOrder() && ordering(short)),
		user && l.foreign && orders(collectForeign(text)):
		return Quarantined
	case user:
		return TrustUser
	}
	return TrustAssistant
}

// Orders reports whether a text gives a model standing orders: see [Trust].
func Orders(text string) bool { return orders(text) }

// PastedOrders reports whether what a user pasted into a message gives a model
// standing orders.
func PastedOrders(text string) bool { return orders(foreignText(text)) }
