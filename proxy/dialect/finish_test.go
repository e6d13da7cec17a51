package dialect

import (
	"strings"
	"testing"
)

func TestFinishReasons(t *testing.T) {
	for want, reasons := range map[string][]string{
		"stop":           {"stop", "STOP", "end_turn", "EndTurn", "COMPLETE", "eos_token", "some_new_word", "stop_sequence"},
		"length":         {"length", "MAX_TOKENS", "max_output_tokens", "model_length"},
		"tool_calls":     {"tool_calls", "tool_use", "TOOL_CALL", "function_call"},
		"content_filter": {"content_filter", "SAFETY", "refusal", "RECITATION"},
		"":               {"", "null"},
	} {
		for _, reason := range reasons {
			if got := finishReason(reason); got != want {
				t.Errorf("%s: got %q, want %q", reason, got, want)
			}
		}
	}
	for _, reason := range []string{"abort", "cancelled", "error_toxic", "pause_turn", "upstream_error", "insufficient_system_resource"} {
		if got := finishReason(reason); (Reply{Finish: got, Text: "a"}).Final() {
			t.Errorf("%s is taken for the end of a whole answer", reason)
		}
	}
}

// An answer is whole if what came says so, in whatever words and form.
func TestWholeAnswers(t *testing.T) {
	const chunk = `data: {"choices":[{"index":0,"delta":{"content":"Tea."}}]}` + "\n\n"
	for _, tt := range []struct {
		name, body    string
		d             Dialect
		stream, final bool
	}{
		{"no reason in one piece", `{"choices":[{"message":{"content":"Tea."}}]}`, Chat{}, false, true},
		{"null in one piece", `{"choices":[{"finish_reason":null,"message":{"content":"Tea."}}]}`, Chat{}, false, true},
		{"an error in one piece", `{"error":{"message":"x"},"choices":[{"message":{"content":"Tea."}}]}`, Chat{}, false, false},
		{"calls and reason stop", `{"choices":[{"finish_reason":"stop","message":{"content":"Tea.","tool_calls":[{"id":"c"}]}}]}`, Chat{}, false, false},
		{"no reason, [DONE]", chunk + "data: [DONE]\n\n", Chat{}, true, true},
		{"no reason, usage", chunk + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n", Chat{}, true, true},
		{"no reason, usage with every chunk", strings.Replace(chunk, "}}]}", `}}],"usage":{"prompt_tokens":1}}`, 1), Chat{}, true, false},
		{"no reason, no mark", chunk, Chat{}, true, false},
		{"abort", chunk + `data: {"choices":[{"delta":{},"finish_reason":"abort"}]}` + "\n\ndata: [DONE]\n\n", Chat{}, true, false},
		{"an error event", chunk + `data: {"error":{"message":"x"}}` + "\n\ndata: [DONE]\n\n", Chat{}, true, false},
		{"messages, [DONE] alone", messagesEvents(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "[DONE]"), Messages{}, true, true},
		{"messages, [DONE] behind", messagesEvents(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`, "[DONE]"), Messages{}, true, true},
		{"messages, no reason", messagesEvents(`{"type":"message_stop"}`), Messages{}, true, true},
		{"messages, cut", messagesEvents(), Messages{}, true, false},
		{"messages, an error", messagesEvents(`{"type":"error","error":{"type":"overloaded_error"}}`), Messages{}, true, false},
		{"messages, a pause", messagesEvents(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`, `{"type":"message_stop"}`), Messages{}, true, false},
	} {
		read := tt.d.Reply
		if tt.stream {
			read = tt.d.ReplyStream
		}
		got, err := read([]byte(tt.body))
		if err != nil || got.Final() != tt.final || got.Final() && got.Text != "Tea." {
			t.Errorf("%s: got %+v, %v, want final %v", tt.name, got, err, tt.final)
		}
	}
}

func messagesEvents(more ...string) string {
	s := `data: {"type":"message_start","message":{"id":"m","type":"message","content":[],"stop_reason":null}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Tea."}}` + "\n\n"
	for _, m := range more {
		s += "data: " + m + "\n\n"
	}
	return s
}

func TestWithoutThinking(t *testing.T) {
	for text, want := range map[string]string{
		"Tea.":                                "Tea.",
		"<think>\nhm</think>\n\nTea.":         "Tea.",
		"<think>never closed":                 "",
		"[THINK]hm[/THINK]Tea.":               "Tea.",
		"<seed:think>hm</seed:think>Tea.":     "Tea.",
		"<thinking>hm</thinking>\nTea.":       "Tea.",
		"<|channel>thought\nhm<channel|>Tea.": "Tea.",
		"<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Tea.<|END_RESPONSE|>":                         "Tea.",
		"<|begin_of_thought|>hm<|end_of_thought|>\n<|begin_of_solution|>Tea.<|end_of_solution|>":             "Tea.",
		"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Tea.<|return|>": "Tea.",
		"<|channel|>analysis<|message|>hm":                     "",
		"<reasoning>a</reasoning><answer>Tea.</answer>":        "Tea.",
		"<analysis>hm</analysis>Tea.":                          "Tea.",
		"<THINK>hm</THINK>\nTea.":                              "Tea.",
		"[thinking]hm[/thinking] Tea.":                         "Tea.",
		"<|thinking|>hm<|/thinking|>Tea.":                      "Tea.",
		"<inner_monologue>hm</inner_monologue>\n\nTea.":        "Tea.",
		"<antThinking>hm</antThinking>Tea.":                    "Tea.",
		"<scratchpad>a</scratchpad><thinking>b</thinking>Tea.": "Tea.",
		"<details type=\"reasoning\" done=\"true\">\n<summary>Thought for 2 s</summary>\nhm\n</details>\nTea.": "Tea.",
		"Here is my thought process: hm\n\nHere is my response: Tea.":                                          "Tea.",
		"<analysis>Tea.</analysis>":                          "<analysis>Tea.</analysis>",
		"<details><summary>Log</summary>x</details>Tea.":     "<details><summary>Log</summary>x</details>Tea.",
		"[Thinking about tea](https://tea.example) is nice.": "[Thinking about tea](https://tea.example) is nice.",
		"<table><tr><td>Tea</td></tr></table>":               "<table><tr><td>Tea</td></tr></table>",
		"Hm, tea.\n</think>\n\nTea.":                         "Tea.",
		"Use [THINK] and [/THINK] around it.":                "Use [THINK] and [/THINK] around it.",
		"It ends with </think> in a line.":                   "It ends with </think> in a line.",
		"The tag <reflection> begins a section.":             "The tag <reflection> begins a section.",
	} {
		if got := withoutThinking(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Every dialect tells what its servers report as an error from what ends
// otherwise.
func TestReportedErrors(t *testing.T) {
	const broken = "data: {\n\n"
	for _, tt := range []struct {
		name   string
		d      Dialect
		stream bool
		body   string
		want   bool
	}{
		{"chat", Chat{}, false, `{"error":{"message":"x"}}`, true},
		{"chat, null", Chat{}, false, `{"error":null,"choices":[{"message":{"content":"Tea."}}]}`, false},
		{"chat, by its type", Chat{}, false, `{"object":"error","message":"x"}`, true},
		{"chat, an event", Chat{}, true, `data: {"error":"x"}` + "\n\n", true},
		{"chat, an event by its name", Chat{}, true, "event: error\ndata: {}\n\n", true},
		{"chat, broken", Chat{}, true, broken, false},
		{"messages", Messages{}, false, `{"type":"error","error":{"type":"overloaded_error"}}`, true},
		{"messages, an event", Messages{}, true, messagesEvents(`{"type":"error","error":{}}`), true},
		{"messages, cut", Messages{}, true, messagesEvents(), false},
		{"messages, broken", Messages{}, true, broken, false},
		{"responses", Responses{}, false, `{"status":"failed","error":{"message":"x"}}`, true},
		{"responses, cancelled", Responses{}, false, `{"status":"cancelled","error":null}`, false},
		{"responses, an event", Responses{}, true, `data: {"type":"error","message":"x"}` + "\n\n", true},
		{"responses, failed", Responses{}, true, `data: {"type":"response.failed","response":{"status":"failed"}}` + "\n\n", true},
		{"responses, broken", Responses{}, true, broken, false},
		{"gemini", Gemini{}, false, `{"error":{"code":500}}`, true},
		{"gemini, an event", Gemini{}, true, `data: {"error":{"code":500}}` + "\n\n", true},
		{"gemini, blocked", Gemini{}, false, `{"promptFeedback":{"blockReason":"SAFETY"}}`, false},
		{"gemini, broken", Gemini{}, true, broken, false},
		{"ollama", Ollama{}, true, `{"error":"x"}`, true},
		{"ollama, none", Ollama{}, true, `{"message":{"content":"Tea."},"done":true}`, false},
	} {
		read := tt.d.Reply
		if tt.stream {
			read = tt.d.ReplyStream
		}
		if got, _ := read([]byte(tt.body)); got.Failed != tt.want {
			t.Errorf("%s: failed %v, want %v", tt.name, got.Failed, tt.want)
		}
	}
}
