package redact

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pad returns a random key-like value of n characters.
func pad(n int) string {
	const alphabet = "q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0Yy"
	return strings.Repeat(alphabet, n/len(alphabet)+1)[:n]
}

var redactions = []struct{ name, in, want string }{
	{"prose", "Nothing to see in this sentence about 3 cats.", "Nothing to see in this sentence about 3 cats."},
	{"empty", "", ""},
	{"placeholder stays", "write to [EMAIL] or [PHONE]", "write to [EMAIL] or [PHONE]"},

	{"email", "mail anna.berg+x@mail.example.org.", "mail [EMAIL]."},
	{"email latin", "jörg@bücher.example an", "[EMAIL] an"},
	{"email after han", "联系anna@example.org吧", "联系[EMAIL]吧"},
	{"email in brackets", "Anna <anna@example.org>", "Anna <[EMAIL]>"},
	{"not email: ssh remote", "git@github.com:org/repo.git", "git@github.com:org/repo.git"},
	{"not email: package", "react@18.2.0 and @types/node", "react@18.2.0 and @types/node"},
	{"not email: image", "logo@2x.png", "logo@2x.png"},
	{"not email: host", "root@localhost", "root@localhost"},

	{"phone international", "call +41 44 668 18 00 now", "call [PHONE] now"},
	{"phone trunk", "my number is 020 7946 0958", "my number is [PHONE]"},
	{"phone US", "(212) 555-2368 ext. 12 please", "[PHONE] please"},
	{"phone label", "Phone:\n467 3395", "Phone:\n[PHONE]"},
	{"phone suffix label", "655 437 108 office", "[PHONE] office"},
	{"not phone: date", "on 2024-05-01 12:30", "on 2024-05-01 12:30"},
	{"not phone: address", "3747 3911 Fourth Avenue", "3747 3911 Fourth Avenue"},
	{"not phone: timestamp", "at 1699999999999", "at 1699999999999"},
	{"phone with slash", "Phone: +49 (0) 62 32 / 14 23 - 0 or mail", "Phone: [PHONE] or mail"},
	{"not phone: decimal", "45 * 0.16777216 = 0.301989888", "45 * 0.16777216 = 0.301989888"},
	{"not secret: arguments", "import StringField, PasswordField, SubmitField2", "import StringField, PasswordField, SubmitField2"},
	{"secret: argument", `setProperty("MY_TOKEN", "` + pad(24) + `")`, `setProperty("MY_TOKEN", "[SECRET]")`},
	{"not phone: money", "costs $1,200,000.00 or 1 200 000", "costs $1,200,000.00 or 1 200 000"},
	{"not phone: version", "go 1.22.333.4444", "go 1.22.333.4444"},
	{"not phone: commit", "see 4d2f1e9 and 1234567", "see 4d2f1e9 and 1234567"},

	{"card", "card 4111 1111 1111 1111 exp", "card [CARD] exp"},
	{"card plain", "4111111111111111", "[CARD]"},
	{"card hyphen", "3782-822463-10005.", "[CARD]."},
	{"not card: luhn", "4111 1111 1111 1112", "4111 1111 1111 1112"},
	{"not card: network", "9111111111111110", "9111111111111110"},

	{"ssn", "SSN 123-45-6789.", "SSN [SSN]."},
	{"ssn plain", "my social security number is 123456789", "my social security number is [SSN]"},
	{"not ssn: area", "666-45-6789", "666-45-6789"},
	{"not ssn: part number", "A123-45-6789-1", "A123-45-6789-1"},
	{"not phone: counted", "WhatsApp 2000000000 users", "WhatsApp 2000000000 users"},
	{"not phone: counted with more", "the phone app has 3000000000 monthly active users.", "the phone app has 3000000000 monthly active users."},
	{"not ssn: counted", "I earn 123-45-6789 points", "I earn 123-45-6789 points"},
	{"ssn: said to be one", "my SSN 123-45-6789 points to me", "my SSN [SSN] points to me"},
	{"phone: not counted", "WhatsApp 4915123456789 please", "WhatsApp [PHONE] please"},

	{"iban", "to DE89 3704 0044 0532 0130 00 please", "to [IBAN] please"},
	{"iban plain", "GB82WEST12345698765432", "[IBAN]"},
	{"not iban: check", "GB82WEST12345698765433", "GB82WEST12345698765433"},

	{"ipv4", "from 86.121.97.248:443", "from [IP]:443"},
	{"ipv4 private", "router at 192.168.1.1.", "router at [IP]."},
	{"ipv4 url", "http://203.0.113.9/x", "http://[IP]/x"},
	{"ipv6", "ping 2001:db8::8a2e:370:7334 now", "ping [IP] now"},
	{"ipv6 brackets", "http://[fe80::1]:80/", "http://[[IP]]:80/"},
	{"not ip: loopback", "127.0.0.1 and ::1 and 0.0.0.0 and 255.255.255.0", "127.0.0.1 and ::1 and 0.0.0.0 and 255.255.255.0"},
	{"not ip: version", "version 1.2.3.4, v10.0.0.1, Chrome/120.0.0.0", "version 1.2.3.4, v10.0.0.1, Chrome/120.0.0.0"},
	{"not ip: code", "std::vector a::b 12:30:45", "std::vector a::b 12:30:45"},

	{"home linux", "cat /home/anna/notes.txt", "cat /home/[USER]/notes.txt"},
	{"home mac", `"/Users/anna.berg/src"`, `"/Users/[USER]/src"`},
	{"home windows", `C:\Users\Anna Berg\Desktop`, `C:\Users\[USER]\Desktop`},
	{"home windows escaped", `"C:\\Users\\anna\\x"`, `"C:\\Users\\[USER]\\x"`},
	{"not home: web", "https://example.org/home/index and /users/17", "https://example.org/home/index and /users/17"},

	{"openai", "key sk-proj-" + pad(20) + "T3BlbkFJ" + pad(20), "key [API_KEY]"},
	{"anthropic", "sk-ant-api03-" + pad(95), "[API_KEY]"},
	{"github", "ghp_" + pad(36) + ".", "[API_KEY]."},
	{"github fine", "github_pat_" + pad(82), "[API_KEY]"},
	{"gitlab", "glpat-" + pad(20), "[API_KEY]"},
	{"aws", "AKIAZ3MSJV4WXN2QKTPB", "[API_KEY]"},
	{"aws secret", "aws_secret_access_key = " + pad(40), "aws_secret_access_key = [SECRET]"},
	{"google", "AIza" + pad(35), "[API_KEY]"},
	{"slack", "xoxb-2398475486-2348975623-" + pad(24), "[API_KEY]"},
	{"slack webhook", "https://hooks.slack.com/services/T0DCUJB1Q/B0DD08H5G/" + pad(24), "https://[WEBHOOK]"},
	{"stripe", "sk_live_" + pad(24), "[API_KEY]"},
	{"npm", "npm_" + pad(36), "[API_KEY]"},
	{"pypi", "pypi-AgEIcHlwaS5vcmc" + pad(90), "[API_KEY]"},
	{"huggingface", "hf_" + pad(34), "[API_KEY]"},
	{"jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl end", "[JWT] end"},
	{"pem", "x\n-----BEGIN RSA PRIVATE KEY-----\n" + pad(64) + "\n-----END RSA PRIVATE KEY-----\ny", "x\n[PRIVATE_KEY]\ny"},
	{"pem cut off", "-----BEGIN PRIVATE KEY-----\n" + pad(64), "[PRIVATE_KEY]"},
	{"basic auth", "https://anna:s3cret@host.example/x", "https://[CREDENTIALS]@host.example/x"},
	{"connection string", "postgres://app:pa$$w0rd@db:5432/x", "postgres://[CREDENTIALS]@db:5432/x"},
	{"bearer", "Authorization: Bearer " + pad(40), "Authorization: Bearer [TOKEN]"},
	{"basic", "Authorization: Basic YW5uYTpzM2NyZXQ=", "Authorization: Basic [TOKEN]"},
	{"code", "my PIN is 4711, the CVV: 123", "my PIN is [CODE], the CVV: [CODE]"},
	{"code before its name", "G-481920 is your verification code", "G-[CODE] is your verification code"},
	{"not code", "the LED is on pin 13, pin the version to 1234", "the LED is on pin 13, pin the version to 1234"},
	{"assignment", `api_key: "` + pad(32) + `"`, `api_key: "[SECRET]"`},
	{"assignment env", "export MY_TOKEN=" + pad(20), "export MY_TOKEN=[SECRET]"},
	{"password in sentence", "my password is hunter2.", "my password is [PASSWORD]."},
	{"password set", `password = "correct-horse"`, `password = "[PASSWORD]"`},
	{"password flag", "mysql --password strongp@55! -h db", "mysql --password [PASSWORD] -h db"},
	{"not secret: mask", "ghp_" + strings.Repeat("x", 36), "ghp_" + strings.Repeat("x", 36)},
	{"not secret: documentation", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
	{"not secret: public key", "-----BEGIN PUBLIC KEY-----\n" + pad(64), "-----BEGIN PUBLIC KEY-----\n" + pad(64)},
	{"not secret: variable", `password = "${DB_PASSWORD}" token=$TOKEN`, `password = "${DB_PASSWORD}" token=$TOKEN`},
	{"not secret: prose", "the password is wrong, the token: a unit of text", "the password is wrong, the token: a unit of text"},
	{"not secret: code", "token := tokenizer.next(input)\npassword: string", "token := tokenizer.next(input)\npassword: string"},
	{"not secret: port", "https://url:8000/ @something", "https://url:8000/ @something"},
	{"not secret: same user", "postgres://postgres:postgres@localhost/x", "postgres://postgres:postgres@localhost/x"},
	{"not secret: basic prose", "basic understanding and bearer of bad news", "basic understanding and bearer of bad news"},

	{"not secret: made up", `nonMatchingToken := "pqaxmicu3try5fvq"`, `nonMatchingToken := "pqaxmicu3try5fvq"`},
	{"not secret: about one", `secret_name = "k8s-prod-4f9a2c71b8"`, `secret_name = "k8s-prod-4f9a2c71b8"`},
	{"not secret: UUID of a clock", "token=743b294a-cd03-11ec-9d64-0242ac120002", "token=743b294a-cd03-11ec-9d64-0242ac120002"},
	{"secret: random UUID", "token=743b294a-cd03-41ec-9d64-0242ac120002", "token=[SECRET]"},
	{"not secret: checksummed address", "token=5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "token=5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
	{"not secret: default of development", "mysql://admin:pass@localhost:3306/x", "mysql://admin:pass@localhost:3306/x"},
	{"secret: the same elsewhere", "mysql://admin:pass@db.example.org/x", "mysql://[CREDENTIALS]@db.example.org/x"},
	{"facebook", "123456789012345|" + pad(30), "[API_KEY]"},
	{"terraform", pad(14) + ".atlasv1." + pad(64), "[API_KEY]"},
	{"not terraform: short", pad(14) + ".atlasv1." + pad(20), pad(14) + ".atlasv1." + pad(20)},
	{"airtable", "pat" + pad(14) + "." + strings.Repeat("0a1b2c3d", 8), "[API_KEY]"},
	{"maxmind", pad(6) + "_" + pad(29) + "_mmk", "[API_KEY]"},
	{"settings of .NET", `<add key="ApiToken" value="` + pad(24) + `"/>`, `<add key="ApiToken" value="[SECRET]"/>`},

	{"several", "anna@example.org or +41446681800, card 4111111111111111", "[EMAIL] or [PHONE], card [CARD]"},
	{"around bytes that are not UTF-8", "\xff anna@example.org \xfe", "\xff [EMAIL] \xfe"},
}

func TestRedact(t *testing.T) {
	r := newRedactor(t)
	for _, c := range redactions {
		t.Run(c.name, func(t *testing.T) {
			got, findings := r.Redact(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Redact (-want +got):\n%s", diff)
			}
			checkFindings(t, c.in, got, findings)
			if again, more := r.Redact(got); again != got || len(more) > 0 {
				t.Errorf("not idempotent: %q became %q", got, again)
			}
		})
	}
}

// checkFindings checks that findings are in order, in range and disjoint, and
// that the output is the input with them replaced.
func checkFindings(t *testing.T, in, out string, findings []Finding) {
	t.Helper()
	var b strings.Builder
	at := 0
	for _, f := range findings {
		if f.Start < at || f.End <= f.Start || f.End > len(in) {
			t.Fatalf("finding %+v does not follow offset %d within %d bytes", f, at, len(in))
		}
		b.WriteString(in[at:f.Start] + f.Placeholder)
		at = f.End
	}
	b.WriteString(in[at:])
	if got := b.String(); got != out {
		t.Fatalf("findings %+v give %q, Redact gave %q", findings, got, out)
	}
}

func TestFindingPositions(t *testing.T) {
	_, got := newRedactor(t).Redact("to anna@example.org, 123-45-6789")
	want := []Finding{
		{Rule: "email", Placeholder: "[EMAIL]", Personal: true, Start: 3, End: 19},
		{Rule: "ssn", Placeholder: "[SSN]", Personal: true, Start: 21, End: 32},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// exampleOf returns a text in which a rule finds something.
func exampleOf(t *testing.T, all *Redactor, rule Rule) string {
	t.Helper()
	switch rule.ID {
	case "azure":
		return "AccountKey=" + pad(86) + "=="
	case "code": // long enough not to occur by chance
		return "the PIN is 73920518"
	case "messaging":
		return "7213808860:AAH1bjqpKKW3maRSPAxzIU-0v6xNuq2-NjM"
	case "vendor":
		return "tvly-" + pad(32)
	case "home-path":
		return "in /home/canary.user/notes"
	}
	for _, v := range services() {
		if v.id == rule.ID {
			return serviceExample(t, v)
		}
	}
	if texts := nationalExamples[rule.ID]; len(texts) > 0 {
		return texts[0]
	}
	for _, c := range redactions {
		if _, found := all.Redact(c.in); slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == rule.ID }) {
			return c.in
		}
	}
	t.Fatalf("rule %s: no example is found", rule.ID)
	return ""
}

// TestRulesAreTestedAndSwitchable checks that every rule finds something in the
// tables of these tests, and nothing once it is disabled. Some keys have the
// form or the prefix of another rule, which may precede; TestServices tests
// each rule alone.
func TestRulesAreTestedAndSwitchable(t *testing.T) {
	all := newRedactor(t)
	for _, rule := range Rules() {
		text := exampleOf(t, all, rule)
		service := ids(builtIn())[rule.ID].family() == familyService
		_, found := all.Redact(text)
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == rule.ID || service && !f.Personal }) {
			t.Errorf("rule %s: its example is not found", rule.ID)
		}
		off, err := New(Config{Disable: []string{rule.ID}})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := off.Redact(text); slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == rule.ID }) {
			t.Errorf("rule %s: finds something though disabled", rule.ID)
		}
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	_, err := New(Config{Disable: []string{"email", "nose"}, PhoneRegions: []string{"US", "XX"}})
	if err == nil {
		t.Fatal("no error")
	}
	want := "disable[1]: unknown rule \"nose\"\nphoneRegions[1]: unknown region \"XX\""
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

