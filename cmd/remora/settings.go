package main

import (
	"strings"

	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/storage"
)

// settings is the table of everything that can be set, in the order of the file and of the documentation. Rows of one
// section stand together.
func (c *config) settings() []setting {
	var all []setting
	for _, rows := range [][]setting{
		c.doorSettings(), c.identitySettings(), c.limitSettings(), c.recallSettings(), c.embeddingSettings(), c.weightSettings(),
		c.injectionSettings(), c.responsesSettings(), c.persistSettings(), c.auditSettings(), c.distillSettings(), c.redactSettings(), c.storageSettings(), c.timeoutSettings(), c.logSettings(),
	} {
		for _, s := range rows {
			s.doc += s.bounds()
			all = append(all, s)
		}
	}
	return all
}

func (c *config) doorSettings() []setting {
	return []setting{
		{key: "listen", at: text(&c.server.Listen), doc: "Address of the reverse door: what an agent's base URL points at. Off loopback, memory needs to know whose it is (see [identity](#identity))."},
		{key: "upstreams", at: upstreamList(&c.proxy.Upstreams), note: "Anthropic for `/v1/messages` and for requests with `Anthropic-Version`, OpenAI for the rest", doc: "The servers that requests are sent to, chosen by path, then by header. A list given here replaces the whole default list."},
		{key: "proxyFromEnvironment", at: boolean(&c.proxy.Transport.ProxyFromEnvironment), doc: "Reaches upstreams through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. Off by default: they may well name Remora's own forward door."},
		{key: "websocket", at: choice(&c.proxy.WebSocket, proxy.WebSocketFallback, proxy.WebSocketPass, proxy.WebSocketEnrich), doc: "What becomes of a WebSocket for the Responses API. `fallback`: known clients that go on over HTTP at once are answered 426, so that they get memory; others are tunnelled. `pass`: all are tunnelled, without memory. `enrich`: memory works in its frames. Other upgrades are always tunnelled."},
		{key: "clients", at: objectList[identity.Client]{&c.proxy.Clients, clientFields, ""}, doc: "Programs that talk to LLMs: by what they are recognised, where they put their ids, and which of their requests and texts are no human's. Beside those that Remora knows (proxy/identity/clients.json), or in the place of those with the same name; at most 64."},
		{key: "forward.listen", at: text(&c.forward.Listen), doc: "Address of the forward door, which accepts CONNECT as `HTTPS_PROXY` does. Empty = none. Off loopback it needs a token: it is not an open proxy."},
		{key: "forward.token", at: secret(&c.forward.Token), doc: "Asked of every client, as the password of Basic proxy authentication (any user name) or as a Bearer token. Empty = none is."},
		{key: "forward.intercept", at: names(&c.forward.Intercept), doc: "Hosts whose connections (port 443) are decrypted with certificates of Remora's own authority (`remora ca init`), so that they get memory. `host=upstream` sends a host's requests to the upstream of that name instead of the host itself. Without an authority all hosts are tunnelled."},
		{key: "forward.others", at: choice(&c.forward.Others, proxy.OthersTunnel, proxy.OthersRefuse), doc: "What becomes of all other hosts: `tunnel`, byte for byte, or `refuse`."},
		{key: "forward.caCert", at: text(&c.caCert), note: "`ca.pem` beside the configuration file: `$XDG_CONFIG_HOME/remora/ca.pem`, `~/.config/remora/ca.pem`, on Windows `%AppData%\\remora\\ca.pem`", doc: "Certificate of the authority, as `remora ca init` made it. Clients are told to trust it; its name constraints make it worth nothing for other hosts."},
		{key: "forward.caKey", at: text(&c.caKey), note: "`ca.key` beside the certificate", doc: "Its key, a file of mode 0600."},
		{key: "forward.allowPrivate", at: boolean(&c.forward.AllowPrivate), doc: "Lets tunnels lead to loopback, private and link-local addresses. What counts is the address that is dialled."},
		{key: "forward.maxTunnels", at: integer(&c.forward.MaxTunnels), most: 1 << 16, doc: "Tunnels open at once. Beyond, clients get a 503."},
		{key: "forward.dialTimeout", at: duration(&c.forward.DialTimeout), doc: "For the connection to a tunnel's target."},
		{key: "forward.drain", at: duration(&c.forward.Drain), doc: "How long tunnels may go on after SIGTERM. Idle ones end before (see `timeouts.shutdown`), the others then; neither is an error."},
	}
}

