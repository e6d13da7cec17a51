package config

import (
	"slices"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/redact"
)

// settings returns the table of everything that can be set, in the order of the
// file and the documentation. Rows of one section follow one another.
func (c *Config) settings() []setting {
	return slices.Concat(
		c.listenerSettings(), c.identitySettings(), c.limitSettings(), c.recallSettings(), c.embeddingSettings(), c.injectionSettings(),
		c.policySettings(), c.backendSettings(), c.persistSettings(), c.distillSettings(), c.redactSettings(), c.storageSettings(), c.apiSettings(), c.healthSettings(), c.timeoutSettings(), c.logSettings(),
	)
}

func (c *Config) listenerSettings() []setting {
	return []setting{
		{key: "listen", at: text(&c.Server.Listen), doc: "Address of the reverse listener: what an agent's base URL points at. Off loopback, memory needs to know whose it is (see [identity](#identity))."},
		{key: "upstreams", at: objects[httpclient.UpstreamConfig]{&c.Proxy.Upstreams, upstreamFields, ", or REMORA_UPSTREAM for one upstream of every path"}, note: "Anthropic for `/v1/messages` and for requests with `Anthropic-Version`, Gemini for `/v1beta`, OpenAI for the rest", doc: "The servers that requests are sent to, chosen by path, then by header. A list given here replaces the whole default list."},
		{key: "proxyFromEnvironment", at: boolean(&c.Proxy.Transport.ProxyFromEnvironment), doc: "Reaches upstreams through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. Off by default because these may name Remora's own forward listener."},
		{key: "websocket", at: choice(&c.Proxy.WebSocket, proxy.WebSocketFallback, proxy.WebSocketPass, proxy.WebSocketEnrich), doc: "How WebSockets for the Responses API are handled. `enrich`: memory works in the frames. `fallback`: clients known to continue over HTTP are answered 426, so that they get memory there; others are tunnelled. `pass`: all are tunnelled, without memory. Other upgrades are always tunnelled."},
		{key: "clients", at: objects[identity.Client]{&c.Proxy.Clients, clientFields, ""}, doc: "Programs that call LLMs: how they are recognized, where they put their ids, and which of their requests and texts no person wrote. They add to the clients that Remora knows (proxy/identity/clients.json) and replace those of the same name; at most 64."},
		{key: "forward.listen", at: text(&c.Forward.Listen), doc: "Address of the forward listener, which accepts CONNECT as `HTTPS_PROXY` does. Empty = none. Off loopback it needs a token: it is not an open proxy."},
		{key: "forward.token", at: secret(&c.Forward.Token), doc: "Required of every client, as the password of Basic proxy authentication (any user name) or as a Bearer token. Empty = not required."},
		{key: "forward.intercept", at: names(&c.Forward.Intercept), doc: "Hosts whose connections (port 443) are decrypted with certificates of Remora's own authority (`remora ca init`), so that they get memory. `host=upstream` sends a host's requests to the upstream of that name instead of the host itself. Without an authority all hosts are tunnelled."},
		{key: "forward.others", at: choice(&c.Forward.Others, forward.OthersTunnel, forward.OthersRefuse), doc: "How all other hosts are handled: `tunnel`, byte for byte, or `refuse`."},
		{key: "forward.caCert", at: text(&c.CACert), note: "`ca.pem` next to the configuration file: `$XDG_CONFIG_HOME/remora/ca.pem`, `~/.config/remora/ca.pem`, on Windows `%AppData%\\remora\\ca.pem`", doc: "Certificate of the authority, made by `remora ca init`. Clients must trust it; its name constraints make it useless for other hosts."},
		{key: "forward.caKey", at: text(&c.CAKey), note: "`ca.key` next to the certificate", doc: "Private key of the authority, a file of mode 0600."},
		{key: "forward.allowPrivate", at: boolean(&c.Forward.AllowPrivate), doc: "Allows tunnels to loopback, private and link-local addresses. The address that is dialed counts, not its name."},
		{key: "forward.maxTunnels", at: integer(&c.Forward.MaxTunnels, 1, 1<<16), each: 512 << 10, doc: "Maximum of open tunnels. More clients are answered 503."},
	}
}

