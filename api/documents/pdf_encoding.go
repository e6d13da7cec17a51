package documents

import "github.com/ledongthuc/pdf"

// The upper halves of the encodings that simple fonts use. 0 is no character.
var (
	winAnsi = []rune("€\x00‚ƒ„…†‡ˆ‰Š‹Œ\x00Ž\x00\x00‘’“”•–—˜™š›œ\x00žŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ")
	macRoman = []rune("ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø" +
		"¿¡¬√ƒ≈∆«»…\u00a0ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\x00ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ")
)

// encoding returns the characters of the bytes of a simple font: those of its
// base, and those that its encoding calls by name.
func encoding(font pdf.Value, spend func(int)) *[256]rune {
	var table [256]rune
	for c := ' '; c < 0x7f; c++ {
		table[c] = c
	}
	enc := font.Key("Encoding")
	base := enc.Name()
	if enc.Kind() == pdf.Dict {
		base = enc.Key("BaseEncoding").Name()
	}
	upper := winAnsi
	if base == "MacRomanEncoding" {
		upper = macRoman
	}
	copy(table[0x80:], upper)
	names := enc.Key("Differences").Len()
	if enc.Kind() != pdf.Dict || names > maxDifferences {
		return &table
	}
	spend(names * len(table)) // the library looks through all names for each byte
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	named := pdf.Font{V: font}
	for i, r := range []rune(named.Encoder().Decode(string(all[:]))) {
		if i < len(table) && r != rune(i) { // what has no name is its own number
			table[i] = r
		}
	}
	return &table
}