// TestHidesSecret checks that personal data and the findings of custom rules do
// not count as hidden secrets.
func TestHidesSecret(t *testing.T) {
	r := custom(t, CustomRule{ID: "project", Placeholder: "[PROJECT]", Pattern: `\bfalcon\b`})
	for text, want := range map[string]bool{
		"my key is [API_KEY], put it in .env": true,
		"[EMAIL] wants [JWT]":                 true,
		"write to [EMAIL]":                    false,
		"[PROJECT] is late":                   false,
		"[NOT_OURS] and [":                    false,
		"nothing":                             false,
	} {
		if got := r.HidesSecret(text); got != want {
			t.Errorf("HidesSecret(%q): got %v, want %v", text, got, want)
		}
	}
}

func TestOnlyPlaceholders(t *testing.T) {
	r := newRedactor(t)
	for text, want := range map[string]bool{
		"[EMAIL]":               true,
		" [EMAIL], [PHONE]!\n":  true,
		"":                      false,
		"  ...":                 false,
		"[EMAIL] please":        false,
		"[UNKNOWN]":             false,
		"[EMAIL] 数":             false,
		"- [CARD]\n- [API_KEY]": true,
	} {
		if got := r.OnlyPlaceholders(text); got != want {
			t.Errorf("OnlyPlaceholders(%q): got %v, want %v", text, got, want)
		}
	}
}