func (c *Config) identitySettings() []setting {
	i := &c.Proxy.Identity
	return []setting{
		{key: "identity.tenant", at: text(&i.Tenant), doc: "`auto`, `key`, or the name of the one tenant that all traffic belongs to. `key`: each upstream credential is a tenant, known by its HMAC. `auto`: one tenant on a loopback listener outside containers (one person's machine), else `key`."},
		{key: "identity.tenants", at: mapping{&i.Tenants}, doc: "Gives several credentials one memory where each credential is a tenant: from key hash (64 hex digits, printed by `remora tenant hash`) to tenant name."},
		{key: "identity.anonymous", at: choice(&i.Anonymous, identity.AnonymousAuto, identity.AnonymousKeyHolder, identity.AnonymousOff), doc: "Whose memory a request without a user gets. `keyHolder`: that of the holder of the key. `off`: none. `auto`: `keyHolder` on a loopback listener outside containers, else that of the installation that a known client names, else none."},
		{key: "identity.userHeaders", at: names(&i.UserHeaders), doc: "Headers that name the user, tried in order after `X-Remora-User`."},
		{key: "identity.conversationHeaders", at: names(&i.ConversationHeaders), doc: "Headers that name the conversation, tried in order after `X-Remora-Conversation`."},
		{key: "identity.subAgents", at: choice(&i.SubAgents, identity.SubAgentsOn, identity.SubAgentsRead, identity.SubAgentsOff), doc: "How the sub-agents of known clients use memory unless a request sets `X-Remora-Memory`. `read`: they get memories but nothing they say is stored. `on`: like their agent. `off`: they get nothing new."},
		{key: "identity.dummyKeys", at: names(&i.DummyKeys), credentials: true, doc: "Credentials that don't identify anyone, in addition to those that are known by their shape ([table](security.md#dummy-keys)). Only letters and digits count, in any case. Where each credential is a tenant they get no memory off loopback."},
	}
}

func (c *Config) limitSettings() []setting {
	l := &c.Proxy.Limits
	return []setting{
		{key: "limits.bodyBytes", at: size(&l.BodyBytes, 1<<10, 1<<30), share: 1.0 / 16, doc: "Larger request bodies stream through without memory."},
		{key: "limits.bufferedBytes", at: size(&l.BufferedBytes, 1<<10, maxBytes), atLeast: "limits.bodyBytes", share: 1.0 / 8, doc: "All request bodies in memory together, with what is kept of their messages. Beyond, requests stream through without memory. Reading a large body takes twice its size for a moment."},
		{key: "limits.teeBytes", at: size(&l.TeeBytes, 1<<10, 1<<30), share: 1.0 / 32, doc: "Larger answers are counted but not remembered."},
		{key: "limits.teesBytes", at: size(&l.TeesBytes, 1<<10, maxBytes), atLeast: "limits.teeBytes", share: 1.0 / 16, doc: "All copies of answers in memory together. Beyond, answers are not remembered."},
		{key: "limits.headerBytes", at: size(&c.Server.MaxHeaderBytes, 4<<10, 16<<20), each: 2 << 10, doc: "Larger request headers are refused with 431, with a tolerance of 4 KiB."},
		{key: "limits.exchanges", at: integer(&c.Exchanges, 1, 1<<20), each: 320 << 10, note: "`10000`, at most a quarter of the files that the process may open", doc: "Requests that are served at the same time, WebSockets included as long as they are open. Further ones wait for one of these to end. Twice as many connections are open: beyond, those that have been idle for longest are closed, and without an idle one new clients wait."},
		{key: "limits.idleConnections", at: integer(&c.Proxy.Transport.MaxIdlePerHost, 1, 1<<16), each: 1 << 20, doc: "Idle connections that are kept to one upstream. More are opened as needed, and closed after use."},
	}
}

