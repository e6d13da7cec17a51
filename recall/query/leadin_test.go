package query

import "testing"

func TestLeadInsAreCut(t *testing.T) {
	for _, c := range [][2]string{
		{"Quick question: which lakes do we fish in?", "which lakes do we fish in?"},
		{"Sorry to bother you again, but where do I park the van?", "where do I park the van?"},
		{"I can't remember right now, when does the choir meet?", "when does the choir meet?"},
		{"One more thing before I go: who feeds the rabbit?", "who feeds the rabbit?"},
		{"Could you please tell me where I teach?", "where I teach?"},
		{"Do you know which bus my son takes?", "which bus my son takes?"},
		{"hey, just wondering, what did the vet say?", "what did the vet say?"},
		{"Who lends us the van, do you remember?", "Who lends us the van?"},
		{"When is the recital? thanks!", "When is the recital?"},
		{"Kannst du mir bitte sagen, wer unser Bad renoviert?", "wer unser Bad renoviert?"},
		{"Entschuldige die Störung, aber wo wohnt Hiltrud?", "wo wohnt Hiltrud?"},
		{"Wann ist die Probe, weißt du das noch?", "Wann ist die Probe?"},
		{"Excuse-moi de te déranger, mais où habite ma tante ?", "où habite ma tante ?"},
		{"Perdona que te moleste, ¿quién es mi jefe?", "quién es mi jefe?"},
		{"Scusa se ti disturbo, chi è il mio capo?", "chi è il mio capo?"},
		{"Desculpa incomodar, quando é a consulta?", "quando é a consulta?"},
		{"Sorry dat ik stoor, maar wie is mijn baas?", "wie is mijn baas?"},
		{"Извини за беспокойство, подскажи, сколько мы платим?", "сколько мы платим?"},
		{"عذراً، هل تتذكر أين أسكن؟", "أين أسكن؟"},
		{"すみません、ちょっと聞きたいのですが、上司は誰でしたっけ？", "上司は誰でしたっけ？"},
		{"不好意思打扰一下，请问我的上司是谁？", "我的上司是谁？"},
		{"माफ़ कीजिए, मुझे बताइए मेरे बॉस कौन हैं?", "मेरे बॉस कौन हैं?"},
		{"죄송하지만 제 상사가 누구예요?", "제 상사가 누구예요?"},
	} {
		if got := cutLeadIn(c[0]); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
	for _, whole := range []string{
		"How quick is the load balancer these days?", "Where do I go when it rains?", "which thing did I forget at the gym?", "I forgot my umbrella at Jana's, where was that?",
		"thanks, that's all for now", "do you remember me?", "Was ist eine Störung?", "sorry", "What is the right time to plant beans?", "你好", "What do I need, and when?",
	} {
		if got := cutLeadIn(whole); got != whole {
			t.Errorf("%q: got %q, want all of it", whole, got)
		}
	}
}
