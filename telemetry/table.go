package telemetry

import "go.opentelemetry.io/otel/attribute"

// Names of the metrics. Those with gen_ai are from the GenAI semantic
// conventions, those with go and process from the conventions of runtimes.
const (
	OperationDuration = "gen_ai.client.operation.duration"
	FirstChunk        = "gen_ai.client.operation.time_to_first_chunk"
	TokenUsage        = "gen_ai.client.token.usage"
	RecallDuration    = "remora.recall.duration"

	Exchanges     = "remora.exchanges"
	Active        = "remora.exchanges.active"
	Waiting       = "remora.exchanges.waiting"
	ActiveLimit   = "remora.exchanges.limit"
	Failures      = "remora.failures"
	Retries       = "remora.upstream.retries"
	Repairs       = "remora.repairs"
	Panics        = "remora.panics"
	InputTokens   = "remora.input_tokens"
	CachedTokens  = "remora.input_tokens.cache_read"
	WrittenTokens = "remora.input_tokens.cache_creation"
	Searches      = "remora.recall.searches"
	Recalled      = "remora.recall.memories"
	Inserted      = "remora.recall.inserted"
	Vectors       = "remora.recall.vectors"

	TurnsAccepted   = "remora.turns.accepted"
	TurnsIndexed    = "remora.turns.indexed"
	TurnsReplaced   = "remora.turns.replaced"
	TurnsDuplicate  = "remora.turns.duplicate"
	TurnsRetried    = "remora.turns.retried"
	TurnsLost       = "remora.turns.lost"
	TurnsSkipped    = "remora.turns.skipped"
	SearchableAfter = "remora.turns.searchable.p95"
	AnswersWaiting  = "remora.answers.waiting"
	QueueTurns      = "remora.queue.turns"
	QueueSize       = "remora.queue.size"
	QueueLag        = "remora.queue.lag"
	Passages        = "remora.memories.passages"
	Facts           = "remora.memories.facts"
	Erased          = "remora.memories.erased"
	Audits          = "remora.audits"
	Rejections      = "remora.statements.rejected"
	Distillations   = "remora.distillations"

	StoreOpen      = "remora.store.open"
	StoreFree      = "remora.store.free"
	StoreSize      = "remora.store.size"
	StoreRestarts  = "remora.store.restarts"
	StoreDamaged   = "remora.store.damaged"
	StoreSetAside  = "remora.store.set_aside"
	StoreEphemeral = "remora.store.ephemeral"
	GatewayFailing = "remora.gateway.failing"
	LedgerSize     = "remora.ledger.size"
	LedgerUnsaved  = "remora.ledger.unsaved"
	LedgerDropped  = "remora.ledger.dropped"
	LedgerTrimmed  = "remora.ledger.trimmed"
	LedgerLate     = "remora.ledger.late"
	IndexSize      = "remora.index.size"
	IndexLimit     = "remora.index.limit"
	IndexUsers     = "remora.index.users"
	IndexLoads     = "remora.index.loads"
	IndexFailures  = "remora.index.failures"
	IndexEvicted   = "remora.index.evicted"
	ReceiptsLost   = "remora.receipts.dropped"
	BuildInfo      = "remora.build.info"
	Uptime         = "process.uptime"
	GoMemory       = "go.memory.used"
	GoMemoryLimit  = "go.memory.limit"
	GoMemoryGoal   = "go.memory.gc.goal"
	GoAllocated    = "go.memory.allocated"
	GoAllocations  = "go.memory.allocations"
	GoCycles       = "remora.gc.cycles"
	GoGoroutines   = "go.goroutines"
	GoProcessors   = "go.processor.limit"
	GoProcessorUse = "remora.cpu.time"
)

// Attributes of the metrics.
const (
	AttrOperation  = attribute.Key("gen_ai.operation.name")
	AttrProvider   = attribute.Key("gen_ai.provider.name")
	AttrModel      = attribute.Key("gen_ai.request.model")
	AttrTokenType  = attribute.Key("gen_ai.token.type")
	AttrError      = attribute.Key("error.type")
	AttrStatus     = attribute.Key("remora.status")
	AttrOutcome    = attribute.Key("remora.outcome")
	AttrReason     = attribute.Key("remora.reason")
	AttrVersion    = attribute.Key("service.version")
	AttrGoVersion  = attribute.Key("process.runtime.version")
	AttrMemoryType = attribute.Key("go.memory.type")
	AttrCPUState   = attribute.Key("remora.cpu.state")
)

// Upper bounds of buckets, in seconds and in tokens. Those of durations and
// tokens are what the GenAI conventions advise.
var (
	durations = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokens    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	moments   = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .03, .05, .1, .15, .25, .5, 1, 5}
)

