package redact

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// nationalExamples are published by the registers or made up with valid check
// digits.
var nationalExamples = map[string][]string{
	"id-at": {"SVNR 1237 010180"}, "id-au": {"my TFN is 123 456 782"}, "id-be": {"85.07.30-033.28"},
	"id-br": {"111.444.777-35", "CPF 11144477735"}, "id-ca": {"SIN: 046 454 286"}, "id-ch": {"756.9217.0769.85", "7569217076985"},
	"id-cl": {"RUT 12.345.678-5", "RUT: 12345678-5"}, "id-ru": {"ИНН 500100732259"}, "id-ru-snils": {"СНИЛС 112-233-445 95"},
	"id-cn": {"11010519491231002X", "11010519491231002x"}, "id-cz": {"736028/5163"}, "id-de": {"Steuer-ID 86 095 742 719"},
	"id-es": {"DNI 12345678Z", "NIE: X1234567L"}, "id-fi": {"131052-308T"}, "id-fr": {"2 55 08 14 168 025 38"},
	"id-gb": {"NHS number 943 476 5919"}, "id-hr": {"OIB 69435151530"}, "id-ie": {"PPS 1234567T"},
	"id-in": {"Aadhaar 2345 6789 0124"}, "id-it": {"RSSMRA85T10A562S"}, "id-jp": {"マイナンバー 123456789018"},
	"id-kr": {"800901-1234563"}, "id-mx": {"BOXW310820HNERXN09"}, "id-nl": {"BSN 111222333"}, "id-no": {"15108695088"},
	"id-pl": {"PESEL 44051401359"}, "id-pt": {"contribuinte 123456789"}, "id-ro": {"CNP 1800101221144"},
	"id-se": {"811228-9874", "19811228-9874"}, "id-sg": {"NRIC S1234567D"}, "id-tr": {"T.C. kimlik 10000000146"},
	"id-tw": {"身份證 A123456789"}, "id-za": {"ID number 8001015009087"},
}

// TestNationalIDs checks that each id is found only with valid check digits
// and, if it needs a word, with the word.
func TestNationalIDs(t *testing.T) {
	for n, id := range checkdigit.Kinds {
		t.Run(id.ID, func(t *testing.T) {
			cfg := Config{}
			for _, rule := range Rules() {
				if rule.ID != id.ID {
					cfg.Disable = append(cfg.Disable, rule.ID)
				}
			}
			r, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(nationalExamples[id.ID]) == 0 {
				t.Fatal("no example")
			}
			for _, in := range nationalExamples[id.ID] {
				got, findings := r.Redact(in + ", thanks")
				if !strings.HasSuffix(got, "[NATIONAL_ID], thanks") || len(findings) != 1 || !findings[0].Personal {
					t.Errorf("%q became %q", in, got)
					continue
				}
				number := in[findings[0].Start:findings[0].End]
				if got, _ := r.Redact("see " + number); id.NeedsWord() && got != "see "+number {
					t.Errorf("without a word %q became %q", number, got)
				}
				if got, _ := r.Redact(in + "5"); got != in+"5" {
					t.Errorf("longer: %q became %q", in+"5", got)
				}
				missed := 0
				for i := range number { // any digit changes the check
					for _, c := range []byte{'0' + (number[i]-'0'+1)%10, '0' + (number[i]-'0'+3)%10} {
						if !isDigit(number[i]) {
							continue
						}
						wrong := strings.Replace(in, number, number[:i]+string(c)+number[i+1:], 1)
						if got, _ := r.Redact(wrong); got != wrong {
							missed++
						}
					}
				}
				if missed > len(number)/3 {
					t.Errorf("%d changed digits of %q were not noticed", missed, number)
				}
			}
			if rule := builtIn()[familyPersonal>>8][ruleNational&0xff+ruleID(n)]; rule.ID != id.ID {
				t.Errorf("rule %s has the wrong number", rule.ID)
			}
		})
	}
}

// TestNotNationalIDs checks numbers of everyday texts, each with a misleading
// word.
func TestNotNationalIDs(t *testing.T) {
	r := newRedactor(t)
	for _, text := range []string{
		"order 20240501-1234 of 2024", "build 202405011234567", "since 1699999999999 ms", "sin 123456789 is no number", "ISBN 978-3-16-148410-0",
		"chapter 12.34.56-789.01", "RSSMRA85T10A562X", "commit 0123456789ab", "A123456789",
	} {
		if got, _ := r.Redact(text); strings.Contains(got, "[NATIONAL_ID]") {
			t.Errorf("%q became %q", text, got)
		}
	}
}
