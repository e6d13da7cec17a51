package redact

import (
	"strings"
)

// countNouns are what large numbers count, in what people write to assistants: a number in front of one is no phone number and no
// social security number.
var countNouns = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`users people customers members accounts messages downloads subscribers followers views visits clicks installs requests
		calls events rows records bytes tokens points miles steps likes votes copies shares units pixels years nutzer benutzer menschen kunden mitglieder
		nachrichten anfragen punkte aufrufe zeilen utilisateurs personnes abonnés téléchargements lignes usuarios personas clientes mensajes descargas puntos filas`) {
		m[w] = true
	}
	return m
}()

// countKinds may stand between a number and what it counts.
var countAdjectives = " active monthly daily registered unique million billion aktive aktiven "

// counts reports that the number which ends at i says how many of something there are.
func (m *numberMatcher) isCount(i int) bool {
	rest := strings.ToLower(m.text[i:min(len(m.text), i+40)])
	if !strings.HasPrefix(rest, " ") {
		return false
	}
	fields := strings.Fields(rest)
	for len(fields) > 0 && strings.Contains(countAdjectives, " "+fields[0]+" ") {
		fields = fields[1:]
	}
	return len(fields) > 0 && countNouns[strings.TrimRight(fields[0], `.,;:!?)"'`)]
}
