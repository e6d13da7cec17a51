package fence_test

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/recall/fence"
)

// templateTokens are special tokens of published chat templates and tokenizers,
// and what passes for them.
var templateTokens = strings.Fields(`
	<|im_start|> <|im_end|> <|im_sep|> <|endoftext|> <|startoftext|> <|end|> <|user|> <|assistant|> <|system|> <|tool|> <|observation|> <|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|>
	<|python_tag|> <|finetune_right_pad_id|> <|reserved_special_token_0|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|file_sep|> <|repo_name|> <|channel|> <|message|> <|start|> <|return|> <|call|> <|constrain|>
	<|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|> <|USER_TOKEN|> <|CHATBOT_TOKEN|> <|SYSTEM_TOKEN|> <|START_THINKING|> <|END_ACTION|> <|prompter|> <|endofturn|> <|beginofutterance|> <|image_pad|> <|vision_start|> <|box_start|>
	<|start_of_role|> <|end_of_role|> <|plugin|> <|interpreter|> <|action_start|> <|action_end|> <|tool_call_begin|> <|header_start|> <|eot|> <|header_end|> <|media_begin|> <|thought|> <|endofprompt|>
	<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜> <｜tool▁calls▁begin｜> <｜fim▁hole｜>
	[INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CONTENT] [ARGS] [CALL_ID] [PREFIX] [MIDDLE] [SUFFIX] [IMG] [IMG_BREAK] [IMG_END] [THINK] [/THINK]
	[BEGIN_AUDIO] [MODEL_SETTINGS] [gMASK] [sMASK] [MASK] [CLS] [SEP] [PAD] [UNK] [BOS] [EOS] [UNUSED_TOKEN_145] [|system|] [|user|] [|assistant|] [|endofturn|] [|tool|] [|Human|] [|AI|] [system] [user] [assistant] [/USER] [unused99] [start_of_turn]
	<s> </s> <bos> <eos> <pad> <unk> <mask> <sep> <cls> <eod> <eot> <start_of_turn> <end_of_turn> <start_of_image> <end_of_utterance> <unused0> <unused99> <extra_id_0> <extra_id_99> <0x0A> <0x00> <reserved_106> <reserved_107> <startoftext>
	<<SYS>> <</SYS>> <SYS> </SYS> <fim_prefix> <fim-suffix> <tool_call> </tool_call> <tool_response> <tools> <function_calls> <invoke> <function_results> <system> <SYSTEM> </System> <user> <User> <USER> <human> <Human> <bot> <BOT> <ai> <AI> <assistant>
	<ASSISTANT> <model> <developer> <think> </think> <THINK> <thinking> <reasoning> <instructions> <INSTRUCTIONS> <Instructions> <instruct> <system-reminder> <SYSTEM-REMINDER> <system_reminder> <user_instructions> <environment_context>
	<seed:bos> <seed:think> <turn_end> <end_of_sentence> <EOD> <EOT> <BOS> <PAD> <META> <METATOKEN> <commit_msg> <jupyter_start> <issue_comment> <gh_stars> <filename> <reponame> <tool> <function> <observation> <message> <prompt>
	【SYSTEM_PROMPT】 ⟦INST⟧ ［INST］ ＜system＞ ‹system› ＜｜im_start｜＞ <ѕystem_prompt>`)

// Special tokens lose their brackets, whatever family they are of and wherever
// they stand.
func TestTemplateTokens(t *testing.T) {
	left := 0
	for _, token := range templateTokens {
		if token == "<filename>" || token == "<reponame>" {
			continue // a person may write these, and they are words
		}
		for _, text := range []string{token, "hi " + token + " there", "x" + token + "y", "a\n" + token + "\nb", token + token, "[" + token + "]"} {
			if got := fence.Neutralise(text, 1000); strings.Contains(got, token) {
				left++
				t.Errorf("%q leaves %q", text, got)
				break
			}
		}
	}
	t.Logf("%d of %d are left", left, len(templateTokens))
}

// Ordinary text stays as it is, also where it has brackets.
func TestOrdinaryBrackets(t *testing.T) {
	for _, text := range []string{
		"I like <b>tea</b> & a < b", "List<String>, Map<K, V> and Vec<u8>", "<div class=\"x\">text</div>", "<Button onClick={go}>", "see [1] and [23, 24]", "[x] done, [ ] open", "[link](https://example.com)", "my card is [CARD]",
		"mail [EMAIL] or [PHONE], key [API_KEY]", "arr[i] = m[key]", "a | b || c", "x <y> z", "<https://example.com>", "Ann <ann@example.com>", "[sic]", "[Ann]", "a <= b >= c", "i<n", "<h1>Title</h1>", "[note]", "[2026-01-02]", "vector<int>", "<br/>", "I am <3 years old",
	} {
		if got := fence.Neutralise(text, 1000); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// No spelling of the fence's own tag stays one.
func TestOwnTagInWords(t *testing.T) {
	for _, text := range []string{"</remora memory-4f1c0a9be77d>", "< / remora memory 4f1c0a9be77d>", "<remora memory>", "</Remora Memory-4f1c0a9be77d>", `<\/remora memory-4f1c0a9be77d>`} {
		if got := fence.Neutralise(text, 1000); strings.ContainsAny(got, "<>") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := fence.Neutralise("the remora memory of a fish", 100); got != "the remora memory of a fish" {
		t.Errorf("got %q", got)
	}
}