// TestPlaceholdersAreRecognised checks the form of placeholders; others would
// be redacted again and again.
func TestPlaceholdersAreRecognised(t *testing.T) {
	r := newRedactor(t)
	for _, rule := range Rules() {
		if got := r.placeholderAt(rule.Placeholder, 0); got != len(rule.Placeholder) {
			t.Errorf("placeholderAt(%q): got %d", rule.Placeholder, got)
		}
	}
}

const prose = `When we moved to the coast last spring we thought that the commute would be the hard part. It was not: the trains
run every 20 minutes, and since the office let us work from home on Mondays the week feels short. What we had not
expected was the garden. It had been left alone since 1998, and by June the brambles (some of them 3 metres tall) had
reached the kitchen window. My sister, who is the one of us with a key to the shed and the secret of getting the mower
started, came over at 10:30 on a Saturday and had half of it down by noon. "You will need a permit for the willow," she
said, and of course she was right: form 27, two weeks, and no, the password to the council's site did not work either.
`

// hostileUnits form texts that would be read again and again if a rule looked
// ahead or back without a limit.
var hostileUnits = []string{
	"token=", "password:", "ey-", "eyJ.", "ZXlK", "a@", "1:", "::", "1-", "1.", "+1 ", "Q~", "3Q~", "sk-", "-----BEGIN PRIVATE KEY-----",
	"://a:", "curl -u ", "bearer ", "/home/", "[EMAIL]", "4111 ", "DE89", "-us1", "ops_eyJ", "xoxb-", "a.b.c.", "\xff", "((((",
	"a", "A", "1", "\"", "'", "\\", "{\"", "password=\"\\\"", "\"password\":\"", "cookie: a=b; ", "cookie", "authorization: a ", "kind: Secret\n",
	"kind: Secret\ndata:\n  a: b\n", ":5432:a:b:", "$6$a$", "private-lines: 1\n", "mysql -p", "login -p ", "zip ", "echo |password-stdin", "net use /user:",
	"htpasswd -b ", "basicauth(\"a\",", "jdbc:oracle:thin:a/", "?key=a&code=", "%3Ftoken%3D", "password%22%3A%22", "pin is ", "pin for ", "seed phrase ",
	"password to ", "password for the ", "my password is a1 ", "a1b2c3 is my key ", "door code 1234 ", "key a1b2c3d4e5f6g7h8 ", "пароль a1 ", "密码a1", "user password ", "a at b dot ", "(at)", "%40a.", "&#64;", "@tcp(", "getconnection(a,", "/reset/", "wa.me/1",
	"\u5bc6", "\u5bc6\u7801", "pass=", "psk: ", "variable \"password\" {", "| password | ", "arn:aws:secret:", ";password=a;user=", "AAAAAAAAAAAAAAAAAAAAA", "machine login password ",
	// With bytes that differ, for what looks random.
	"xoxb-aB3dEf9-", "sk-aB3dEf9_", "token=aB3dEf9(", "token=a.B3/d(\"", "password=aB3dEf9{", "pass=your(", "glpat-aB3xYz9", "eyJrIjoiaB3d", "ops_eyJaB3dEf9", "SG.aB3dEf9.",
	"AAAAAAAAAAAAAAAAAAAAAaB3dEf%", "heroku_api_key=aB3d-", "datadog_token: aB3dEf9 ", "access_token$production$aB3d", "1//0aB3dEf9-", "//registry.a/b", "dp.st.aB3dEf9",
	"token=&a", "token=a&b.", "secret=%3D%22", "authorization: aB3dEf9+/", "cookie: aB3dEf9=aB3dEf9GhIjKl0123;", "?key=aB3dEf9%2F", "AGE-SECRET-KEY-1QPZRY", "key-0a1b2c3d",
	"-----BEGIN PRIVATE KEY-----\naB3dEf9-----END ", "4111-1111.", "+49 170 1", "1.2.3.", "DE89 3704 0044 ", "2001:db8::", "000-00-0000 ",
}

