package dialect

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/remora-proxy/remora/proxy/sse"
)

// MaxRefusal is how much of an error body is examined, in bytes. The rest is
// ignored.
const MaxRefusal = 64 << 10

// ContextLength reports whether an upstream refused a request because it is too
// long for the model or the server. Such a refusal says nothing about
// placements. Only the error's description is examined, not what it may quote
// of the request.
func ContextLength(status int, body []byte) bool {
	switch status {
	case 413:
		return true
	case 400, 422, 500:
		return errorContains(body, lengthPhrases[:])
	default:
		return false
	}
}

// TemplateRefusal reports whether an upstream refused a request because of the
// roles or the order of its messages: two user messages in a row, a second
// system message, a role that its chat template does not know.
func TemplateRefusal(body []byte) bool {
	return errorContains(body, templatePhrases[:]) && !errorContains(body, lengthPhrases[:])
}

// FirstEvent returns the first event of a stream that carries content, and
// whether it is an error: some servers send their head first and refuse in an
// event. With lines, the events are JSON values, one a line. ok is false if no
// event is complete. ended means that nothing follows b, so that its remainder
// counts as an event.
func FirstEvent(b []byte, lines, ended bool) (data []byte, failed, ok bool) {
	if ended {
		b = append(b[:len(b):len(b)], "\n\n"...)
	}
	if !lines {
		for e := range sse.Events(b) {
			if len(e.Data) > 0 && !isPreamble(e.Data) {
				return e.Data, string(e.Type) == "error" || isError(e.Data), true
			}
		}
		if !ended {
			return nil, false, false
		} // else an error may be there without the framing of an event
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

// isPreamble reports whether an event only announces an answer or keeps the
// connection alive.
func isPreamble(data []byte) bool {
	if !isJSON(data) {
		return false
	}
	switch gjson.GetBytes(data, "type").Str {
	case "ping", "response.created", "response.in_progress", "response.queued":
		return true
	}
	return false
}

// isJSON reports whether data is valid JSON of limited depth, as gjson
// requires.
func isJSON(data []byte) bool {
	s := scanner{b: data}
	s.begin()
	s.skip()
	s.end()
	return s.err == nil
}

// isError reports whether an event is a JSON error.
func isError(data []byte) bool {
	if !isJSON(data) {
		return false
	}
	found := gjson.GetManyBytes(data, "error", "type", "object")
	switch found[0].Type {
	case gjson.String:
		return found[0].Str != ""
	case gjson.JSON:
		return true
	}
	return found[1].Str == "error" || found[1].Str == "response.failed" || found[2].Str == "error"
}

// ContentRefusal reports whether an upstream refused a request because of what
// it says. Such a refusal is about one text, not about its placement.
func ContentRefusal(body []byte) bool { return errorContains(body, contentPhrases[:]) }

// contentPhrases occur in refusals by content filters.
var contentPhrases = [...]string{
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

// lengthPhrases occur in refusals for length, in lower case and without the
// parts that vary.
var lengthPhrases = [...]string{
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

// templatePhrases occur in refusals by chat templates. The exceptions that
// templates raise reach the client through vLLM, SGLang, llama.cpp, LM Studio
// and others, each with its own wrapper.
var templatePhrases = [...]string{
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

// errorContains reports whether the error in body contains one of the phrases.
func errorContains(body []byte, phrases []string) bool {
	text := bytes.ToLower(errorText(body[:min(len(body), MaxRefusal)]))
	for _, phrase := range phrases {
		if bytes.Contains(text, []byte(phrase)) {
			return true
		}
	}
	return false
}

// errorPaths are the places where servers describe an error: OpenAI and most
// others, Responses events, older vLLM and Mistral, FastAPI (whose details also
// quote the request), OpenRouter with the upstream's error inside, TGI,
// llama.cpp, Qianfan.
var errorPaths = [...]string{
	"error.message", "error.type", "error.code", "error.metadata.raw", "error.error.message", "error",
	"response.error.message", "response.error.code", "message", "type", "code", "error_type", "error_msg", "metadata.raw",
	"detail", "detail.#.msg", "detail.message", "detail.error", "message.detail.#.msg",
}

// errorText returns the description of the error in body, or all of body if it
// has no known form. The first event of a stream is not JSON, so it is searched
// whole.
func errorText(body []byte) []byte {
	if !isJSON(body) {
		return body
	}
	var text []byte
	add := func(v gjson.Result) {
		if v.Type == gjson.String {
			text = append(append(text, v.Str...), '\n')
		}
	}
	for _, v := range gjson.GetManyBytes(body, errorPaths[:]...) {
		add(v)
		if v.IsArray() {
			for _, e := range v.Array() {
				add(e)
			}
		}
	}
	if len(text) == 0 {
		return body
	}
	return text
}
