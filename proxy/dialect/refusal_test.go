package dialect

import (
	"strings"
	"testing"
)

// refusals have the shape and the words of real servers, with other numbers and
// names.
var refusals = []struct {
	name     string
	status   int
	body     string
	length   bool
	template bool
}{
	{"OpenAI length", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true, false},
	{"OpenAI length, newer", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}`, true, false},
	{"vLLM length", 400, `{"object":"error","message":"This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, true, false},
	{"vLLM length, newer", 400, `{"error":{"message":"This model's maximum context length is 16384 tokens. However, your request has 112946 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":"input_tokens","code":400}}`, true, false},
	{"vLLM length, V1", 400, `{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that max_model_len is no smaller than the number of text tokens.","type":"BadRequestError","param":null,"code":400}`, true, false},
	{"llama.cpp length", 400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}`, true, false},
	{"llama.cpp length as 500", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`, true, false},
	{"llama-cpp-python length", 400, `{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error","param":null,"code":null}}`, true, false},
	{"SGLang length", 400, `{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}`, true, false},
	{"Anthropic length", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 207791 tokens > 200000 maximum"}}`, true, false},
	{"Anthropic length with output", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 90402 + 116650 > 204648, decrease input length or max_tokens and try again"}}`, true, false},
	{"Anthropic size", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, true, false},
	{"size said by a gateway", 413, `<html><head><title>413 Request Entity Too Large</title></head></html>`, true, false},
	{"Mistral length", 400, `{"object":"error","message":"Prompt contains 40123 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}`, true, false},
	{"Ollama length", 400, `{"error":{"message":"the input length exceeds the context length","type":"invalid_request_error","param":null,"code":null}}`, true, false},
	{"TGI length", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. Given: 79993 `inputs` tokens and 1024 `max_new_tokens`\",\"error_type\":\"validation\"}", true, false},
	{"LM Studio length", 400, `{"error":"Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input."}`, true, false},
	{"OpenRouter length", 400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input).","code":400}}`, true, false},
	{"Perplexity length", 400, `{"error":{"message":"The total length of all messages is too long.","type":"invalid_message","code":400}}`, true, false},
	{"SiliconFlow length, bare", 400, `length of prompt_tokens (163280) must be less than max_seq_len (32768).`, true, false},
	{"Gemini length", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, true, false},
	{"length, but of another status", 429, `{"error":{"message":"This model's maximum context length is 128000 tokens","code":"context_length_exceeded"}}`, false, false},

	{"vLLM template, older", 400, `{"object":"error","message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}`, false, true},
	{"vLLM template", 400, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/... Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}}`, false, true},
	{"vLLM second system", 400, `{"error":{"message":"System message must be at the beginning.","type":"BadRequestError","param":null,"code":400}}`, false, true},
	{"vLLM through a gateway", 400, `{"detail":"Invalid request: Invalid request: {\"detail\":{\"object\":\"error\",\"message\":\"After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.\",\"type\":\"400\",\"param\":null,\"code\":400}}"}`, false, true},
	{"llama.cpp template", 500, `{"error":{"code":500,"message":"\n------------\nWhile executing CallExpression at line 47, column 32 in source:\n...== 0) %}↵            {{- raise_exception('After the optional system message, con...\n                                           ^\nError: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.","type":"server_error"}}`, false, true},
	{"llama.cpp second system", 400, `{"error":{"code":400,"message":"Unable to generate parser for this template. Automatic parser generation failed: \nError: Jinja Exception: System message must be at the beginning.","type":"invalid_request_error"}}`, false, true},
	{"Mistral last role", 400, `{"object":"error","message":"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant","type":"invalid_request_error","param":null,"code":null}`, false, true},
	{"Mistral order", 400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`, false, true},
	{"Mistral through OpenRouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'tool' after role 'user'\",\"type\":\"invalid_request_message_order\",\"param\":null,\"code\":\"3230\"}","provider_name":"Mistral"}},"user_id":"user_1"}`, false, true},
	{"LM Studio template", 400, `{"error":"Error rendering prompt with jinja template: \"Only user and assistant roles are supported!\"."}`, false, true},
	{"LM Studio three roles", 400, `{"error":"Only user, assistant and tool roles are supported, got system."}`, false, true},
	{"Gemma system", 400, `{"object":"error","message":"System role not supported","type":"BadRequestError","param":null,"code":400}`, false, true},
	{"Perplexity roles", 400, `{"error":{"message":"After the (optional) system message(s), user and assistant roles should be alternating.","type":"invalid_message","code":400}}`, false, true},
	{"Anthropic roles, older", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row"}}`, false, true},
	{"Bedrock roles", 400, `{"detail":"An error occurred (ValidationException) when calling the Converse operation: A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again."}`, false, true},
	{"Python server, bare", 500, `jinja2.exceptions.TemplateError: System role not supported`, false, true},
	{"Anthropic pairing", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.167: ` + "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block" + ` in the next message."},"request_id":"req_1"}`, false, true},
	{"Responses event", 400, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Jinja Exception: Conversation roles must alternate"}}}`, false, true},
	{"llama.cpp items", 400, `{"error":{"code":400,"message":"Cannot determine type of 'item'","type":"invalid_request_error"}}`, false, true},
	{"llama.cpp role", 500, `{"error":{"code":500,"message":"\n------------\nWhile executing CallExpression at line 85, column 32 in source:\n...\nError: Jinja Exception: Unexpected message role.","type":"server_error"}}`, false, true},
	{"Mistral three roles", 400, `{"object":"error","message":"Only user, assistant and tool roles are supported, got developer.","type":"BadRequestError","param":null,"code":400}`, false, true},
	{"LM Studio length, newer", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5228>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}`, true, false},
	{"Ollama length, newer", 400, `{"StatusCode":400,"Status":"400 Bad Request","error":"prompt too long; exceeded max context length by 4 tokens"}`, true, false},
	{"Ollama length, without a number", 400, `{"error":"prompt too long; exceeded context length"}`, true, false},
	{"Bedrock length, Nova", 400, `{"message":"The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`, true, false},
	{"Bedrock length with output", 400, `{"message":"The maximum tokens you requested exceeds the model limit of 10000. Try again with a maximum tokens value that is lower than 10000."}`, true, false},
	{"DashScope length", 400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error"}}`, true, false},
	{"Moonshot length", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)","type":"invalid_request_error"}}`, true, false},
	{"Z.AI length", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, true, false},
	{"GitHub length", 400, `{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, true, false},
	{"llama.cpp batch", 500, `{"error":{"code":500,"message":"input (9000 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`, true, false},
	{"LiteLLM length", 400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: the request is too big","type":null,"param":null,"code":"400"}}`, true, false},

	{"TGI template", 422, `{"error":"Template error: syntax error: Conversation roles must alternate user/assistant/user/assistant/... (in <string>:11)","error_type":"template_error"}`, false, true},
	{"TGI template of other words", 422, `{"error":"Template error: invalid operation: tried to use + operator on unsupported types string and undefined (in <string>:5)","error_type":"template_error"}`, false, true},
	{"llama.cpp template, minja", 500, `{"error":{"code":500,"message":"Conversation roles must alternate user/assistant/user/assistant/... at row 19, column 27:\n    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n","type":"server_error"}}`, false, true},
	{"Ollama passing a template's on", 500, `{"error":"{\"error\":{\"code\":500,\"message\":\"\\n------------\\nWhile executing CallExpression at line 85, column 32 in source:\\nError: Jinja Exception: System message must be at the beginning.\",\"type\":\"server_error\"}}"}`, false, true},
	{"SGLang template", 400, `{"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}`, false, true},
	{"LiteLLM before Bedrock", 400, `{"error":{"message":"litellm.BadRequestError: BedrockException - {\"message\":\"A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.\"}. Received Model Group=claude","type":null,"param":null,"code":"400"}}`, false, true},
	{"LiteLLM before Mistral", 400, `{"error":{"message":"litellm.BadRequestError: MistralException - {\"object\":\"error\",\"message\":\"Unexpected role 'user' after role 'tool'\",\"type\":\"invalid_request_message_order\",\"param\":null,\"code\":\"3230\"}","type":null,"param":null,"code":"400"}}`, false, true},
	{"OpenRouter before Mistral", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'tool' after role 'user'\",\"type\":\"invalid_request_message_order\",\"param\":null,\"code\":\"3230\"}","provider_name":"Mistral"}}}`, false, true},
	{"OpenRouter, unwrapped", 400, `{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'tool' after role 'user'\"}","provider_name":"Mistral"}}`, false, true},
	{"Bedrock pairing", 400, `{"message":"Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1"}`, false, true},
	{"Bedrock pairing, the other way", 400, `{"message":"The number of toolResult blocks at messages.24.content exceeds the number of toolUse blocks of previous turn."}`, false, true},
	{"Perplexity, newer", 400, `{"error":{"message":"After the (optional) system message(s), user or tool message(s) should alternate with assistant message(s).","type":"invalid_message","code":400}}`, false, true},
	{"DeepSeek", 400, `{"error":{"message":"deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2] in your input). You should interleave the user/assistant messages in the message sequence.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, false, true},
	{"Z.AI", 400, `{"error":{"code":"1214","message":"The messages parameter is illegal. Please check the documentation."}}`, false, true},
	{"Z.AI in Chinese", 400, `{"error":{"code":"1214","message":"messages 参数非法。请检查文档。"}}`, false, true},
	{"Qianfan", 400, `{"error_code":336006,"error_msg":"the length of messages must be an odd number"}`, false, true},
	{"Gemini calls", 400, `[{"error":{"code":400,"message":"Please ensure that function call turn comes immediately after a user turn or after a function response turn.","status":"INVALID_ARGUMENT"}}]`, false, true},
	{"OpenAI's older reasoning models", 400, `{"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","type":"invalid_request_error","param":"messages[0].role","code":"unsupported_value"}}`, false, true},
	{"Gemma at Google", 400, `{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`, false, true},
	{"Llama vision", 400, `{"object":"error","message":"Prompting with images is incompatible with system messages.","type":"BadRequestError","param":null,"code":400}`, false, true},
	{"both: too long comes first", 400, `{"error":{"message":"Failed to apply chat template: prompt is too long","code":400}}`, true, false},

	{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, false, false},
	{"rate limit", 429, `{"error":{"message":"Rate limit reached for gpt-4o","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, false, false},
	{"unknown parameter", 400, `{"error":{"message":"Unrecognized request argument supplied: foo","type":"invalid_request_error","param":null,"code":null}}`, false, false},
	{"llama.cpp without templates", 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, false, false},
	{"server error", 500, `{"error":{"message":"The server had an error while processing your request","type":"server_error"}}`, false, false},
	{"quotes the request", 422, `{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":[{"role":"user","content":"Why do roles must alternate? And what is the maximum context length?"}]}}]}`, false, false},
	{"says it in a list", 422, `{"detail":[{"type":"value_error","loc":["body","messages"],"msg":"Conversation roles must alternate"}]}`, false, true},
	{"empty", 400, ``, false, false},
	{"not an object", 400, `null`, false, false},
}

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			if got := ContextLength(tt.status, []byte(tt.body)); got != tt.length {
				t.Errorf("ContextLength: got %v, want %v", got, tt.length)
			}
			if tt.status == 413 || tt.status == 429 {
				return
			}
			if got := TemplateRefusal([]byte(tt.body)); got != tt.template {
				t.Errorf("TemplateRefusal: got %v, want %v", got, tt.template)
			}
		})
	}
}

// TestRefusalTextsAreLowerCase checks that every phrase can match, which is
// compared in lower case.
func TestRefusalTextsAreLowerCase(t *testing.T) {
	for _, text := range append(lengthPhrases[:], templatePhrases[:]...) {
		if text != strings.ToLower(text) || strings.TrimSpace(text) == "" {
			t.Errorf("%q can never match", text)
		}
	}
}

func TestRefusalLooksAtMaxRefusalBytes(t *testing.T) {
	pad := strings.Repeat(" ", MaxRefusal)
	if TemplateRefusal([]byte(pad + "roles must alternate")) {
		t.Error("a phrase after MaxRefusal was found")
	}
	if !TemplateRefusal([]byte(pad[20:] + "roles must alternate")) {
		t.Error("a phrase before MaxRefusal was not found")
	}
}

// TestFirstEvent checks that the first event of a stream is an error if it
// reports one, and not if an answer mentions one.
func TestFirstEvent(t *testing.T) {
	const fault = `{"error":{"message":"roles must alternate"}}`
	for _, tt := range []struct {
		name, stream string
		lines, ended bool
		data         string
		failed, ok   bool
	}{
		{name: "named", stream: "event: error\ndata: odd\n\ndata: [DONE]\n\n", data: "odd", failed: true, ok: true},
		{name: "LM Studio", stream: "event: error\ndata: " + fault + "\n\n", data: fault, failed: true, ok: true},
		{name: "unnamed", stream: "data: " + fault + "\n\ndata: [DONE]\n\n", data: fault, failed: true, ok: true},
		{name: "a text", stream: `data: {"error":"no"}` + "\n\n", data: `{"error":"no"}`, failed: true, ok: true},
		{name: "vLLM before", stream: `data: {"object":"error","message":"no"}` + "\n\n", data: `{"object":"error","message":"no"}`, failed: true, ok: true},
		{name: "Responses", stream: `data: {"type":"error","message":"no"}` + "\n\n", data: `{"type":"error","message":"no"}`, failed: true, ok: true},
		{name: "Responses, failed", stream: "data: {\"type\":\"response.created\",\"response\":{}}\n\ndata: {\"type\":\"response.in_progress\"}\n\n" +
			`data: {"type":"response.failed","response":{"error":{"message":"roles must alternate"}}}` + "\n\n",
			data: `{"type":"response.failed","response":{"error":{"message":"roles must alternate"}}}`, failed: true, ok: true},
		{name: "Messages, after a ping", stream: "event: ping\ndata: {\"type\": \"ping\"}\n\ndata: " + fault + "\n\n", data: fault, failed: true, ok: true},
		{name: "lead-ins alone", stream: "data: {\"type\":\"response.created\"}\n\n"},
		{name: "after comments", stream: ": wait\n\n: wait\n\ndata:\n\ndata: " + fault + "\r\n\r\n", data: fault, failed: true, ok: true},
		{name: "none", stream: `data: {"choices":[],"error":null}` + "\n\n", data: `{"choices":[],"error":null}`, ok: true},
		{name: "empty", stream: `data: {"choices":[],"error":""}` + "\n\n", data: `{"choices":[],"error":""}`, ok: true},
		{name: "in a text", stream: `data: {"text":"\"error\": roles must alternate"}` + "\n\n", data: `{"text":"\"error\": roles must alternate"}`, ok: true},
		{name: "the second", stream: "data: {}\n\ndata: " + fault + "\n\n", data: `{}`, ok: true},
		{name: "not whole", stream: "event: error\ndata: " + fault + "\n"},
		{name: "comments alone", stream: ": wait\n\n"},
		{name: "at the end", stream: "data: " + fault, ended: true, data: fault, failed: true, ok: true},
		{name: "without a frame", stream: fault, ended: true, data: fault, failed: true, ok: true},
		{name: "nothing", stream: "\n", ended: true},
		{name: "lines", lines: true, stream: "\n" + fault + "\n{}\n", data: fault, failed: true, ok: true},
		{name: "lines, none", lines: true, stream: "{}\n" + fault + "\n", data: "{}", ok: true},
		{name: "lines, not whole", lines: true, stream: fault},
		{name: "lines, at the end", lines: true, stream: fault, ended: true, data: fault, failed: true, ok: true},
	} {
		data, failed, ok := FirstEvent([]byte(tt.stream), tt.lines, tt.ended)
		if string(data) != tt.data || failed != tt.failed || ok != tt.ok {
			t.Errorf("%s: got %q, %v, %v", tt.name, data, failed, ok)
		}
	}
}

func FuzzRefusal(f *testing.F) {
	for _, tt := range refusals {
		f.Add(tt.status, []byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if ContextLength(status, body) && ContextLength(400, body) && TemplateRefusal(body) {
			t.Error("both: a refusal for length says nothing about templates")
		}
		for _, lines := range []bool{false, true} {
			_, _, whole := FirstEvent(body, lines, false)
			if _, _, ended := FirstEvent(body, lines, true); whole && !ended {
				t.Error("the end of the stream removed an event")
			}
		}
	})
}
