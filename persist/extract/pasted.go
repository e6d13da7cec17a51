package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// What a person types and what they, or a program in their name, put into a
// message differ in shape. Pasted are:
//
//   - letters: a salutation on a line of its own, and a closing with a name;
//   - forwarded mail: lines that begin with From:, Subject: and the like;
//   - chat logs: lines that begin with a name or a time and a colon;
//   - notes of a program: a tag in brackets begins the message, a line such as
//     "Observation:" or "Stop hook feedback:" begins the rest of it;
//   - prose whose lines are broken at one width.
//
// Prompts that a program or a template speaks in (role, task, numbered rules,
// the user in the third person) are judged by rulesIn.

// pasted returns the parts of a message that do not look typed.
func pasted(s string) []passage {
	if text.MachineTagged(s) {
		return []passage{{0, len(s)}}
	}
	if !strings.Contains(s, "\n") {
		if text.MachineLabel(s) {
			return []passage{{0, len(s)}}
		}
		return nil
	}
	lines := linesOf(s)
	for _, find := range [...]func(string, []passage) []passage{letter, forwarded, labelled, chatLog, wrapped} {
		if cut := find(s, lines); cut != nil {
			return cut
		}
	}
	return nil
}

// cutForwarded removes a forwarded mail that a line announces, to the end of
// the message.
func cutForwarded(s string) string {
	lower := strings.ToLower(s)
	for _, mark := range forwardMark {
		if i := strings.Index(lower, mark); i >= 0 && len(lower) == len(s) {
			if line := s[strings.LastIndexByte(s[:i], '\n')+1 : i]; strings.Trim(line, "-_=>* ") == "" {
				s, lower = s[:i-len(line)], lower[:i-len(line)]
			}
		}
	}
	return s
}

// maxLines bounds the lines of a message whose shape is looked at.
const maxLines = 400

func linesOf(s string) (lines []passage) {
	at := 0
	for line := range strings.Lines(s) {
		if len(lines) == maxLines {
			break
		}
		lines = append(lines, passage{at, at + len(line)})
		at += len(line)
	}
	return lines
}

func lineAt(s string, p passage) string { return strings.TrimSpace(s[p.from:p.to]) }

// labelled cuts from a line on that begins with a label.
func labelled(s string, lines []passage) []passage {
	for _, p := range lines {
		if text.MachineLabel(strings.TrimLeft(s[p.from:], " \t")) {
			return []passage{{p.from, len(s)}}
		}
	}
	return nil
}

// letter cuts a letter or mail: from its salutation to the name under its
// closing.
func letter(s string, lines []passage) []passage {
	for i, p := range lines {
		if !salutes(lineAt(s, p)) {
			continue
		}
		for j := len(lines) - 1; j > i; j-- {
			if closes(lineAt(s, lines[j])) {
				end := lines[j].to
				for k := j + 1; k < len(lines) && k <= j+3; k++ { // the name
					if words := lineAt(s, lines[k]); words != "" && len(strings.Fields(words)) <= 4 && !strings.ContainsAny(words, ".!?") {
						end = lines[k].to
					}
				}
				return []passage{{p.from, end}}
			}
		}
	}
	return nil
}

var (
	salutations = needles{"dear ", "hi ", "hello ", "hey ", "to whom", "good morning ", "sehr geehrte", "liebe ", "lieber ", "hallo ", "guten tag", "cher ", "chère ", "chers ",
		"bonjour", "madame", "monsieur", "estimad", "querid", "hola ", "gentile", "caro ", "cara ", "ciao ", "prezad", "caro ", "olá ", "beste ", "geachte ", "hej ", "bästa ",
		"szanown", "droga ", "drogi ", "sayın ", "sevgili ", "уважаем", "дорог", "здравствуйте", "尊敬的", "亲爱的", "親愛的", "拝啓", "안녕하세요", "प्रिय", "عزيز", "السيد"}
	closings = needles{"regards", "sincerely", "best wishes", "yours", "best,", "cheers,", "many thanks,", "warmly", "love,", "freundlichen grüßen", "freundlichen gruessen", "liebe grüße",
		"viele grüße", "beste grüße", "mfg", "cordialement", "bien à vous", "salutations", "bises", "atentamente", "un saludo", "saludos", "cordiali saluti", "distinti saluti",
		"atenciosamente", "abraços", "cumprimentos", "groet", "hoogachtend", "hälsningar", "z poważaniem", "pozdrawiam", "saygılarımla", "с уважением", "此致", "敬礼", "祝好",
		"敬具", "よろしくお願い", "드림", "올림", "भवदीय", "تحياتي", "مع خالص"}
)

const maxSalutation = 60 // bytes