// Table returns all metrics, in the order of the documentation.
func Table() []Row {
	exchange := []attribute.Key{AttrOperation, AttrProvider, AttrModel, AttrError}
	return append([]Row{
		{OperationDuration, Histogram, "s", exchange, "from a request's arrival until its answer has ended; of a failure also its class", durations},
		{FirstChunk, Histogram, "s", exchange[:3], "from a request's arrival until the first bytes of a streamed answer have gone to the client", durations},
		{TokenUsage, Histogram, "{token}", []attribute.Key{AttrOperation, AttrProvider, AttrModel, AttrTokenType}, "tokens of an answer as the upstream reported them, `input` (all of it) and `output`", tokens},
		{RecallDuration, Histogram, "s", []attribute.Key{AttrOutcome}, "how long a search for memories took; outcomes as for `" + Searches + "`", moments},

		{Exchanges, Counter, "{exchange}", []attribute.Key{AttrStatus}, "requests by what became of memory in them, as in `X-Remora-Status`", nil},
		{Active, Gauge, "{exchange}", nil, "requests in progress, WebSockets included as long as they are open", nil},
		{Waiting, Gauge, "{exchange}", nil, "requests that wait for one of these to end", nil},
		{ActiveLimit, Gauge, "{exchange}", nil, "how many may be in progress: `limits.exchanges`, or less where few files may be open", nil},
		{Failures, Counter, "{request}", []attribute.Key{AttrError}, "requests of any path that failed, by the upstream's status, 400 to 599, or else as `failed` in [the log](#the-log): a kind of [problem](problems.md) if Remora answered, or `panic`", nil},
		{Searches, Counter, "{search}", []attribute.Key{AttrOutcome}, "searches for memories: `found`, `empty`, `timeout` (past `recall.deadline` or `gateway.recallTimeout`) or `failed`", nil},
		{Recalled, Counter, "{memory}", nil, "memories that searches have found", nil},
		{Inserted, Counter, "By", nil, "blocks of memories inserted for new turns, without those repeated from earlier ones", nil},
		{Vectors, Counter, "{search}", []attribute.Key{AttrOutcome}, "searches by the part that embeddings had: `used`, `late` or `failed`", nil},
		{Retries, Counter, "{request}", nil, "requests that an upstream refused and that were sent again, without blocks or repaired", nil},
		{Repairs, Counter, "{conversation}", []attribute.Key{AttrOutcome}, "conversations that an upstream refused because something before its own answers had changed: `repaired`, or `failed`, and then the client got the refusal", nil},
		{Panics, Counter, "{panic}", nil, "defects that were caught; their requests passed through", nil},
		{InputTokens, Counter, "{token}", nil, "input tokens that upstreams reported, all of them", nil},
		{CachedTokens, Counter, "{token}", nil, "of these, read from the prompt cache (`gen_ai.usage.cache_read.input_tokens`)", nil},
		{WrittenTokens, Counter, "{token}", nil, "of these, written into the prompt cache (`gen_ai.usage.cache_creation.input_tokens`)", nil},
		{AnswersWaiting, Gauge, "{answer}", nil, "finished answers that wait to be read for their turn", nil},
	}, append(memoryRows(), stateRows()...)...)
}

// memoryRows are about what becomes of turns.
func memoryRows() []Row {
	return []Row{
		{TurnsAccepted, Counter, "{turn}", nil, "turns to be remembered, with those found in the spool at the start and those that wait to be sent to a gateway", nil},
		{TurnsIndexed, Counter, "{turn}", nil, "turns stored and searchable", nil},
		{TurnsReplaced, Counter, "{turn}", nil, "of these, those that replaced another version", nil},
		{TurnsDuplicate, Counter, "{turn}", nil, "turns that were stored already with the same texts", nil},
		{TurnsRetried, Counter, "{write}", nil, "writes to the store that failed and were tried again", nil},
		{TurnsLost, Counter, "{turn}", []attribute.Key{AttrReason}, "turns that should be remembered and are not; reasons as in [the log](#the-log)", nil},
		{TurnsSkipped, Counter, "{turn}", []attribute.Key{AttrReason}, "turns left out on purpose: `declined`, `erased`, `empty`, `redactedAll`, `invalid`, `stopped` (in the spool or lost with the process), `curated` (`memory.mode` is), `gateway` (nothing of it may be sent there), and `notFinal`: answers that end no turn, such as tool calls", nil},
		{SearchableAfter, Gauge, "s", nil, "95th percentile since the start: from a turn's arrival until it is searchable", nil},
		{QueueTurns, Gauge, "{turn}", nil, "turns that wait to be stored", nil},
		{QueueSize, Gauge, "By", nil, "texts of these turns", nil},
		{QueueLag, Gauge, "s", nil, "age of the oldest turn that is not searchable yet; 0 = there is none", nil},
		{Passages, Counter, "{memory}", nil, "passages written", nil},
		{Facts, Counter, "{memory}", []attribute.Key{AttrOutcome}, "statements worth saving: `saved`, `reinforced` (known already), `superseded` (of those known before), `quarantined`, `replaced` (with their turn), `evicted`", nil},
		{Erased, Counter, "{memory}", nil, "memories erased", nil},
		{Audits, Counter, "{audit}", []attribute.Key{AttrOutcome}, "conversations looked through for facts: `made`, `cut` (past the soft limit), `given_up`, `shed` (turns left out under load)", nil},
		{Rejections, Counter, "{statement}", []attribute.Key{AttrReason}, "sentences that became no fact, by [reason](persistence.md)", nil},
		{Distillations, Counter, "{request}", []attribute.Key{AttrOutcome}, "requests to the model that distills facts: `made`, `failed`", nil},
	}
}