func (c *Config) recallSettings() []setting {
	r := &c.Recall
	return []setting{
		{key: "recall.deadline", at: duration(&r.Deadline, time.Millisecond, maxDuration), doc: "How long memory may delay a request. At the deadline the request is sent without it."},
		{key: "recall.firstDeadline", at: duration(&r.FirstDeadline, time.Millisecond, maxDuration), atLeast: "recall.deadline", doc: "The same while the user's index or ledger is not in memory yet."},
		{key: "recall.topK", at: integer(&r.TopK, 1, recall.MaxTopK), doc: "Maximum of memories in one block."},
		{key: "recall.budgetTokens", at: integer(&r.BudgetTokens, 1, maxInteger), doc: "Tokens of memories in one block. Two bytes count as one token, which no common tokenizer exceeds on running text; English takes about half of that. Long memories are cut to fit."},
		{key: "recall.gate", at: float(&r.Gate, 0, 1), doc: "Relevance that the best candidate must reach for anything to be inserted. Most messages need no memory."},
		{key: "recall.scopes", at: names(&r.Scopes), doc: "Where memories may come from: `current_chat`, `resources`, `all_user_memory`."},
		{key: "recall.maxBytes", at: size(&r.MaxBytes, 1<<20, maxBytes), atLeast: "recall.maxScopeBytes", share: 1.0 / 16, doc: "All users' indexes in memory together. Beyond, the least recently used one is dropped, and loaded again when needed."},
		{key: "recall.maxScopeBytes", at: size(&r.MaxScopeBytes, 64<<10, maxBytes), share: 1.0 / 32, doc: "One user's index. Beyond, the oldest memories are left out and counted."},
	}
}

func (c *Config) embeddingSettings() []setting {
	e := &c.Embeddings
	return []setting{
		{key: "recall.embeddings.url", at: text(&e.URL), doc: "Server of OpenAI-compatible embeddings (OpenAI, Ollama, TEI), e.g. `http://localhost:11434`; `/v1/embeddings` is added. Empty = none. Redacted memories and redacted queries are sent there."},
		{key: "recall.embeddings.key", at: secret(&e.Key), doc: "Sent to that server as a bearer token. Empty = none."},
		{key: "recall.embeddings.model", at: text(&e.Model), doc: "The model's name there. After a change all memories are embedded again, in the background."},
		{key: "recall.embeddings.dimensions", at: integer(&e.Dimensions, 0, embed.MaxDimensions), doc: "Requested of the server and checked. 0 = the model's own, and the first answer sets what later ones are checked against."},
		{key: "recall.embeddings.encoding", at: choice(&e.Encoding, embed.EncodingFloat, embed.EncodingBase64), doc: "Encoding of vectors. `base64` takes a quarter of the bytes, if the server supports it."},
		{key: "recall.embeddings.queryPrefix", at: text(&e.QueryPrefix), doc: "Put before every query, for models that were trained with a prefix (\"query: \")."},
		{key: "recall.embeddings.documentPrefix", at: text(&e.DocumentPrefix), doc: "Put before every memory."},
		{key: "recall.embeddings.batchTexts", at: integer(&e.BatchTexts, 1, 512), doc: "Memories in one request."},
		{key: "recall.embeddings.concurrency", at: integer(&e.Concurrency, 1, 64), doc: "Such requests at the same time."},
		{key: "recall.embeddings.timeout", at: duration(&e.Timeout, time.Millisecond, maxDuration), doc: "For one request with memories."},
		{key: "recall.embeddings.proxyFromEnvironment", at: boolean(&e.ProxyFromEnvironment), doc: "Reaches the server through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."},
	}
}