func salutes(line string) bool {
	if len(line) > maxSalutation || line == "" {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(line)
	return strings.ContainsRune(",:!，：！、、،", last) && begins1(strings.ToLower(line), salutations)
}

func closes(line string) bool {
	return line != "" && len(line) <= maxSalutation && closings.in(strings.ToLower(line)) && !strings.ContainsAny(strings.TrimRight(line, ".!"), ".?")
}

func begins1(s string, any needles) bool {
	for _, n := range any {
		if strings.HasPrefix(s, n) {
			return true
		}
	}
	return false
}

// forwarded cuts a mail with its headers, to the end of the message.
func forwarded(s string, lines []passage) []passage {
	for i, p := range lines {
		headers := 0
		for j := i; j < len(lines) && j < i+6; j++ {
			name, value, ok := strings.Cut(lineAt(s, lines[j]), ":")
			if !ok || strings.TrimSpace(value) == "" || !mailHeaders[fold(name)] {
				break
			}
			headers++
		}
		if headers >= 2 {
			return []passage{{p.from, len(s)}}
		}
	}
	return nil
}

var (
	mailHeaders = setOf("from to cc bcc date sent subject reply-to von an datum gesendet betreff de para fecha asunto enviado objet envoye da a oggetto inviato data assunto van aan onderwerp от кому тема дата")
	forwardMark = needles{"forwarded message", "original message", "weitergeleitete nachricht", "ursprüngliche nachricht", "message transféré", "mensaje reenviado", "messaggio inoltrato",
		"mensagem encaminhada", "doorgestuurd bericht", "пересылаемое сообщение", "转发的邮件", "転送メッセージ"}
)

// chatLog cuts lines of a conversation: at least two that begin with a name or
// a time, by at least two speakers or one of them twice.
func chatLog(s string, lines []passage) (cut []passage) {
	seen := map[string]int{}
	speakers := 0
	for _, p := range lines {
		if who := speakerOf(lineAt(s, p)); who != "" {
			speakers++
			seen[who]++
			cut = append(cut, p)
		}
	}
	if speakers < 2 || len(seen) == speakers && speakers < 3 && !timed(s, cut) {
		return nil
	}
	return cut
}

// timed reports whether the first of the lines begins with a time.
func timed(s string, lines []passage) bool {
	line := strings.TrimLeft(lineAt(s, lines[0]), "[(")
	return line != "" && line[0] >= '0' && line[0] <= '9'
}

// speakerOf returns who says a line of a chat log: "Anna: hi", "[12:03] Bob:
// hi", "<bob> hi".
func speakerOf(line string) string {
	rest := line
	if r := strings.TrimLeft(rest, "[("); r != rest || r != "" && r[0] >= '0' && r[0] <= '9' {
		i := 0
		for i < len(r) && strings.IndexByte("0123456789:./-, APMapm", r[i]) >= 0 {
			i++
		}
		if i < 4 {
			return ""
		}
		rest = strings.TrimLeft(r[i:], "]) -–")
	}
	who, said, ok := strings.Cut(rest, ":")
	first, _ := utf8.DecodeRuneInString(who)
	if !ok || strings.TrimSpace(said) == "" || len(who) > 24 || len(strings.Fields(who)) > 2 || !(unicode.IsUpper(first) || unicode.Is(unicode.Lo, first)) ||
		strings.HasPrefix(said, "//") || ownLabels[fold(who)] {
		return ""
	}
	return who
}

// ownLabels begin lines in which people list what they have to say of
// themselves.
var ownLabels = setOf(`name age job work home city diet birthday allergies hobbies languages family budget context background goal note question update task request stack os editor
	framework language deadline date time place email phone address
	beruf alter wohnort geburtstag hobbys hinweis frage ziel nom metier ville nombre edad trabajo ciudad nota pregunta`)

// wrapped cuts prose whose lines are broken at one width, as in a mail or on a
// page: at least five lines in a row, of 50 to 100 signs, of which most end
// within a sentence.
func wrapped(s string, lines []passage) []passage {
	const fewest, shortest, longest = 5, 50, 100
	for i := 0; i < len(lines); i++ {
		j, within, widest, narrowest := i, 0, 0, longest
		for ; j < len(lines); j++ {
			n := utf8.RuneCountInString(lineAt(s, lines[j]))
			if n < shortest || n > longest {
				break
			}
			widest, narrowest = max(widest, n), min(narrowest, n)
			if last, _ := utf8.DecodeLastRuneInString(lineAt(s, lines[j])); unicode.IsLetter(last) || last == ',' {
				within++
			}
		}
		if j-i >= fewest && within*3 >= (j-i)*2 && widest-narrowest <= 24 {
			return []passage{{lines[i].from, len(s)}}
		}
		i = max(i, j)
	}
	return nil
}

// rules are the parts of a message that give rules for a task, which are no
// wishes of the person's for later conversations.
type rules struct {
	all    bool // of what does not speak of the speaker
	whole  bool // of everything
	listed []passage
}

// rulesIn finds the rules in a message: all of a prompt, and the items of a list
// that is not introduced as the speaker's own.
func rulesIn(typed string) (r rules) {
	switch score := promptScore(typed); {
	case score >= 4:
		r.whole = true
		return r
	case score >= 3:
		r.all = true
		return r
	}
	if !strings.Contains(typed, "\n") {
		return r
	}
	own := true // what introduces the list is the speaker's
	for _, p := range linesOf(typed) {
		line := lineAt(typed, p)
		if line == "" {
			continue
		}
		if !listItem(line) {
			own = speaksOfSelf(line)
		} else if !own {
			r.listed = append(r.listed, p)
		}
	}
	return r
}

// hold reports whether a candidate at typed[at:] is a rule for a task.
func (r *rules) hold(at int, c *Candidate) bool {
	if r.whole {
		return true
	}
	listed := r.all
	for _, p := range r.listed {
		listed = listed || p.from <= at && at < p.to
	}
	if !listed {
		return false
	}
	for i := range c.words {
		if c.words[i].in(inPersonal) {
			return false
		}
	}
	return true
}

// listItem reports whether a line begins with a number or a bullet.
func listItem(line string) bool {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 {
		return digits < 3 && len(line) > digits+1 && strings.IndexByte(".)", line[digits]) >= 0 && line[digits+1] == ' '
	}
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "• ")
}

