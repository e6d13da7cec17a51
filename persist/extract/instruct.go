package extract

import (
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"
)

// instructs reports whether text is shaped like an attempt to instruct a model
// that reads it later: to drop its rules, to speak as a role, to call a tool,
// or to reveal its prompt. Such text is kept for review and never recalled.
// Shape is not meaning, so it finds only blunt attempts; what protects a model
// is the fence around recalled text.
//
// Disguised text is read without its disguise: see plain and decoded.
func instructs(text string) bool {
	if len(text) > maxInstruct {
		text = text[:maxInstruct]
	}
	return scan(text).mayInstruct() && instructing(text)
}

// instructing is instructs for text that mayInstruct and is no longer than
// maxInstruct.
func instructing(text string) bool {
	if hiddenTags(text) || instructionShaped(text) || decoded(text, instructionShaped) {
		return true
	}
	p := plain(text)
	return p != text && instructionShaped(p)
}

func instructionShaped(text string) bool { return holdsRoleToken(text) || overridesRules(text) }

// overridesRules reports whether text tells a model to drop its rules or to say
// something instead.
func overridesRules(text string) bool {
	var space [passageWords]word
	ws := appendWords(space[:0], text)
	for i := range ws {
		if !ws[i].known.more.drops {
			continue
		}
		// A verb of dropping, and within a few words what to drop, or what to
		// say instead.
		standing, rule := false, false
		for j := i + 1; j < len(ws) && j <= i+9; j++ {
			w := ws[j].folded
			if ws[j].clause && w != "and" && w != "or" && !ruleWords[w] && !standingWords[w] && !sayVerbs[w] {
				break
			}
			standing, rule = standing || standingWords[w], rule || ruleWords[w]
			if standing && rule || sayVerbs[w] && ands[ws[j-1].folded] {
				return true
			}
		}
	}
	for i := range ws {
		if phrases().override.prefix(ws[i:]) > 0 {
			return true
		}
	}
	return false
}

// holdsRoleToken reports whether text holds one of roleTokens, in any case.
func holdsRoleToken(text string) bool {
	for i, r := range text {
		if r < utf8.RuneSelf && r != '<' && r != '[' && r != '#' && r != '"' && r != '\n' {
			continue
		}
		for _, t := range roleTokensBy[unicode.ToLower(r)] {
			if beginsLower(text[i:], t) {
				return true
			}
		}
	}
	return false
}

// attemptWords are words of which overridesRules needs one.
var attemptWords = func() map[string]bool {
	all := maps.Clone(dropVerbs)
	maps.Copy(all, overrideWords)
	return all
}()

// roleTokensBy are roleTokens by their first character.
var roleTokensBy = func() map[rune][]string {
	out := map[rune][]string{}
	for _, t := range roleTokens {
		r, _ := utf8.DecodeRuneInString(t)
		out[r] = append(out[r], t)
	}
	return out
}()

// beginsLower reports whether text in lower case begins with token.
func beginsLower(text, token string) bool {
	for _, want := range token {
		r, n := utf8.DecodeRuneInString(text)
		if n == 0 || unicode.ToLower(r) != want {
			return false
		}
		text = text[n:]
	}
	return true
}

// overrideWords hold one word of each phrase in phrases.override, the rarest; a
// test checks it.
var overrideWords = setOf(`developer dan bound longer unrestricted restrictions anything instructions now obey prompt system webpage page resume
	email document text above everything said previous rules programming jailbreak god instructed instruido pagina webseite send exfiltrate`)

// maxInstruct is how much of a text is read, in bytes.
const maxInstruct = 16 << 10

// roleTokens are signs of chat templates and tool calls that prose does not
// hold.
var roleTokens = [...]string{
	"<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|endoftext|>", "<|start_header_id|>", "<|eot_id|>",
	"[/inst]", "[inst]", "<<sys>>", "<</sys>>", "<start_of_turn>", "<end_of_turn>", "<tool_call>", "</tool_call>", "<function_call",
	"<function_calls>", "<invoke name=", "<tool_use>", "[tool_calls]", "<system>", "</system>", "### system:", "### instruction:",
	"\nsystem:", "<function=", "</remora-memory", "[system notice]", "[system message]", "[system override]", "忽略之前", "忽略以上", "忽略所有", "无视之前", "以前の指示", "これまでの指示", "指示を無視", "이전 지시", "지시사항을 무시",
	"игнорируй все", "игнорируй пред", "игнорируйте пред", "забудь все", "تجاهل التعليمات", "पिछले निर्देश", "\"tool_calls\":", "\"function_call\":", "<remora-memory",
}

func setOf(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// dropVerbs, standingWords, ruleWords: "ignore all previous instructions", in
// the languages of the lexicon and some more.
var (
	dropVerbs = setOf(`ignore ignoring disregard forget override bypass neglect discard dismiss skip overlook ignored
		ignoriere ignorieren vergiss vergesse missachte missachten umgehe ignorez oublie oubliez oublier negligez contourne
		ignora ignore ignoren olvida olvide olvidate omite descarta desestima ignorar esqueca esquece desconsidere ignori dimentica trascura`)
	standingWords = setOf(`previous previously prior above earlier preceding all any everything every those your these initial original system the
		everthing allen vorherigen vorherige bisherigen alle obigen deine diese vorigen precedentes precedente anterieures toutes tous ces tes vos dessus
		anteriores anterior previas previa todas todos tus sus estas anterior precedenti tutte`)
	ruleWords = setOf(`instruction instructions prompt prompts rules guidelines guardrails directives directions commands restrictions programming told
		anweisungen anweisung instruktionen regeln vorgaben befehle instructions consignes regles directives
		instrucciones instruccion reglas indicaciones ordenes instrucoes regras istruzioni regole`)
)

// sayVerbs after "and": "ignore the webpage and state that ...".
var (
	ands     = setOf("and et und y e then")
	sayVerbs = setOf("state say print output claim declare reply respond answer reveal indicate write tell indiquez dites declarez declara indica responde erklare sage declare")
)

// exfiltrates reports whether text makes a client load or follow an address
// that carries data away: an image with a query, or a link in whose query a
// model is to fill something in. Users may quote such a link; other text with
// one leaks the conversation. Plain links are in every other answer, and
// harmless.
func exfiltrates(text string) bool {
	for rest := text; ; {
		i := strings.Index(rest, "](")
		if i < 0 {
			return false
		}
		image := strings.LastIndexByte(rest[:i], '[') > 0 && rest[strings.LastIndexByte(rest[:i], '[')-1] == '!'
		rest = rest[i+2:]
		target, _, closed := strings.Cut(rest, ")")
		query := closed && strings.Contains(target, "://") && strings.ContainsAny(target, "?&")
		if query && (image || strings.ContainsAny(target, "{}[]<>") || strings.Contains(target, "%7B")) {
			return true
		}
	}
}

// links reports whether text holds a link that a reader might follow or a
// renderer might load.
func links(text string) bool {
	return strings.Contains(text, "://") || strings.Contains(text, "](") || strings.Contains(text, "www.")
}