func (c *Config) injectionSettings() []setting {
	i, l := &c.Proxy.Injection, &c.Proxy.Ledger
	return []setting{
		{key: "injection.placement", at: choice(&i.Placement, proxy.PlacementBeforeUser, proxy.PlacementSystem), doc: "`beforeUser`: one message before the newest user message (in the Messages API a text block inside it), which keeps the upstream's prompt cache whole. `system`: at the end of the system prompt, which costs the cache whenever the block changes."},
		{key: "injection.ruleInSystem", at: boolean(&i.RuleInSystem), doc: "Puts the rule that memories are data into the system prompt instead of every block. Every request that may get memories carries it, so that a conversation's beginning stays the same."},
		{key: "injection.countTokens", at: boolean(&i.CountTokens), doc: "Adds to requests that only count tokens what the counted request would carry, so that counts are right. Nothing is searched or stored for them. Off: they pass unchanged."},
		{key: "injection.repair", at: choice(&i.Repair, proxy.RepairStrip, proxy.RepairDropBlock, proxy.RepairOff), doc: "What to do if the upstream refuses thinking because something before it has changed, as after a memory in the conversation was forgotten. `strip`: sends the request again without that thinking, and so all later ones of the conversation. `dropBlock`: also asks Anthropic, if that is refused too, to drop the thinking itself, which adds a beta header to the request. `off`: passes the refusal on."},
		{key: "injection.ttl", at: duration(&l.TTL, time.Minute, maxDuration), doc: "How long after its last use an insertion is replayed. A conversation that comes back later is repaired, see `injection.repair`."},
		{key: "injection.maxBlocks", at: integer(&l.MaxBlocks, 1, maxInteger), doc: "Blocks in one conversation. At the limit nothing new is added; earlier blocks are never removed."},
		{key: "injection.maxTokens", at: integer(&l.MaxTokens, 1, maxInteger), doc: "Tokens of all blocks in one conversation. A block that would exceed it holds fewer memories."},
		{key: "injection.maxBytes", at: size(&l.MaxBytes, 1<<20, maxBytes), share: 1.0 / 64, doc: "Records of insertions in memory, of all users together. Beyond, those of the least recently used conversation are dropped and loaded again when needed."},
		{key: "injection.maxStored", at: size(&l.MaxStored, 1<<20, maxBytes), doc: "Records of insertions in the store, of all users together. Beyond, those that were not used for longest are deleted and counted. A conversation that comes back later is repaired, see `injection.repair`."},
		{key: "responses.placement", at: choice(&i.Responses, proxy.PlacementItem, proxy.PlacementInstructions), doc: "`item`: one input item before the newest user item. With `previous_response_id` the upstream keeps it with the conversation, out of reach of erasure here; for that reason nothing is inserted into a server-side `conversation`. `instructions`: at the end of `instructions`, which the upstream does not keep, but which costs its prompt cache whenever the block changes."},
	}
}

func (c *Config) policySettings() []setting {
	return []setting{
		{key: "policy", at: objects[policy.Rule]{&c.Proxy.Policy, policyFields, ""}, doc: "Which memories may go to which upstream or model. The first rule that fits decides; without one everything may go anywhere, except for memories with the tag `private` (see [policy](control-plane.md#policy)). Can be changed [while Remora runs](cli.md#changing-settings-while-remora-runs)."},
	}
}

