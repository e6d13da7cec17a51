package recall

// Names of the span and its attributes. None carries content.
const (
	scopeName = "github.com/remora-proxy/remora/recall"

	spanSearch = "search_memory"

	attrOperation  = "gen_ai.operation.name"
	attrConsidered = "remora.recall.considered"
	attrGated      = "remora.recall.gated"
	attrReturned   = "gen_ai.memory.result.count"
	attrTerms      = "remora.recall.terms"
	attrLoaded     = "remora.recall.loaded"
	attrVectors    = "remora.recall.vectors"
	attrIndexed    = "remora.recall.indexed"
)