// TestHostileTextsTakeLinearTime runs into the timeout if one takes quadratic
// time.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	r := newRedactor(t)
	for _, unit := range hostileUnits {
		text := strings.Repeat(unit, (100<<10)/len(unit))
		out, findings := r.Redact(text)
		checkFindings(t, text, out, findings)
	}
}

// TestManyAssignmentsInOneValue checks that nothing hides after more
// assignments in one value than are examined: the rest of the value is redacted
// to its end.
func TestManyAssignmentsInOneValue(t *testing.T) {
	r := newRedactor(t)
	for _, unit := range []string{"token=", "password=", "pass=", "secret:"} {
		for _, n := range []int{1, maxBareAssignments - 1, maxBareAssignments, 40, 4000} {
			text := "see " + strings.Repeat(unit, n) + "Zq7fT2pLx9Kd and more"
			out, findings := r.Redact(text)
			checkFindings(t, text, out, findings)
			if strings.Contains(out, "Zq7f") || !strings.HasPrefix(out, "see ") || !strings.HasSuffix(out, " and more") {
				t.Errorf("%d times %q: got %.80q", n, unit, out)
			}
		}
	}
}

// BenchmarkHostile reports the worst ratio of the cost of eight times a text to
// that of the text: 8 in linear time, 64 in quadratic time.
func BenchmarkHostile(b *testing.B) {
	r := newRedactor(b)
	cost := func(text string) float64 {
		best := time.Hour
		for range 3 {
			start := time.Now()
			r.Redact(text)
			best = min(best, time.Since(start))
		}
		return float64(best.Nanoseconds())
	}
	worst, slowest := 0.0, 0.0
	var of, slow string
	for b.Loop() {
		for _, unit := range hostileUnits {
			small, large := strings.Repeat(unit, (4<<10)/len(unit)), strings.Repeat(unit, (32<<10)/len(unit))
			full := cost(large)
			if ratio := full / cost(small); ratio > worst {
				worst, of = ratio, unit
			}
			if perKiB := full / 1e3 / 32; perKiB > slowest {
				slowest, slow = perKiB, unit
			}
		}
	}
	b.ReportMetric(worst, "x8-ratio")
	b.ReportMetric(slowest, "us/KiB-worst")
	b.Logf("worst ratio with %q, slowest with %q", of, slow)
}