func (c *Config) backendSettings() []setting {
	b, g := &c.Backend, &c.Backend.Gateway
	return []setting{
		{key: "memory.mode", at: choice(&b.Mode, backend.ModeLocal, backend.ModeGateway, backend.ModeCurated), doc: "Which memory requests get. `local`: Remora's own. `gateway`: that of a [Memory Gateway](gateway.md), which may be another Remora. `curated`: MEMORY.md and USER.md, which only the memory tool writes."},
		{key: "gateway.baseUrl", at: text(&g.BaseURL), doc: "What `/memories/search`, `/memories/add` and `/memories/flush` are appended to."},
		{key: "gateway.userId", at: text(&g.UserID), doc: "Whose memory it is. All requests share this one memory: in this mode a Remora serves one person."},
		{key: "gateway.userKey", at: secret(&g.UserKey), doc: "The credential, sent in bodies only."},
		{key: "gateway.appId", at: text(&g.AppID), doc: "The application there."},
		{key: "gateway.projectId", at: text(&g.ProjectID), doc: "The project there."},
		{key: "gateway.scopes", at: names(&g.Scopes), doc: "Where memories may come from: `current_chat`, `resources`, `all_user_memory`."},
		{key: "gateway.topK", at: integer(&g.TopK, 1, recall.MaxTopK), doc: "Memories of one request."},
		{key: "gateway.timeout", at: duration(&g.Timeout, time.Millisecond, maxDuration), doc: "For each request to the gateway. Nobody waits for those that add turns."},
		{key: "gateway.recallTimeout", at: duration(&g.RecallTimeout, time.Millisecond, maxDuration), doc: "How long a request of a client waits for its memories, in place of `recall.deadline`. After three searches in a row that fail or take longer, the gateway is [not searched for a while](gateway.md#when-the-gateway-fails)."},
		{key: "gateway.proxyFromEnvironment", at: boolean(&g.ProxyFromEnvironment), doc: "Reaches the gateway through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."},
		{key: "curated.dir", at: text(&b.Curated.Dir), doc: "Directory of MEMORY.md and USER.md, read at the first turn of each conversation. Empty = each user's own, `/memories/MEMORY.md` and `/memories/USER.md` of the memory tool ([MCP](mcp.md))."},
	}
}

func (c *Config) apiSettings() []setting {
	a := &c.API
	return []setting{
		{key: "api.listen", at: text(&a.Listen), doc: "Address of the control plane: REST, MCP and the faces compatible with other products. `off` = none. If the default is taken, by another Remora for example, there is none, and the log says so."},
		{key: "api.token", at: secret(&a.Token), note: "generated, in `admin.token` in `storage.dir`; `remora token` prints it", doc: "The admin token, which opens everything. At least 16 bytes."},
		{key: "api.hosts", at: names(&a.Hosts), doc: "Names, besides those of loopback, by which a control plane or a health listener on loopback may be called. A page in a browser could call it by others."},
		{key: "api.receipts", at: boolean(&a.Receipts), doc: "Keeps a receipt of each exchange, sealed: what was inserted, which memories were candidates and why some were turned down, tokens and times. Up to 1,000 of each user. Off: there are none, and `used` counts nothing."},
		{key: "api.receiptRetention", at: duration(&a.ReceiptRetention, time.Minute, maxDuration), doc: "How long receipts are kept."},
		{key: "api.prices", at: objects[api.Price]{&a.Prices, priceFields, ""}, doc: "What tokens cost, by model, so that exchanges show money as well. The first that fits applies; at most 200. There are none by default, because they would be out of date (see [prices](control-plane.md#prices)). Can be changed [while Remora runs](cli.md#changing-settings-while-remora-runs)."},
		{key: "api.mcp", at: names(&a.MCP), doc: "Sets of MCP tools besides Remora's own, under the names that other servers use: `mem0`, `openmemory`, `reference`, `memory`, `search` (see [MCP](mcp.md))."},
	}
}

func (c *Config) healthSettings() []setting {
	return []setting{
		{key: "health.listen", at: text(&c.Health), doc: "Address of the health listener, for example `127.0.0.1:8789`, or `:8789` in a pod. It serves `/livez`, `/readyz`, `/startupz` and [`/metrics`](telemetry.md), without a credential, and nothing else. On loopback it answers only to names of this machine and of `api.hosts`. Empty = none."},
	}
}

