package redact

import (
	"strings"
	"sync"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// ruleID numbers the rules: the family in the high byte, the index in the low
// one. If rules overlap the lowest number wins, so text that is a secret to any
// rule is treated as one.
type ruleID uint16

// Families, in order of precedence.
const (
	familySecret   ruleID = iota << 8
	familyService         // keys recognised by the name of their vendor
	familyCustom          // of the configuration
	familyPersonal        // the only family whose originals may be kept
	familyEnd
)

const families = int(familyEnd >> 8)

func (id ruleID) family() ruleID { return id &^ 0xff }

const (
	rulePrivateKey = familySecret + iota
	ruleCredentialURL
	ruleJWT
	ruleWebhook
	ruleOpenAI
	ruleAnthropic
	ruleGitHub
	ruleGitLab
	ruleAWS
	ruleGoogle
	ruleAzure
	ruleSlack
	ruleStripe
	rulePackages
	ruleHuggingFace
	ruleMessaging
	ruleVendor
	ruleAuthorization
	rulePassword
	ruleCode
	ruleAssignment
)

const (
	ruleEmail = familyPersonal + iota
	ruleIBAN
	ruleCard
	ruleSSN
	ruleIP
	rulePhone
	ruleHomePath
	ruleNational // the first of checkdigit.Kinds
)

// Rule describes a rule for settings and documentation.
type Rule struct {
	ID          string
	Placeholder string
	Finds       string
	Checked     string // what a candidate must pass besides its form
	Personal    bool   // personal data; else a secret, whose original is never kept
}

// Rules returns every built-in rule, in order of precedence.
func Rules() []Rule {
	var all []Rule
	for _, family := range builtIn() {
		all = append(all, family...)
	}
	return all
}

// builtIn returns the rules by family and number. They must not be modified.
// Placeholders are letters and underscores in brackets; see placeholderAt.
var builtIn = sync.OnceValue(func() [families][]Rule {
	var all [families][]Rule
	all[familySecret>>8] = []Rule{
		{ID: "private-key", Placeholder: "[PRIVATE_KEY]", Finds: "PEM private keys, age and 1Password secret keys", Checked: "at least 32 bytes of key"},
		{ID: "credential-url", Placeholder: "[CREDENTIALS]", Finds: "user:password in URLs, connection strings and curl -u", Checked: "not a variable or template; password differs from user"},
		{ID: "jwt", Placeholder: "[JWT]", Finds: "JSON web tokens, also wrapped in base64", Checked: "header decodes to a JSON object"},
		{ID: "webhook", Placeholder: "[WEBHOOK]", Finds: "Slack, Discord and Teams webhook addresses", Checked: "form"},
		{ID: "openai", Placeholder: "[API_KEY]", Finds: "OpenAI and other sk- keys", Checked: keyChecks},
		{ID: "anthropic", Placeholder: "[API_KEY]", Finds: "Anthropic keys", Checked: keyChecks},
		{ID: "github", Placeholder: "[API_KEY]", Finds: "GitHub tokens", Checked: keyChecks},
		{ID: "gitlab", Placeholder: "[API_KEY]", Finds: "GitLab tokens", Checked: keyChecks},
		{ID: "aws", Placeholder: "[API_KEY]", Finds: "AWS access key ids, Bedrock keys, account ids", Checked: keyChecks},
		{ID: "google", Placeholder: "[API_KEY]", Finds: "Google API keys and OAuth secrets", Checked: keyChecks},
		{ID: "azure", Placeholder: "[API_KEY]", Finds: "Azure client secrets and storage keys", Checked: keyChecks},
		{ID: "slack", Placeholder: "[API_KEY]", Finds: "Slack tokens", Checked: keyChecks},
		{ID: "stripe", Placeholder: "[API_KEY]", Finds: "Stripe keys", Checked: "length and alphabet"},
		{ID: "package-registry", Placeholder: "[API_KEY]", Finds: "npm, PyPI, RubyGems, Clojars, Artifactory tokens", Checked: keyChecks},
		{ID: "huggingface", Placeholder: "[API_KEY]", Finds: "Hugging Face tokens", Checked: keyChecks},
		{ID: "messaging", Placeholder: "[API_KEY]", Finds: "Discord, Telegram, Twilio, SendGrid, Mailchimp, Mailgun keys", Checked: keyChecks},
		{ID: "vendor", Placeholder: "[API_KEY]", Finds: "keys of other vendors with a prefix of their own", Checked: keyChecks},
		{ID: "authorization", Placeholder: "[TOKEN]", Finds: "Bearer, Basic and Token credentials in headers, session cookies", Checked: "Basic decodes to user:password; others look random"},
		{ID: "password", Placeholder: "[PASSWORD]", Finds: "passwords and passphrases in assignments and sentences", Checked: "not a variable, template, path or plain word"},
		{ID: "code", Placeholder: "[CODE]", Finds: "PINs, security codes of cards, one-time codes, recovery codes", Checked: "a word that announces it; 3 to 8 digits, recovery codes at least 8 letters and digits"},
		{ID: "assignment", Placeholder: "[SECRET]", Finds: "values assigned to a token, key, secret or credential", Checked: "looks random; the name does not mark it as fake"},
	}
	for _, s := range services() {
		all[familyService>>8] = append(all[familyService>>8], Rule{
			ID: s.id, Placeholder: "[API_KEY]", Finds: "keys assigned to a name with " + strings.Join(s.displayNames(), ", "),
			Checked: "length and alphabet; looks random",
		})
	}
	personal := []Rule{
		{ID: "email", Placeholder: "[EMAIL]", Finds: "email addresses", Checked: "a top-level domain that is not a file extension"},
		{ID: "iban", Placeholder: "[IBAN]", Finds: "IBANs", Checked: "length of the country, modulo 97"},
		{ID: "card", Placeholder: "[CARD]", Finds: "payment card numbers", Checked: "Luhn; network prefix and length, or a word about cards nearby"},
		{ID: "ssn", Placeholder: "[SSN]", Finds: "US social security numbers", Checked: "issued ranges"},
		{ID: "ip", Placeholder: "[IP]", Finds: "IPv4 and IPv6 addresses", Checked: "parses; not loopback, unspecified, multicast, a netmask or a version"},
		{ID: "phone", Placeholder: "[PHONE]", Finds: "phone numbers", Checked: "libphonenumber, or a word that announces it"},
		{ID: "home-path", Placeholder: "[USER]", Finds: "the user name in home directory paths", Checked: "not a name that every machine has"},
	}
	for i := range checkdigit.Kinds {
		k := &checkdigit.Kinds[i]
		personal = append(personal, Rule{ID: k.ID, Placeholder: "[NATIONAL_ID]", Finds: k.Finds, Checked: k.Requirements()})
	}
	for i := range personal {
		personal[i].Personal = true
	}
	all[familyPersonal>>8] = personal
	return all
})

const keyChecks = "prefix, length, alphabet; looks random"

// rule returns the description of a rule.
func (r *Redactor) rule(id ruleID) *Rule { return &r.rules[id>>8][id&0xff] }

// ids returns the rules of all families by id.
func ids(all [families][]Rule) map[string]ruleID {
	byID := map[string]ruleID{}
	for family, rules := range all {
		for i, rule := range rules {
			byID[rule.ID] = ruleID(family<<8 + i)
		}
	}
	return byID
}