// stateRows are about the state of the program.
func stateRows() []Row {
	return []Row{
		{StoreOpen, Gauge, "{store}", nil, "1 while the store is open, else 0; then traffic passes without memory", nil},
		{StoreFree, Gauge, "By", nil, "free on the store's file system; 0 = not measured yet", nil},
		{StoreSize, Gauge, "By", nil, "files of the store's directory, measured every 15 s at most; 0 = not measured yet", nil},
		{StoreRestarts, Counter, "{restart}", nil, "restarts of the store's process", nil},
		{StoreDamaged, Counter, "{file}", nil, "files and records found damaged", nil},
		{StoreSetAside, Gauge, "{store}", nil, "stores that were set aside because of damage and still exist", nil},
		{StoreEphemeral, Gauge, "{store}", nil, "1 if the memories are [known to be lost](operations.md#memories-that-do-not-last) with the pod, the container or the machine's memory, else 0", nil},
		{GatewayFailing, Gauge, "{gateway}", nil, "1 while searches of the [gateway](gateway.md#when-the-gateway-fails) with the memory fail, so that requests are not given memories; 0 if it answers, or there is none", nil},
		{LedgerSize, Gauge, "By", nil, "records of insertions in memory", nil},
		{LedgerUnsaved, Gauge, "By", nil, "records of insertions that wait to be stored", nil},
		{LedgerDropped, Counter, "{entry}", nil, "records of insertions that could not be stored or read", nil},
		{LedgerTrimmed, Counter, "{segment}", nil, "records of insertions deleted because `injection.maxStored` was reached", nil},
		{LedgerLate, Counter, "{answer}", nil, "answers that ended before what was inserted for them was stored", nil},
		{IndexSize, Gauge, "By", nil, "indexes in memory", nil},
		{IndexLimit, Gauge, "By", nil, "their limit, `recall.maxBytes`", nil},
		{IndexUsers, Gauge, "{user}", nil, "users whose index is in memory", nil},
		{IndexLoads, Counter, "{index}", nil, "indexes loaded", nil},
		{IndexFailures, Counter, "{index}", nil, "indexes that could not be loaded or rebuilt", nil},
		{IndexEvicted, Counter, "{index}", nil, "indexes dropped to keep the limit", nil},
		{ReceiptsLost, Counter, "{receipt}", nil, "receipts that could not be kept", nil},
		{BuildInfo, Gauge, "{build}", []attribute.Key{AttrVersion, AttrGoVersion}, "1; its attributes name the version", nil},
		{Uptime, Gauge, "s", nil, "since the start", nil},
		{GoMemory, Gauge, "By", []attribute.Key{AttrMemoryType}, "memory of the Go runtime, `stack` and `other`", nil},
		{GoMemoryLimit, Gauge, "By", nil, "the runtime's soft limit", nil},
		{GoMemoryGoal, Gauge, "By", nil, "size of the heap at which the collector runs", nil},
		{GoAllocated, Counter, "By", nil, "memory allocated by the program", nil},
		{GoAllocations, Counter, "{allocation}", nil, "allocations", nil},
		{GoCycles, Counter, "{cycle}", nil, "runs of the collector", nil},
		{GoGoroutines, Gauge, "{goroutine}", nil, "goroutines", nil},
		{GoProcessors, Gauge, "{thread}", nil, "threads that may run Go code at the same time", nil},
		{GoProcessorUse, Counter, "s", []attribute.Key{AttrCPUState}, "estimated CPU time of the runtime, `user`, `gc` and `scavenge`", nil},
	}
}