func (c *config) identitySettings() []setting {
	i := &c.proxy.Identity
	return []setting{
		{key: "identity.tenant", at: text(&i.Tenant), doc: "`auto`, `key`, or the name of the one tenant that all traffic belongs to. `key`: each upstream credential is a tenant, known by its HMAC. `auto`: one tenant on a loopback listener outside containers (one person's machine), else `key`."},
		{key: "identity.tenants", at: mapping{&i.Tenants}, doc: "Gives several credentials one memory, where tenants are by key: key hash (64 hex digits, which `remora tenant hash` prints of a key on its standard input) to tenant name."},
		{key: "identity.anonymous", at: choice(&i.Anonymous, identity.AnonymousAuto, identity.AnonymousKeyHolder, identity.AnonymousOff), doc: "Whose memory a request is about that names no user. `keyHolder`: the one who holds the key. `off`: nobody's, so it gets none. `auto`: `keyHolder` on a loopback listener outside containers, else the installation that a known client tells of, else `off`."},
		{key: "identity.userHeaders", at: names(&i.UserHeaders), doc: "Headers that name the user, tried in order after `X-Remora-User`."},
		{key: "identity.conversationHeaders", at: names(&i.ConversationHeaders), doc: "Headers that name the conversation, tried in order after `X-Remora-Conversation`."},
		{key: "identity.subAgents", at: choice(&i.SubAgents, identity.SubAgentsOn, identity.SubAgentsRead, identity.SubAgentsOff), doc: "What the sub-agents of known clients have of memory, where a request does not say it by `X-Remora-Memory`. `read`: memories, but nothing that they say is stored. `on`: like their agent. `off`: nothing new."},
		{key: "identity.dummyKeys", at: names(&i.DummyKeys), doc: "Credentials that say nothing about who sends them: where tenants are by key they get no memory off loopback. An empty credential always counts as one."},
	}
}

func (c *config) limitSettings() []setting {
	l := &c.proxy.Limits
	return []setting{
		{key: "limits.bodyBytes", at: size(&l.BodyBytes), from: 1 << 10, to: 1 << 30, share: 1.0 / 16, least: 1 << 20, doc: "Larger request bodies stream through without memory."},
		{key: "limits.bufferedBytes", at: size(&l.BufferedBytes), holds: "limits.bodyBytes", share: 1.0 / 16, least: 1 << 20, doc: "Request bodies held at once, all together. Beyond, requests stream through without memory."},
		{key: "limits.teeBytes", at: size(&l.TeeBytes), from: 1 << 10, to: 1 << 30, share: 1.0 / 32, least: 1 << 20, doc: "Larger answers are not remembered, and counted."},
		{key: "limits.teesBytes", at: size(&l.TeesBytes), holds: "limits.teeBytes", share: 1.0 / 16, least: 1 << 20, doc: "Copies of answers held at once, all together. Beyond, answers are not remembered."},
		{key: "limits.assemblies", at: integer(&l.Assemblies), most: 1 << 16, doc: "Finished answers that wait to be read for their turn. Beyond, turns are dropped and counted."},
		{key: "limits.headerBytes", at: size(&c.server.MaxHeaderBytes), most: 16 << 20, doc: "Request heads that are larger by more than 4 KiB are refused with 431."},
		{key: "limits.idleConnections", at: integer(&c.proxy.Transport.MaxIdlePerHost), most: 1 << 16, doc: "Connections kept open to one upstream. More are opened as needed, and closed after use."},
	}
}

