package dialect

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// MaxRefusal is how much of an error body is looked at, in bytes. Whatever stands behind it does not count.
const MaxRefusal = 64 << 10

// ContextLength says whether an upstream refused a request because it is too long for the model, or for the server: such
// a refusal says nothing about placements. It looks at what the error says, not at what of the request it may quote.
func ContextLength(status int, body []byte) bool {
	switch status {
	case 413:
		return true
	case 400, 422, 500:
		return saysOneOf(body, contextLengthTexts[:])
	default:
		return false
	}
}

// TemplateRefusal says whether an upstream refused a request because of the roles of its messages or their order: two
// user messages in a row, a second system message, a role that its chat template does not know.
func TemplateRefusal(body []byte) bool {
	return saysOneOf(body, templateTexts[:]) && !saysOneOf(body, contextLengthTexts[:])
}

// FirstEvent returns what the first event of a stream that says anything says and whether that is an error, as servers that have sent
// their head refuse. With lines the events are JSON values, one a line. ok is false where no event has come whole; ended says that nothing
// follows b, and what there is counts as one.
func FirstEvent(b []byte, lines, ended bool) (data []byte, failed, ok bool) {
	if ended {
		b = append(b[:len(b):len(b)], "\n\n"...)
	}
	if !lines {
		for e := range sse.Events(b) {
			if len(e.Data) > 0 && !leadsIn(e.Data) {
				return e.Data, string(e.Type) == "error" || isError(e.Data), true
			}
		}
		if !ended {
			return nil, false, false
		} // or an error may stand there without the frame of an event
	}
	for line := range bytes.Lines(b) {
		if line[len(line)-1] != '\n' {
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, isError(line), true
		}
	}
	return nil, false, false
}

// leadsIn says whether an event only announces that an answer begins, or that the server is there.
func leadsIn(data []byte) bool {
	if !wellFormed(data) {
		return false
	}
	switch gjson.GetBytes(data, "type").Str {
	case "ping", "response.created", "response.in_progress", "response.queued":
		return true
	}
	return false
}

// wellFormed says whether data is JSON that gjson may have.
func wellFormed(data []byte) bool {
	s := scanner{b: data}
	s.begin()
	s.skip()
	s.end()
	return s.err == nil
}

// isError says whether an event is the JSON of an error.
func isError(data []byte) bool {
	if !wellFormed(data) {
		return false
	}
	told := gjson.GetManyBytes(data, "error", "type", "object")
	switch told[0].Type {
	case gjson.String:
		return told[0].Str != ""
	case gjson.JSON:
		return true
	}
	return told[1].Str == "error" || told[1].Str == "response.failed" || told[2].Str == "error"
}

// ContentRefusal says whether an upstream refused a request for what it says: such a refusal is about one text, not about
// where it stood.
func ContentRefusal(body []byte) bool { return saysOneOf(body, contentTexts[:]) }

// contentTexts likewise.
var contentTexts = [...]string{
	"content_filter",            // Azure: code
	"content management policy", // Azure
	"content_policy_violation",  // OpenAI
	"invalid_prompt",            // OpenAI: reasoning models
	"responsibleaipolicy",       // Azure: inner error
	"flagged",                   // moderation layers
	"moderation",
	"prohibited_content", // Gemini
	"data_inspection",    // DashScope
	"sensitive",          // DashScope, Zhipu
}

// contextLengthTexts are what servers say, in lower case and without the parts that vary.
var contextLengthTexts = [...]string{
	"context_length_exceeded",              // OpenAI, Azure, Groq: code
	"maximum context length",               // OpenAI, vLLM, OpenRouter, Mistral, DeepSeek
	"exceeds the context window",           // OpenAI, newer models
	"string_above_max_length",              // OpenAI: one content alone is too long
	"array_above_max_length",               // OpenAI: too many messages
	"reduce the length of the messages",    // Groq, Cerebras
	"exceed_context_size",                  // llama.cpp: type
	"exceeds the available context size",   // llama.cpp
	"exceed context window",                // llama-cpp-python
	"model's context length",               // SGLang
	"maximum model length",                 // vLLM, older
	"max_model_len",                        // vLLM, older
	"max_seq_len",                          // SiliconFlow, TensorRT-LLM
	"exceeds the context length",           // Ollama
	"exceeds maximum context length",       // MLX
	"exceeds the maximum number of tokens", // Gemini
	"prompt is too long",                   // Anthropic, Bedrock
	"exceed context limit",                 // Anthropic: input and max_tokens together
	"request_too_large",                    // Anthropic
	"input is too long",                    // Bedrock, Replicate
	"too many tokens",                      // Bedrock, Cohere
	"too many input tokens",                // Bedrock
	"too large for model",                  // Mistral
	"maximum prompt length",                // xAI
	"max_new_tokens` must be <=",           // TGI
	"`inputs` must have less than",         // TGI
	"trying to keep the first",             // LM Studio
	"context size has been exceeded",       // LM Studio, MLX
	"length of all messages is too long",   // Perplexity
	"greater than the context length",      // LM Studio
	"exceeded max context length",          // Ollama
	"prompt too long",                      // Ollama
	"input tokens exceeds maximum length",  // Bedrock: Nova
	"exceeds the model limit",              // Bedrock: input and output together
	"range of input length should be",      // DashScope
	"exceeded model token limit",           // Moonshot
	"prompt exceeds max length",            // Z.AI
	"model_max_prompt_tokens_exceeded",     // GitHub's models: code
	"too large to process",                 // llama.cpp: the batch
	"contextwindowexceeded",                // LiteLLM
}