func (c *Config) persistSettings() []setting {
	p, a, f := &c.Persist, &c.Persist.Audit, &c.Persist.Facts
	return []setting{
		{key: "persist.queueTurns", at: integer(&p.QueueTurns, 1, maxInteger), doc: "Turns that wait to become memories. Beyond, turns are dropped and counted."},
		{key: "persist.queueBytes", at: size(&p.QueueBytes, 1<<20, maxBytes), share: 1.0 / 64, doc: "Texts of these turns. Beyond, turns are dropped and counted."},
		{key: "persist.turnsPerSecond", at: float(&p.TurnsPerSecond, 0, maxNumber), doc: "Turns of one user, with a burst of one second. Beyond, they are dropped and counted. 0 = no limit."},
		{key: "persist.maxMessageBytes", at: size(&p.MaxMessageBytes, 1<<10, 4<<20), doc: "Longer messages are cut."},
		{key: "persist.retention", at: duration(&p.Retention, time.Millisecond, maxDuration), doc: "How long turns are remembered. A change applies to turns stored from then on."},
		{key: "persist.drainTimeout", at: duration(&p.DrainTimeout, 0, maxDuration), doc: "How long storing continues after SIGTERM. Turns left in the spool are stored at the next start."},
		{key: "persist.memoryTool", at: boolean(&c.MemoryTool), doc: "Also saves what a model saves with a tool named `memory` of its client's, as Anthropic's memory tool is: each line of what it writes becomes a fact. The calls pass unchanged."},
		{key: "persist.audit.enabled", at: boolean(&a.Enabled), doc: "Extracts facts from conversations. Off: turns are remembered as they were said, and limits still apply."},
		{key: "persist.audit.messages", at: integer(&a.Messages, 1, 12), doc: "Messages of a conversation, since its last audit, that start the next one."},
		{key: "persist.audit.interval", at: duration(&a.Interval, time.Millisecond, maxDuration), doc: "Age of the first of these messages that starts an audit however few there are."},
		{key: "persist.audit.debounce", at: duration(&a.Debounce, 0, maxDuration), doc: "How long a conversation must be quiet before its audit, unless the new messages would outgrow what one audit reads (12 messages)."},
		{key: "persist.audit.threshold", at: float(&a.Threshold, 0, 1), doc: "Minimum score of a statement that is saved as a fact."},
		{key: "persist.audit.retention", at: duration(&a.Retention, time.Millisecond, maxDuration), doc: "How long audit records and summaries of conversations are kept."},
		{key: "persist.audit.maxBytes", at: size(&a.MaxBytes, 1<<20, maxBytes), share: 1.0 / 128, doc: "Texts and summaries of conversations in memory, of all users together. Beyond, the conversation that was idle longest is audited and dropped."},
		{key: "persist.facts.max", at: integer(&f.Max, 0, maxInteger), doc: "Facts of one user. Beyond, those of the lowest value are deleted."},
		{key: "persist.facts.retention", at: duration(&f.Retention, time.Millisecond, maxDuration), doc: "How long facts are kept since they were last said."},
		{key: "persist.facts.longRetention", at: duration(&f.LongRetention, time.Millisecond, maxDuration), atLeast: "persist.facts.retention", doc: "The same for facts with a high score and for those that the user asked to remember."},
		{key: "persist.facts.episodeBytes", at: size(&f.EpisodeBytes, 1<<20, maxBytes), doc: "Text of one user's turns. Beyond, the oldest are deleted."},
		{key: "persist.facts.cacheBytes", at: size(&f.CacheBytes, 1<<20, maxBytes), share: 1.0 / 64, doc: "Facts in memory for merging, of all users together. Beyond, those of the user who was idle longest are dropped and read again when needed."},
	}
}

