package checkdigit

// Kind is an identity, tax or insurance number that a state gives to a person.
type Kind struct {
	ID      string // rule id
	Finds   string // what it is, for documentation
	Checked string // what is validated, for documentation
	// layouts and worded are the ways to write it: 0 is a digit, A a letter,
	// anything else itself. A number in one of layouts is found by its check
	// alone; one in worded needs one of words shortly before it.
	layouts, worded []string
	words           []string
	// valid gets digits and letters, in capitals, without separators.
	valid func(id string) bool
	// validWorded replaces valid for worded; nil = valid.
	validWorded func(id string) bool
}

// NeedsWord reports whether the kind is found only after a word that announces
// it.
func (k *Kind) NeedsWord() bool { return k.layouts == nil }

// Requirements describes, for documentation, what a candidate must pass.
func (k *Kind) Requirements() string {
	switch {
	case k.layouts == nil:
		return k.Checked + "; a word that announces it nearby"
	case k.validWorded != nil:
		return k.Checked + "; after a word that announces it, only the date"
	case k.worded != nil:
		return k.Checked + "; without its separators, a word that announces it nearby"
	}
	return k.Checked
}

// Limits of the layouts: leading letters, shortest and longest in bytes.
const (
	MaxLetters = 6
	minLength  = 8
	maxLength  = 21
)