// speaksOfSelf reports whether a line speaks of its speaker, or is to be
// remembered.
func speaksOfSelf(line string) bool {
	if hasIdeographs(line) {
		return strings.ContainsAny(line, "我私僕俺") || readLead(line).class.Has(leadOwn)
	}
	var space [stackWords]word
	ws := appendWords(space[:0], line)
	for i := range ws {
		if ws[i].in(inPersonal) || leadSubjects[ws[i].folded] {
			return true
		}
	}
	return readLead(line).class.Has(leadOwn)
}

// promptScore tells how much of a prompt a message has, which gives a model a
// role or a task with rules, as a program, a template or the caller of a
// sub-agent does: it says "the user" of the user, assigns a role, has headings,
// numbered rules and orders. From 3 on it looks like one.
func promptScore(own string) (score int) {
	lower := strings.ToLower(own[:min(len(own), 4<<10)])
	if thirdPerson.in(lower) {
		score += 2
	}
	if roleGiven.in(lower[:min(len(lower), 400)]) {
		score += 2
	}
	numbered, bullets, headings, ordering := 0, 0, 0, 0
	for line := range strings.Lines(lower) {
		switch t := strings.TrimSpace(line); {
		case strings.HasPrefix(t, "#") && strings.HasPrefix(strings.TrimLeft(t, "#"), " "):
			headings++
		case !listItem(t):
		case t[0] >= '0' && t[0] <= '9':
			numbered++
		default:
			bullets++
		}
	}
	for _, o := range promptOrders {
		ordering += min(strings.Count(lower, o), 3)
	}
	if len(own) > promptBytes {
		score++
	}
	if score < 2 && strings.Count(lower, "i ")+strings.Count(lower, "my ")+strings.Count(lower, "i'm") > 3 {
		score -= 2 // what somebody has to say of themselves
	}
	return score + min(headings, 2) + min(numbered/2, 2) + min(bullets/3, 1) + min(ordering/2, 2)
}

// promptBytes is the length from which a message that gives orders looks
// written in advance.
const promptBytes = 600

var (
	promptOrders = [...]string{"you must", "you should", "you will", "make sure", "do not ", "don't ", "never ", "always ", "ensure ", "your task", "your job", "your role",
		"respond with", "be sure", "du musst", "achte darauf", "tu dois", "vous devez", "debes ", "devi ", "você deve", "ты должен", "必须", "请勿", "しなければ", "해야"}
	thirdPerson = needles{"the user's", "the user ", "the user.", "the user,", "der benutzer", "des benutzers", "l'utilisateur", "el usuario", "l'utente", "o usuário", "пользовател", "用户", "ユーザー", "사용자"}
	roleGiven   = needles{"you are a ", "you are an ", "you're a ", "you are the ", "act as ", "your task", "your job is", "your role", "du bist ein", "sie sind ein", "tu es un", "vous êtes un", "eres un",
		"sei un ", "você é um", "ты —", "вы —", "你是一", "あなたは", "당신은"}
)

// SpeaksOfSelf reports whether most sentences of a message speak of its
// speaker.
func SpeaksOfSelf(message string) bool {
	all, own := 0, 0
	var space [stackWords]word
	for _, s := range text.Sentences(ownWords(message)) {
		ws := appendWords(space[:0], s)
		if len(ws) < minStatementWords {
			continue
		}
		all++
		for i := range ws {
			if ws[i].in(inPersonal) || leadSubjects[ws[i].folded] {
				own++
				break
			}
		}
	}
	return 2*own > all
}