// templateTexts likewise. What chat templates raise reaches the client through vLLM, SGLang, llama.cpp, LM Studio and
// others, each with a wrapping of its own around it.
var templateTexts = [...]string{
	"roles must alternate",           // Mistral, Gemma and Llama 2 templates, Anthropic before
	"must alternate between",         // Bedrock
	"roles should be alternating",    // Perplexity
	"requests alternate between",     // Gemini
	"expected last role",             // Mistral
	"unexpected role",                // Mistral
	"invalid_request_message_order",  // Mistral: type
	"last message must have role",    // Perplexity
	"unexpected message role",        // Qwen templates
	"system message must be",         // Qwen templates
	"no user query found",            // Qwen templates
	"multiple system messages",       // MiniMax, Anthropic through adapters
	"roles are supported",            // Mistral templates
	"role not supported",             // Gemma templates
	"role is not supported",          //
	"must start with a user message", // Bedrock
	"must be user or assistant",      // Messages servers
	"`tool_result` block",            // Anthropic: a call that its result does not follow at once
	"cannot determine type of 'item", // llama.cpp: Responses items
	"first message must use",         // Anthropic before
	"should alternate with",          // Perplexity
	"successive user or assistant",   // DeepSeek
	"interleave the user/assistant",  // DeepSeek
	"messages parameter is illegal",  // Z.AI
	"messages 参数非法",                  // Z.AI
	"messages must be an odd number", // Qianfan
	"function call turn comes",       // Gemini
	"toolresult blocks",              // Bedrock: calls and results in turns that don't match
	"does not support 'system'",      // OpenAI: older reasoning models
	"does not support 'developer'",   // likewise
	"developer instruction is not",   // Gemma at Google
	"incompatible with system",       // Llama vision templates
	"template error",                 // TGI
	"template_error",                 // TGI: error_type
	"jinja exception",                // llama.cpp
	"jinja template",                 // LM Studio
	"jinja2",                         // Python servers that pass the exception on
	"templateerror",                  // likewise
	"raise_exception",                // likewise, with the template's source
	"chat template",                  // vLLM, Ollama
	"chat_template",                  // vLLM
	"failed to apply template",       // llama.cpp, older
	"error applying template",        // TGI
}

// saysOneOf says whether the error in body holds one of the texts.
func saysOneOf(body []byte, texts []string) bool {
	said := bytes.ToLower(errorText(body[:min(len(body), MaxRefusal)]))
	for _, text := range texts {
		if bytes.Contains(said, []byte(text)) {
			return true
		}
	}
	return false
}

// errorPaths is where servers put what went wrong: OpenAI and most others, its Responses API in events, vLLM and Mistral before, FastAPI (whose details
// quote the request beside it), OpenRouter with the upstream's own error inside, TGI, llama.cpp, Qianfan.
var errorPaths = [...]string{
	"error.message", "error.type", "error.code", "error.metadata.raw", "error.error.message", "error",
	"response.error.message", "response.error.code", "message", "type", "code", "error_type", "error_msg", "metadata.raw", "detail", "detail.#.msg", "detail.message", "detail.error", "message.detail.#.msg",
}

// errorText is what the error in body says, or all of it where that is not JSON as known. An event stream's first event
// is not JSON, so that is searched as a whole.
func errorText(body []byte) []byte {
	if !wellFormed(body) {
		return body
	}
	var said []byte
	for _, v := range gjson.GetManyBytes(body, errorPaths[:]...) {
		switch {
		case v.Type == gjson.String:
			said = append(append(said, v.Str...), '\n')
		case v.IsArray():
			for _, e := range v.Array() {
				if e.Type == gjson.String {
					said = append(append(said, e.Str...), '\n')
				}
			}
		}
	}
	if len(said) == 0 {
		return body
	}
	return said
}