func (c *Config) distillSettings() []setting {
	d := &c.Distill
	return []setting{
		{key: "distill.url", at: text(&d.URL), doc: "An OpenAI-compatible endpoint up to its version, such as `https://api.openai.com/v1`, whose model proposes facts. Redacted messages are sent there. Empty = off: the built-in rules propose them."},
		{key: "distill.model", at: text(&d.Model), doc: "The model's name there."},
		{key: "distill.key", at: secret(&d.Key), doc: "Its API key. Empty = none. Clients' keys are never used for it: to use an upstream, set its address in `distill.url` and a key of your own here."},
		{key: "distill.concurrency", at: integer(&d.Concurrency, 1, 64), doc: "Calls at the same time. Beyond, the built-in rules are used."},
		{key: "distill.tokensPerDay", at: integer(&d.TokensPerDay, 1, 1e12), doc: "Tokens of prompts and answers in a UTC day, or since the start. Beyond, the built-in rules are used."},
		{key: "distill.timeout", at: duration(&d.Timeout, time.Millisecond, maxDuration), doc: "For one call."},
		{key: "distill.maxTokens", at: integer(&d.MaxTokens, 100, maxInteger), doc: "Tokens of one answer."},
		{key: "distill.proxyFromEnvironment", at: boolean(&d.ProxyFromEnvironment), doc: "Reaches the endpoint through `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."},
	}
}

func (c *Config) redactSettings() []setting {
	return []setting{
		{key: "redact.disable", at: names(&c.Redact.Disable), doc: "Ids of rules that are switched off; [redaction.md](redaction.md) lists them."},
		{key: "redact.rules", at: objects[redact.CustomRule]{&c.Redact.Rules, ruleFields, ""}, doc: "Rules of your own, up to 100. Their matches are treated as secrets."},
		{key: "redact.keepOriginals", at: boolean(&c.Persist.KeepOriginals), doc: "Keeps the originals of redacted personal data, sealed like the memory and under its user's key, so that their owner can edit and restore it. Off: they are discarded. Originals of secrets and of your own rules are never kept."},
		{key: "redact.phoneRegions", at: names(&c.Redact.PhoneRegions), doc: "Countries (ISO 3166) whose national phone numbers are recognized without a word such as \"phone\" before them."},
	}
}

func (c *Config) storageSettings() []setting {
	return []setting{
		{key: "storage.dir", at: text(&c.Storage.Dir), note: "`$XDG_DATA_HOME/remora`: `~/.local/share/remora`, on macOS `~/Library/Application Support/remora`, on Windows `%LocalAppData%\\remora`", doc: "Directory of the memories, made with mode 0700."},
		{key: "storage.keyFile", at: text(&c.Storage.KeyFile), note: "`$XDG_CONFIG_HOME/remora/store.key`: `~/.config/remora/store.key`, on Windows `%AppData%\\remora\\store.key`; next to it a file of its own for a store outside the default directory; in a container none", doc: "The key that seals the memories, as hex or base64. Generated with mode 0600 for a new store, never where data exists, and in a file that is named here only if its directory exists (see [keys](storage.md#keys)). Keep it outside the directory above, and keep a copy: without it the memories can't be read."},
		{key: "storage.key", at: secret(&c.storageKey), doc: "The key itself, instead of a key file."},
		{key: "storage.minFreeBytes", at: size(&c.Storage.MinFreeBytes, 0, maxBytes), doc: "With less free disk space nothing is stored; with less than a quarter of it the store is closed until there is space again. Traffic continues."},
		{key: "storage.reserveBytes", at: size(&c.Store.ReserveBytes, 0, maxBytes), doc: "Size of a file that is deleted when the disk is full, so that the store can be closed in good order. 0 = none."},
		{key: "storage.maxUsers", at: integer(&c.Storage.MaxUsers, 1, maxBytes), doc: "Users in the store, some 3 KiB each before anything is said. Nothing is stored for one more; the turns are dropped and counted (`tooManyUsers`). Those who are there are remembered as before."},
		{key: "storage.maxTenantUsers", at: integer(&c.Storage.MaxTenantUsers, 1, maxBytes), doc: "The same for the users of one tenant, so that one key can't take the room of all others."},
		{key: "storage.isolation", at: choice(&c.Store.Isolation, IsolationProcess, IsolationInline), doc: "`process`: the store runs in a process of its own, which may crash without interrupting traffic. `inline`: in the proxy's process; always so on Windows."},
		{key: "storage.setAside", at: boolean(&c.Store.SetAside), doc: "Renames a store that proves damaged three times in a row, never deletes it, and makes a new one, with an error in the log (see [the store's process](storage-process.md)). Off: the store stays, and there is no memory until someone repairs it."},
		{key: "storage.hangTimeout", at: duration(&c.Store.Process.Hang, 100*time.Millisecond, maxDuration), doc: "A store's process that is silent for longer is killed and restarted. Requests stop waiting for it long before that."},
		{key: "storage.memoryBytes", at: size(&c.Store.MemoryBytes, 32<<20, maxBytes), share: 3.0 / 8, doc: "Soft memory limit of the store's process, without the files that it maps. Below 96 MiB it merges in small pieces, which takes more CPU time, and keeps at most 160 KiB of one turn (else 768 KiB)."},
		{key: "storage.clockFile", at: text(&c.Store.ClockFile), doc: "For tests and measurements alone: a file with a duration, such as `-720h`, that is added to the machine's clock for all that is dated, expires, or is said to be long ago. The file is read each time the clock is."},
	}
}