// Kinds are checked as their registers publish it. If two share a layout the
// first valid one wins. They must not be modified.
var Kinds = []Kind{
	{"id-at", "Austrian social insurance numbers", "weights modulo 11", nil, []string{"0000 000000", "0000000000"},
		[]string{"svnr", "sv-nr", "sozialversicherung", "versicherungsnummer"}, validAT, nil},
	{"id-au", "Australian tax file numbers", "weights modulo 11", nil, []string{"000 000 000", "000000000"},
		[]string{"tfn", "tax file"}, weighted(11, 1, 4, 3, 7, 5, 8, 6, 9, 10), nil},
	{"id-be", "Belgian national register numbers", "modulo 97, date", []string{"00.00.00-000.00"}, []string{"00000000000"},
		[]string{"rijksregister", "registre national", "nationalregister", "niss", "insz", "national number", "numéro national"}, validBE, nil},
	{"id-br", "Brazilian CPF numbers", "two check digits modulo 11", []string{"000.000.000-00"}, []string{"00000000000"},
		[]string{"cpf", "cadastro de pessoa"}, validCPF, nil},
	{"id-ca", "Canadian social insurance numbers", "Luhn", nil, []string{"000-000-000", "000 000 000", "000000000"},
		[]string{"sin:", "sin ", "sin#", "social insurance", "assurance sociale"}, validLuhn, nil},
	{"id-ch", "Swiss AHV numbers", "country prefix, EAN-13", []string{"000.0000.0000.00", "000 0000 0000 00", "0000000000000"}, nil, nil, validCH, nil},
	{"id-cl", "Chilean RUT numbers", "modulo 11", nil,
		[]string{"00.000.000-0", "00.000.000-A", "0.000.000-0", "0.000.000-A", "00000000-0", "00000000-A", "0000000-0", "0000000-A"},
		[]string{" rut ", " rut:", " rut.", "(rut", "r.u.t", "rol único", "rol unico"}, validCL, nil},
	{"id-cn", "Chinese resident identity numbers", "modulo 11-2 of ISO 7064, date", []string{"000000000000000000", "00000000000000000A"}, nil, nil, validCN, nil},
	{"id-cz", "Czech and Slovak birth numbers", "modulo 11, date", []string{"000000/0000"}, nil, nil, validCZ, nil},
	{"id-de", "German tax identification numbers", "modulo 11-10 of ISO 7064", nil, []string{"00 000 000 000", "00000000000"},
		[]string{"steuer", "idnr", "id-nr", "tax id", "tin:", "identifikationsnummer"}, validDE, nil},
	{"id-es", "Spanish DNI and NIE numbers", "letter modulo 23", nil, []string{"00000000A", "00000000-A", "A0000000A"},
		[]string{"dni", "nie", "nif", "documento", "identidad"}, validES, nil},
	{"id-fi", "Finnish personal identity codes", "character modulo 31, date", []string{"000000-000A", "000000-0000", "000000A000A", "000000A0000"}, nil, nil, validFI, nil},
	{"id-fr", "French social security numbers", "modulo 97, month", []string{"0 00 00 00 000 000 00", "0 00 00 00 000 000-00", "000000000000000"}, nil, nil, validFR, nil},
	{"id-gb", "British NHS numbers", "weights modulo 11", nil, []string{"000 000 0000", "000-000-0000", "0000000000"}, []string{"nhs"}, validNHS, nil},
	{"id-hr", "Croatian OIB numbers", "modulo 11-10 of ISO 7064", nil, []string{"00000000000"}, []string{"oib"}, mod1110, nil},
	{"id-ie", "Irish PPS numbers", "letter modulo 23", nil, []string{"0000000A", "0000000AA"}, []string{"pps"}, validIE, nil},
	{"id-in", "Indian Aadhaar numbers", "Verhoeff", nil, []string{"0000 0000 0000", "0000-0000-0000", "000000000000"}, []string{"aadhaar", "aadhar", "uidai"}, validIN, nil},
	{"id-it", "Italian tax codes", "check letter", []string{"AAAAAA00A00A000A"}, nil, nil, validIT, nil},
	{"id-jp", "Japanese individual numbers", "weights modulo 11", nil, []string{"0000 0000 0000", "000000000000"},
		[]string{"マイナンバー", "個人番号", "my number", "mynumber", "individual number"}, validJP, nil},
	{"id-kr", "Korean resident registration numbers", "weights modulo 11, date", []string{"000000-0000000"},
		[]string{"000000-0000000", "0000000000000"}, []string{"주민등록", "주민번호", " rrn", "resident registration"}, validKR, datedKR},
	{"id-mx", "Mexican CURP codes", "check digit modulo 10, date", []string{"AAAA000000AAAAAA00", "AAAA000000AAAAAAA0"},
		[]string{"AAAA000000AAAAAA00", "AAAA000000AAAAAAA0"}, []string{"curp", "clave única", "clave unica"}, validMX, datedMX},
	{"id-nl", "Dutch citizen service numbers", "weights modulo 11", nil, []string{"000000000", "0000.00.000"},
		[]string{"bsn", "burgerservice", "sofinummer", "sofi-nummer"}, weighted(11, 9, 8, 7, 6, 5, 4, 3, 2, -1), nil},
	{"id-no", "Norwegian identity numbers", "two check digits modulo 11, date", []string{"000000 00000", "00000000000"}, nil, nil, validNO, nil},
	{"id-pl", "Polish PESEL numbers", "weights modulo 10", nil, []string{"00000000000"}, []string{"pesel"}, weighted(10, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), nil},
	{"id-pt", "Portuguese tax numbers", "weights modulo 11", nil, []string{"000000000", "000 000 000"}, []string{"nif", "contribuinte"}, validPT, nil},
	{"id-ro", "Romanian personal numeric codes", "weights modulo 11", nil, []string{"0000000000000"}, []string{"cnp", "cod numeric"}, validRO, nil},
	{"id-ru", "Russian tax numbers of persons (INN)", "two check digits modulo 11", nil, []string{"000000000000"},
		[]string{"инн", " inn ", " inn:", "(inn"}, validINN, nil},
	{"id-ru-snils", "Russian insurance numbers (SNILS)", "modulo 101", nil, []string{"000-000-000 00", "000-000-000-00", "000 000 000 00", "00000000000"},
		[]string{"снилс", "snils"}, validSNILS, nil},
	{"id-se", "Swedish personal identity numbers", "Luhn, date", []string{"000000-0000", "00000000-0000", "000000+0000"}, nil, nil, validSE, nil},
	{"id-sg", "Singaporean NRIC and FIN numbers", "check letter", nil, []string{"A0000000A"}, []string{"nric", "fin ", "fin:", "identity card"}, validSG, nil},
	{"id-tr", "Turkish identity numbers", "two check digits", nil, []string{"00000000000"}, []string{"kimlik", "tckn", "t.c.", "tc no"}, validTR, nil},
	{"id-tw", "Taiwanese identity numbers", "weights modulo 10", nil, []string{"A000000000"}, []string{"身分證", "身份證", "national id", "id number", "id no"}, validTW, nil},
	{"id-za", "South African identity numbers", "Luhn, date", nil, []string{"0000000000000"}, []string{"id number", "identity number", "id no", "sa id"}, validZA, nil},
}
