package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Names of the spans, which are those of the operations in the GenAI semantic
// conventions. The name of a chat also has the model.
const (
	SpanChat   = "chat"
	SpanSearch = "search_memory"
	SpanUpsert = "upsert_memory"
)

// Attributes that only spans have. Those with gen_ai are from the GenAI
// semantic conventions. None holds content.
const (
	AttrResponseModel = attribute.Key("gen_ai.response.model")
	AttrResponseID    = attribute.Key("gen_ai.response.id")
	AttrFinishReasons = attribute.Key("gen_ai.response.finish_reasons")
	AttrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	AttrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	AttrCachedTokens  = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	AttrWrittenTokens = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	AttrServerAddress = attribute.Key("server.address")
	AttrServerPort    = attribute.Key("server.port")
	AttrHTTPStatus    = attribute.Key("http.response.status_code")
	AttrMemories      = attribute.Key("remora.memories")

	AttrRecords    = attribute.Key("gen_ai.memory.record.count")
	AttrLoaded     = attribute.Key("remora.recall.loaded")
	AttrIndexed    = attribute.Key("remora.recall.indexed")
	AttrTerms      = attribute.Key("remora.recall.terms")
	AttrConsidered = attribute.Key("remora.recall.considered")
	AttrGated      = attribute.Key("remora.recall.gated")
	AttrVectors    = attribute.Key("remora.recall.vectors")
	AttrTurns      = attribute.Key("remora.turns")
	AttrAdded      = attribute.Key("remora.added")
	AttrReplaced   = attribute.Key("remora.replaced")
	AttrUnchanged  = attribute.Key("remora.unchanged")
)

// Span is one kind of span.
type Span struct {
	Name       string
	More       string // what may follow the name, in the documentation
	Kind       trace.SpanKind
	Attributes []SpanAttribute
}

// SpanAttribute is an attribute of a span.
type SpanAttribute struct {
	Key     attribute.Key
	When    string // it is set; "" = always
	Meaning string
}

// When attributes are set that not all spans have.
const (
	ifFailed   = "it failed"
	ifDone     = "it did not fail"
	ifSent     = "sent, and over a WebSocket memory is not off"
	ifAnswered = "the answer names one"
	ifUsual    = "the answer has one of the usual form"
	ifReported = "the answer has it"
	ifAbove0   = "the answer has it, above 0"
	ifSearched = "the index was searched"
)

// Spans returns all kinds of spans, in the order of the documentation.
func Spans() []Span {
	return []Span{
		{SpanChat, " {model}", trace.SpanKindClient, []SpanAttribute{
			{AttrOperation, "", "`" + SpanChat + "`"},
			{AttrProvider, "", "the upstream's name in the configuration"},
			{AttrServerAddress, "", "the upstream's host"},
			{AttrServerPort, "", "its port"},
			{AttrModel, "the request names one", "as sent, of 256 bytes at most"},
			{AttrStatus, ifSent, "what became of memory, as in `X-Remora-Status`"},
			{AttrMemories, ifSent, "memories in the request, as in `X-Remora-Memories`"},
			{AttrHTTPStatus, "the upstream answered over HTTP", "status of the answer"},
			{AttrError, ifFailed, "its class, [as of metrics](#metrics)"},
			{AttrResponseModel, ifAnswered, "of 256 bytes at most"},
			{AttrResponseID, ifUsual, "of 256 bytes at most"},
			{AttrFinishReasons, ifUsual, "of choice 0, of 64 bytes at most"},
			{AttrInputTokens, ifReported, "as the upstream billed, all of it"},
			{AttrOutputTokens, ifReported, "as the upstream billed"},
			{AttrCachedTokens, ifAbove0, "of the input, read from the prompt cache"},
			{AttrWrittenTokens, ifAbove0, "of the input, written into the prompt cache"},
		}},
		{SpanSearch, "", trace.SpanKindInternal, []SpanAttribute{
			{AttrOperation, "", "`" + SpanSearch + "`"},
			{AttrLoaded, "", "whether the index was in memory"},
			{AttrIndexed, ifSearched, "memories in the index"},
			{AttrTerms, ifSearched, "terms of the query"},
			{AttrRecords, ifDone, "memories returned"},
			{AttrConsidered, ifDone, "candidates"},
			{AttrGated, ifDone, "of these, those below the gate"},
			{AttrVectors, "embeddings are on", "the part that they had: `used`, `late`, `failed` or `none`"},
			{AttrError, ifFailed, "`timeout`, `unavailable`, `canceled` or `failed`"},
		}},
		{SpanUpsert, "", trace.SpanKindInternal, []SpanAttribute{
			{AttrOperation, "", "`" + SpanUpsert + "`"},
			{AttrTurns, "", "turns of one batch"},
			{AttrRecords, "the turns were compared with the store", "passages to be written"},
			{AttrAdded, ifDone, "turns that are new"},
			{AttrReplaced, ifDone, "turns that replaced another version, or were replaced in the batch"},
			{AttrUnchanged, ifDone, "turns that were stored already"},
			{AttrError, ifFailed, "`unavailable`, `canceled` or `failed`"},
		}},
	}
}
