package text

import (
	"strings"
	"sync"
)

// stopWords are English words that carry no topic: function words with their
// contractions, and single letters that are words.
var stopWords = WordSet(`a about above after again against ain't all also am an and any are aren't as at be because been before
being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each
either else ever few for from further get gets getting got had hadn't has hasn't have haven't having he he'd he'll he's her here here's
hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its itself just let let's
may me might more most mustn't my myself neither no nor not of off on once one's only onto or other ought our ours ourselves
out over own per quite rather really same shall shan't she she'd she'll she's should shouldn't since so some such than that
that'd that'll that's the their theirs them themselves then there there's these they they'd they'll they're they've this those though
through thus to too under until unto up upon us very was wasn't we we'd we'll we're we've were weren't what what's whatever
when when's where where's whether which whichever while who who'd who'll who's whoever whom whose why why's will with within
without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
oh hey hi hello ok okay um uh well please thanks thank s t d ll m re ve`)

// firstPersonWords are how people speak of themselves.
var firstPersonWords = WordSet(`i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves`)

// timeWords say when something happens: a passage with one can answer "when".
var timeWords = WordSet(`yesterday today tomorrow tonight ago last next week weekend month year years weeks months days recently
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
november december summer winter spring fall autumn since soon morning evening`)

// IsTimeStem reports whether a stem is that of a word that says when.
func IsTimeStem(stem string) bool { return timeStems()[stem] }

var timeStems = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range timeWords {
		m[Stem(English, w)] = true
	}
	return m
})

// numberWords are numbers: a passage with one can answer "how many".
var numberWords = WordSet(`one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand
couple few several dozen twice once first second third half`)

// preferenceWords say how the speaker likes things to be; orderWords do so at
// the start of a sentence.
var (
	preferenceWords = WordSet(`prefer prefers preferred preferring preference preferences`)
	orderWords      = WordSet(`always never`)
)

// irregular maps irregular forms to the base form, which has the stem of the
// regular ones.
var irregular = forms(`be:was,were,been,being become:became begin:began,begun bend:bent bet:betted bite:bit,bitten bleed:bled
blow:blew,blown break:broke,broken breed:bred bring:brought build:built burn:burnt buy:bought catch:caught choose:chose,chosen
cling:clung come:came creep:crept deal:dealt dig:dug draw:drew,drawn dream:dreamt drink:drank,drunk drive:drove,driven eat:ate,eaten
fall:fell,fallen feed:fed feel:felt fight:fought find:found flee:fled fly:flew,flown forbid:forbade,forbidden forget:forgot,forgotten
forgive:forgave,forgiven freeze:froze,frozen give:gave,given go:went,gone grind:ground grow:grew,grown hang:hung hear:heard
hide:hid,hidden hold:held keep:kept kneel:knelt know:knew,known lay:laid lead:led lean:leant leap:leapt learn:learnt leave:left
lend:lent lie:lain light:lit lose:lost make:made mean:meant meet:met mistake:mistook,mistaken pay:paid prove:proven ride:rode,ridden
ring:rang,rung rise:rose,risen run:ran say:said see:saw,seen seek:sought sell:sold send:sent sew:sewn shake:shook,shaken
shine:shone shoot:shot show:shown shrink:shrank,shrunk sing:sang,sung sink:sank,sunk sit:sat sleep:slept slide:slid smell:smelt
sow:sown speak:spoke,spoken speed:sped spell:spelt spend:spent spill:spilt spin:spun spring:sprang,sprung stand:stood
steal:stole,stolen stick:stuck sting:stung strike:struck,stricken swear:swore,sworn sweep:swept swell:swollen swim:swam,swum
swing:swung take:took,taken teach:taught tear:tore,torn tell:told think:thought throw:threw,thrown understand:understood
wake:woke,woken wear:wore,worn weave:wove,woven weep:wept win:won wind:wound withdraw:withdrew,withdrawn write:wrote,written
child:children person:people man:men woman:women foot:feet tooth:teeth mouse:mice goose:geese  wife:wives knife:knives
shelf:shelves half:halves wolf:wolves kid:kiddo good:better,best bad:worse,worst`)

func forms(table string) map[string]string {
	m := map[string]string{}
	for _, row := range strings.Fields(table) {
		base, list, _ := strings.Cut(row, ":")
		for _, f := range strings.Split(list, ",") {
			m[f] = base
		}
	}
	return m
}