func (c *config) recallSettings() []setting {
	r := &c.recall
	return []setting{
		{key: "recall.deadline", at: duration(&r.Deadline), doc: "What memory may add to a request. At the deadline the request goes out without it."},
		{key: "recall.firstDeadline", at: duration(&r.FirstDeadline), doc: "The same while the user's index or ledger is not in memory yet."},
		{key: "recall.topK", at: integer(&r.TopK), from: 1, to: recall.MaxTopK, doc: "Memories in one block, at most (1 to 100)."},
		{key: "recall.budgetTokens", at: integer(&r.BudgetTokens), doc: "Tokens of memories in one block, at most. Two bytes count as one token, which no common tokenizer exceeds on running text; English takes about half of that. Where memories cost more together, long ones are shown in part."},
		{key: "recall.gate", at: number(&r.Gate), to: 1, doc: "Relevance, 0 to 1, that the best candidate must reach for anything to be inserted. Most messages need no memory."},
		{key: "recall.scopes", at: names[recall.SearchScope](&r.Scopes), doc: "Where memories may come from: `current_chat`, `resources`, `all_user_memory`."},
		{key: "recall.maxBytes", at: size(&r.MaxBytes), holds: "recall.maxScopeBytes", share: 1.0 / 16, least: 1 << 20, doc: "Indexes in memory, all users together. Beyond, the least recently used one is dropped, and loaded again when it is asked for."},
		{key: "recall.maxScopeBytes", at: size(&r.MaxScopeBytes), share: 1.0 / 32, least: 1 << 20, doc: "One user's index. Beyond, the oldest memories are left out and counted."},
		{key: "recall.maxLoads", at: integer(&r.MaxLoads), most: 1024, doc: "Indexes that load at the same time; more wait."},
		{key: "recall.loadTimeout", at: duration(&r.LoadTimeout), doc: "Bounds the load of one index."},
		{key: "recall.snapshotAfter", at: duration(&r.SnapshotAfter), doc: "How long a changed index must be left alone before its snapshot is written, which makes its next load fast. `0s` keeps none."},
		{key: "recall.maxTerms", at: integer(&r.MaxTerms), from: 1, to: 256, doc: "Terms of a query; the rarest stay."},
		{key: "recall.borrowTerms", at: integer(&r.BorrowTerms), doc: "A message with fewer terms borrows those of the user's message before it."},
		{key: "recall.borrowWeight", at: number(&r.BorrowWeight), to: 1, doc: "Weight of borrowed terms, 0 to 1."},
	}
}

func (c *config) embeddingSettings() []setting {
	e, v := &c.embeddings, &c.recall.Vectors
	return []setting{
		{key: "recall.embeddings.url", at: text(&e.URL), doc: "Server of OpenAI-compatible embeddings (OpenAI, Ollama, TEI), e.g. `http://localhost:11434`; `/v1/embeddings` is added. Empty = none. Redacted memories and redacted queries are sent there."},
		{key: "recall.embeddings.key", at: secret(&e.Key), doc: "Sent to it as a bearer token. Empty = none."},
		{key: "recall.embeddings.model", at: text(&e.Model), doc: "The model's name there. After a change all memories are embedded anew, in the background."},
		{key: "recall.embeddings.dimensions", at: integer(&e.Dimensions), to: embed.MaxDimensions, doc: "Asked of the server and checked. 0 = the model's own, and the first answer sets what later ones are checked against."},
		{key: "recall.embeddings.encoding", at: choice(&e.Encoding, embed.EncodingFloat, embed.EncodingBase64), doc: "How vectors are asked for. `base64` is a quarter of the bytes, where the server knows it."},
		{key: "recall.embeddings.queryPrefix", at: text(&e.QueryPrefix), doc: "Stands before every query, for models that were trained with one (\"query: \")."},
		{key: "recall.embeddings.documentPrefix", at: text(&e.DocumentPrefix), doc: "Stands before every memory."},
		{key: "recall.embeddings.weight", at: number(&v.Weight), to: 10, doc: "What the best likeness adds to a score, as a share of the query's weight (0 to 10)."},
		{key: "recall.embeddings.gate", at: number(&v.Gate), to: 1000, doc: "How far a memory's likeness must stand out from the user's others, in standard deviations, for memories to be inserted that words alone would not bring. 0 = words alone decide."},
		{key: "recall.embeddings.batchTexts", at: integer(&e.BatchTexts), from: 1, to: 512, doc: "Memories in one request (1 to 512)."},
		{key: "recall.embeddings.concurrency", at: integer(&e.Concurrency), from: 1, to: 64, doc: "Such requests at the same time."},
		{key: "recall.embeddings.queryTimeout", at: duration(&e.QueryTimeout), doc: "For a query's request. Recall waits no longer than its own deadline; what comes later serves the next time the same is asked."},
		{key: "recall.embeddings.timeout", at: duration(&e.Timeout), doc: "For a request with memories."},
		{key: "recall.embeddings.retries", at: integer(&e.Retries), to: 10, doc: "More attempts at a request with memories, ever later, before it is left for a while."},
		{key: "recall.embeddings.cacheQueries", at: integer(&e.CacheQueries), doc: "Vectors of queries that are kept. Beyond, the least recently used goes."},
		{key: "recall.embeddings.proxyFromEnvironment", at: boolean(&e.ProxyFromEnvironment), doc: "Reaches the server through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."},
	}
}