func (c *Config) timeoutSettings() []setting {
	s, t := &c.Server, &c.Proxy.Transport
	return []setting{
		{key: "timeouts.shutdown", at: duration(&s.Drain, 0, maxDuration), doc: "How long requests and streams in flight may continue after SIGTERM. The rest is cut, and the exit code is 1. A WebSocket or other upgraded connection that was silent for 15 s ends earlier. If the client spoke last, which may be a question or a keep-alive, it ends after a minute, or a second before this time is over, and is not counted as cut. A WebSocket's client gets close code 1001."},
		{key: "timeouts.header", at: duration(&s.HeaderTimeout, time.Millisecond, maxDuration), doc: "For a client to send its request's headers."},
		{key: "timeouts.idle", at: duration(&s.IdleTimeout, time.Millisecond, maxDuration), doc: "How long a client's connection is kept open between requests."},
		{key: "timeouts.readIdle", at: duration(&c.Proxy.Streams.ReadIdle, time.Millisecond, maxDuration), doc: "Ends a request whose body sends nothing for so long; with `websocket: enrich`, also a socket in the middle of a message."},
		{key: "timeouts.writeIdle", at: duration(&c.Proxy.Streams.WriteIdle, time.Millisecond, maxDuration), doc: "Ends an answer whose client reads nothing for so long, and an HTTP/2 connection that accepts nothing at all."},
		{key: "timeouts.dial", at: duration(&t.DialTimeout, time.Millisecond, maxDuration), doc: "For a connection to an upstream or to a tunnel's target."},
		{key: "timeouts.responseHeader", at: duration(&t.ResponseHeaderTimeout, 0, maxDuration), doc: "From the sent request to the headers of the answer; a model may think for long. `0s` = no limit. Bodies and streams have no time limit."},
		{key: "timeouts.upstreamIdle", at: duration(&t.IdleTimeout, time.Millisecond, maxDuration), doc: "How long an unused TLS connection to an upstream is kept. Plain HTTP connections are kept for 4 s: many servers of local models close them after 5 s."},
	}
}

func (c *Config) logSettings() []setting {
	return []setting{
		{key: "log.level", at: choice(&c.Log.Level, "debug", "info", "warn", "error"), doc: "What is logged, to standard error. Content, keys and header values never are, at any level. Can be changed [while Remora runs](cli.md#changing-settings-while-remora-runs)."},
		{key: "log.format", at: choice(&c.Log.Format, FormatAuto, FormatText, FormatJSON), doc: "`auto`: text on a terminal, JSON elsewhere."},
	}
}