// TestLongValuesAreRedactedWhole checks that a value longer than any window is
// redacted to its end.
func TestLongValuesAreRedactedWhole(t *testing.T) {
	r := newRedactor(t)
	long := pad(20_000)
	for in, want := range map[string]string{
		"token=" + long + " end":                  "token=[SECRET] end",
		"eyJhbGciOiJIUzI1NiJ9.ey" + long + " end": "[JWT] end",
		"ops_eyJ" + long + " end":                 "[PRIVATE_KEY] end",
	} {
		if got, _ := r.Redact(in); got != want {
			t.Errorf("%.40s...: got %d bytes, %.60q", in, len(got), got)
		}
	}
}

func BenchmarkRedactProse(b *testing.B) {
	r := newRedactor(b)
	text := strings.Repeat(prose, 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Redact(text)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(text))/1024), "us/KiB")
}

func BenchmarkRedactDense(b *testing.B) {
	r := newRedactor(b)
	var text strings.Builder
	for _, c := range redactions {
		text.WriteString(c.in + "\n")
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r.Redact(text.String())
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range redactions {
		f.Add(c.in)
	}
	f.Add("anna@example.org:s3cret@4111111111111111")
	for _, file := range []string{"attacks.txt", "personal.txt", "fresh.txt", "third.txt", "fourth.txt", "benign.txt", "fourthbenign.txt"} {
		for _, s := range readSamples(f, file) {
			f.Add(s.text)
		}
	}
	r := newRedactor(f)
	f.Fuzz(func(t *testing.T, text string) {
		out, findings := r.Redact(text)
		checkFindings(t, text, out, findings)
		if again, more := r.Redact(out); again != out || len(more) > 0 {
			t.Fatalf("not idempotent: %q became %q, then %q", text, out, again)
		}
		r.OnlyPlaceholders(out)
	})
}

// BenchmarkNew measures what a Redactor costs at start, and permanently
// (heap-B).
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := newRedactor(b)
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		newRedactor(b)
	}
	b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-B")
	runtime.KeepAlive(kept)
}