// weightSettings are the parts of a score; package recall has the formula.
func (c *config) weightSettings() []setting {
	var list []setting
	for _, w := range c.recall.Weights.List() {
		list = append(list, setting{key: "recall.weights." + w.Key, at: number(w.Value), to: weightLimit(w.Doc), doc: w.Doc})
	}
	return list
}

// weightLimit is the bound of a weight: what its words tell, or 100.
func weightLimit(doc string) int64 {
	if strings.Contains(doc, "0 to 1") {
		return 1
	}
	return 100
}

func (c *config) injectionSettings() []setting {
	i, l := &c.proxy.Injection, &c.proxy.Ledger
	return []setting{
		{key: "injection.placement", at: choice(&i.Placement, proxy.PlacementBeforeUser, proxy.PlacementSystem), doc: "`beforeUser`: one message before the newest user message (in the Messages API a text block inside it), which keeps the upstream's prompt cache whole. `system`: at the end of the system prompt, which costs the cache whenever the block changes."},
		{key: "injection.ruleInSystem", at: boolean(&i.RuleInSystem), doc: "Puts the rule that memories are data into the system prompt instead of every block. It is in each request that may get memories, found or not, so that a conversation's beginning stays the same."},
		{key: "injection.countTokens", at: boolean(&i.CountTokens), doc: "Requests that only count tokens are given what the counted request would carry, so that counts are true. Nothing is searched or stored for them. Off: they pass as they came."},
		{key: "injection.ttl", at: duration(&l.TTL), doc: "How long after its last use an insertion is replayed."},
		{key: "injection.replayWindow", at: duration(&l.ReplayWindow), doc: "The same newest message within it is a retry and gets the same block; later, memory is searched anew."},
		{key: "injection.maxBlocks", at: integer(&l.MaxBlocks), doc: "Blocks in one conversation. At the bound nothing new is added; what stands is never taken out."},
		{key: "injection.maxTokens", at: integer(&l.MaxTokens), doc: "Tokens of all blocks in one conversation; the same holds. A block that would pass it holds fewer memories."},
		{key: "injection.maxBytes", at: size(&l.MaxBytes), share: 1.0 / 64, least: 1 << 20, doc: "What is remembered of insertions in memory, all users together. Beyond, the least recently used user's is dropped and loaded again when needed."},
	}
}

func (c *config) responsesSettings() []setting {
	return []setting{
		{key: "responses.placement", at: choice(&c.proxy.Injection.Responses, proxy.PlacementItem, proxy.PlacementInstructions), doc: "`item`: one input item before the newest user item; with `previous_response_id` the upstream keeps it with the conversation, beyond the reach of what is erased here, and with a server-side `conversation` nothing is inserted for that reason. `instructions`: at the end of `instructions`, which the upstream does not keep, but which costs its prompt cache whenever the block changes."},
	}
}

func (c *config) persistSettings() []setting {
	p := &c.persist
	return []setting{
		{key: "persist.queueTurns", at: integer(&p.QueueTurns), doc: "Turns that are not memories yet. Beyond, turns are dropped and counted."},
		{key: "persist.queueBytes", at: size(&p.QueueBytes), share: 1.0 / 64, least: 1 << 20, doc: "Their texts; the same holds."},
		{key: "persist.turnsPerSecond", at: number(&p.TurnsPerSecond), doc: "Turns of one user, with a burst of one second. Beyond, they are dropped and counted. 0 = no limit."},
		{key: "persist.commitInterval", at: duration(&p.CommitInterval), doc: "A commit to the spool waits so long for more turns, at most."},
		{key: "persist.commitTurns", at: integer(&p.CommitTurns), from: 1, to: storage.MaxRecords, doc: "Turns of one commit to the spool (1 to 500)."},
		{key: "persist.batchInterval", at: duration(&p.BatchInterval), doc: "Spooled turns become memories after so long, at most."},
		{key: "persist.batchTurns", at: integer(&p.BatchTurns), from: 1, to: storage.MaxRecords, doc: "Or when there are so many."},
		{key: "persist.maxBatchTurns", at: integer(&p.MaxBatchTurns), to: storage.MaxRecords, doc: "Turns of one batch where there is a backlog (batchTurns to 500)."},
		{key: "persist.maxMessageBytes", at: size(&p.MaxMessageBytes), from: 1 << 10, to: 4 << 20, doc: "Longer messages are cut."},
		{key: "persist.retention", at: duration(&p.Retention), doc: "How long what was said is remembered. A change holds for what is said from then on."},
		{key: "persist.drainTimeout", at: duration(&p.DrainTimeout), doc: "How long storing goes on after SIGTERM. What is in the spool by then is stored at the next start."},
		{key: "persist.workers", at: integer(&p.Workers), most: 1024, doc: "Turns that are redacted beside the one that always is, where many wait. 0 = 2."},
		{key: "persist.maxQuarantined", at: integer(&p.MaxQuarantined), doc: "Turns that failed three times and are kept for inspection. Beyond, they are dropped and counted."},
	}
}

