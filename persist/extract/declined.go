package extract

import "strings"

// Words by which people ask in other languages than English not to keep a
// message: a verb of keeping, a negation and "this" close together at the end
// of a clause.
var (
	keepVerbs = setOf(`merk merke merken speicher speichere speichern notier notiere behalte
		retiens retenez retenir memorise memorisez enregistre enregistrez garde gardez note notez conserve conservez
		guardes guarde guardar recuerdes recuerde recordes memorices memorice almacenes registres anotes apuntes
		ricordare ricordarlo ricordarti memorizzare memorizzarlo salvare salvarlo conservare conservarlo registrare registrarlo annotare annotarlo
		memorize memorizes salve salves lembre lembres registre grave graves armazene anote
		onthoud onthouden bewaar bewaren opslaan noteer opslaat
		запоминай запоминайте запомни сохраняй сохраняйте записывай записывайте храни
		zapamietuj zapisuj spara sparar husk lagre gem hatirlama kaydetme saklama
		تتذكر تحفظ تخزن تسجل تحتفظ याद सेव सहेजें सहेजो`)
	keepNegations = setOf("nicht ne n pas no non nao niet не nie inte ikke لا मत न")
	keepObjects   = setOf("das dies dieses ca cela ceci le esto eso lo questo cio isso isto dit dat это этого tego det dette هذا ذلك यह इसे ये इसको")
	// statedBy are subjects that make a statement of it: "ich merke mir das
	// nicht".
	statedBy     = setOf("ich wir er sie je nous il elle yo io eu ik wij я мы он она أنا मैं हम")
	keepPolitely = setOf("bitte please svp per favor por favore alsjeblieft пожалуйста prosze")
)

// keptReach is how many words such a request may take.
const keptReach = 6

// declinesToKeep recognises "merk dir das nicht", "no guardes esto", "не
// запоминай это".
func declinesToKeep(ws []word) bool {
	for i := range ws {
		if !keepVerbs[ws[i].folded] {
			continue
		}
		from, to := i, i
		for from > 0 && !ws[from].clause && i-from < keptReach {
			from--
		}
		for to+1 < len(ws) && !ws[to+1].clause && to-i < keptReach {
			to++
		}
		negated, what, last, stated := -1, -1, i, false
		for k := from; k <= to; k++ {
			w := ws[k].folded
			switch {
			case statedBy[w]:
				stated = true
			case keepNegations[w]:
				negated = k
			case keepObjects[w] && k != i:
				what = k
			}
		}
		if strings.HasSuffix(ws[i].folded, "lo") || ws[i].folded == "hatirlama" || ws[i].folded == "kaydetme" || ws[i].folded == "saklama" {
			what = i // "non ricordarlo"
			if ws[i].folded[len(ws[i].folded)-1] == 'a' || ws[i].folded == "kaydetme" {
				negated = i
			}
		}
		if negated < 0 || what < 0 || stated {
			continue
		}
		last = max(last, negated, what)
		if last-min(i, negated, what) > keptReach {
			continue
		}
		if next := last + 1; next == len(ws) || ws[next].clause || keepPolitely[ws[next].folded] || ws[next].folded == "रखना" || ws[next].folded == "करना" {
			return true
		}
	}
	return false
}

// declinedRuns are such requests in scripts without spaces.
var declinedRuns = needles{"不要记", "别记住", "不要保存", "别保存", "不要存", "不用记", "不要記", "別記住", "別保存", "覚えないで", "覚えなくて", "記憶しないで", "保存しないで",
	"記録しないで", "ここだけの話", "ここだけの秘密", "기억하지 마", "기억하지마", "저장하지 마", "저장하지마", "기록하지 마", "기록하지마", "우리끼리만", "只有我们知道", "只有我們知道"}