func (c *config) redactSettings() []setting {
	return []setting{
		{key: "redact.disable", at: names(&c.redact.Disable), doc: "Rules that are switched off, by id; [redaction.md](redaction.md) lists them. With none, all of them hold."},
		{key: "redact.rules", at: customRules(&c.redact.Rules), doc: "Rules of your own, up to 100. What they find is treated as a secret."},
		{key: "redact.keepOriginals", at: boolean(&c.persist.KeepOriginals), doc: "Keeps the originals of redacted personal data, sealed like the memory and under its user's key, so that their owner can edit and restore it. Off: they are gone for good. Those of secrets and of your own rules are never kept."},
		{key: "redact.phoneRegions", at: names(&c.redact.PhoneRegions), doc: "Countries (ISO 3166) whose national numbers are recognised without a word such as \"phone\" before them."},
	}
}

func (c *config) storageSettings() []setting {
	return []setting{
		{key: "storage.dir", at: text(&c.storage.Dir), note: "`$XDG_DATA_HOME/remora`: `~/.local/share/remora`, on macOS `~/Library/Application Support/remora`, on Windows `%LocalAppData%\\remora`", doc: "Directory that holds the memories, made with mode 0700."},
		{key: "storage.keyFile", at: text(&c.storage.KeyFile), note: "`$XDG_CONFIG_HOME/remora/store.key`: `~/.config/remora/store.key`, on Windows `%AppData%\\remora\\store.key`; beside it a file of its own for a store in another directory than the default one; in a container none", doc: "The key that seals the memories, as hex or base64. Generated with mode 0600 for a new store, never where data exists, and in a file that is named here only if its directory is there (see [keys](storage.md#keys)). Keep it outside the directory above, and keep a copy: without it the memories can't be read."},
		{key: "storage.key", at: secret(&c.storageKey), doc: "The key itself, in place of a key file."},
		{key: "storage.reapInterval", at: duration(&c.reapEvery), doc: "How often what has expired is removed from the disk. It is no longer recalled from the moment it expires. `0s` = never."},
		{key: "storage.minFreeBytes", at: size(&c.storage.MinFreeBytes), doc: "With less free space than this nothing is stored; with less than a quarter of it the store is closed until there is space again. Traffic goes on."},
		{key: "storage.reserveBytes", at: size(&c.store.reserveBytes), doc: "Size of a file that is given up when the disk is full, so that the store can be closed in good order. 0 = none."},
		{key: "storage.isolation", at: choice(&c.store.isolation, isolationProcess, isolationInline), doc: "`process`: the store lives in a process of its own, which may crash while the traffic goes on. `inline`: in the proxy's process; always so on Windows."},
		{key: "storage.setAside", at: boolean(&c.store.setAside), doc: "A store that proves damaged three times in a row is renamed, never deleted, and a new one made, loudly (see [the store's process](storage-process.md)). Off: it stays, and there is no memory until a person has mended it."},
		{key: "storage.hangTimeout", at: duration(&c.store.process.Hang), doc: "A store's process that is silent for longer is killed and started again. Long before that, nothing waits for it."},
		{key: "storage.memoryBytes", at: size(&c.store.memoryBytes), share: 3.0 / 8, least: 32 << 20, doc: "What the store's process tries to keep its memory below, beside the files that it maps; 32 MiB at least. Below 96 MiB it merges in small pieces, which takes more processor time, and of one turn no more than 160 KiB are kept (else 768 KiB)."},
		{key: "storage.nice", at: integer(&c.store.process.Nice), to: 19, doc: "By how much the store's process yields to others, 0 to 19, so that its bursts don't delay requests. Not on Windows."},
	}
}

func (c *config) timeoutSettings() []setting {
	s, t := &c.server, &c.proxy.Transport
	return []setting{
		{key: "timeouts.shutdown", at: duration(&s.Drain), doc: "How long requests and streams in flight may go on after SIGTERM. What is left then is cut, and the exit code 1. A WebSocket or other upgraded connection in which nothing was said for 15 s ends before. Where the client said the last thing, which may be a question or a sign of life, it ends after a minute, or a second before this time is over, and is not counted as cut. A WebSocket's client is told so (1001)."},
		{key: "timeouts.header", at: duration(&s.HeaderTimeout), doc: "A client that takes longer to send its request's head is cut off."},
		{key: "timeouts.idle", at: duration(&s.IdleTimeout), doc: "How long a client's connection is kept open between requests."},
		{key: "timeouts.readIdle", at: duration(&c.proxy.Streams.ReadIdle), doc: "A request whose body sends nothing for so long is ended; so is, with `websocket: enrich`, a socket in the midst of a message."},
		{key: "timeouts.writeIdle", at: duration(&c.proxy.Streams.WriteIdle), doc: "An answer whose client takes nothing for so long is ended, and an HTTP/2 connection that takes nothing at all."},
		{key: "timeouts.dial", at: duration(&t.DialTimeout), doc: "For a connection to an upstream."},
		{key: "timeouts.tls", at: duration(&t.TLSTimeout), doc: "For the TLS handshake with an upstream."},
		{key: "timeouts.responseHeader", at: duration(&t.ResponseHeaderTimeout), doc: "From the sent request to the head of the answer; a model may think for long. `0s` = no bound. Bodies and streams have no time limit."},
		{key: "timeouts.upstreamIdle", at: duration(&t.IdleTimeout), doc: "How long an unused TLS connection to an upstream is kept."},
		{key: "timeouts.plainUpstreamIdle", at: duration(&t.PlainIdleTimeout), doc: "The same for plain HTTP, where a new connection costs next to nothing and many servers of local models hang up after 5 s."},
	}
}

func (c *config) logSettings() []setting {
	return []setting{
		{key: "log.level", at: choice(&c.log.level, levelDebug, levelInfo, levelWarn, levelError), doc: "What is logged, to the standard error. Content, keys and header values never are, at any level."},
		{key: "log.format", at: choice(&c.log.format, formatAuto, formatText, formatJSON), doc: "`auto`: text on a terminal, JSON elsewhere."},
	}
}

// renames tells where a person sets what a package calls by another name.
var renames = map[string]string{
	"recallDeadline":                  "recall.deadline",
	"firstDeadline":                   "recall.firstDeadline",
	"injection.responses":             "responses.placement",
	"ledger.ttl":                      "injection.ttl",
	"ledger.replayWindow":             "injection.replayWindow",
	"ledger.maxBlocks":                "injection.maxBlocks",
	"ledger.maxTokens":                "injection.maxTokens",
	"ledger.maxBytes":                 "injection.maxBytes",
	"streams.readIdle":                "timeouts.readIdle",
	"streams.writeIdle":               "timeouts.writeIdle",
	"transport.dialTimeout":           "timeouts.dial",
	"transport.tlsTimeout":            "timeouts.tls",
	"transport.responseHeaderTimeout": "timeouts.responseHeader",
	"transport.idleTimeout":           "timeouts.upstreamIdle",
	"transport.plainIdleTimeout":      "timeouts.plainUpstreamIdle",
	"transport.proxyFromEnvironment":  "proxyFromEnvironment",
	"transport.maxIdlePerHost":        "limits.idleConnections",
	"server.listen":                   "listen",
	"server.headerTimeout":            "timeouts.header",
	"server.idleTimeout":              "timeouts.idle",
	"server.drain":                    "timeouts.shutdown",
	"server.maxHeaderBytes":           "limits.headerBytes",
	"storage.hang":                    "storage.hangTimeout",
}
