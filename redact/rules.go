package redact

import "strings"

// ruleID numbers the rules. Lower numbers win where two rules claim the same text: secrets before personal data.
type ruleID uint8

const (
	rulePrivateKey ruleID = iota
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
	ruleAssignment
	ruleEmail
	ruleIBAN
	ruleCard
	ruleSSN
	ruleIP
	rulePhone
	ruleHomePath
	ruleCount
)

// Rule describes a rule for settings and documentation.
type Rule struct {
	ID          string
	Placeholder string
	Finds       string
}

// Rules lists every rule, in order of precedence.
func Rules() []Rule {
	all := make([]Rule, ruleCount)
	for i, r := range rules {
		all[i] = Rule{ID: r.id, Placeholder: r.placeholder, Finds: r.finds}
	}
	return all
}

// rules is constant. Placeholders are letters and underscores in brackets, see placeholderAt.
var rules = [ruleCount]struct{ id, placeholder, finds string }{
	rulePrivateKey:    {"private-key", "[PRIVATE_KEY]", "PEM private keys, age and 1Password secret keys"},
	ruleCredentialURL: {"credential-url", "[CREDENTIALS]", "user:password in URLs, connection strings and curl -u"},
	ruleJWT:           {"jwt", "[JWT]", "JSON web tokens, also wrapped in base64"},
	ruleWebhook:       {"webhook", "[WEBHOOK]", "Slack, Discord and Teams webhook addresses"},
	ruleOpenAI:        {"openai", "[API_KEY]", "OpenAI and other sk- keys"},
	ruleAnthropic:     {"anthropic", "[API_KEY]", "Anthropic keys"},
	ruleGitHub:        {"github", "[API_KEY]", "GitHub tokens"},
	ruleGitLab:        {"gitlab", "[API_KEY]", "GitLab tokens"},
	ruleAWS:           {"aws", "[API_KEY]", "AWS access key ids, Bedrock keys, account ids"},
	ruleGoogle:        {"google", "[API_KEY]", "Google API keys and OAuth secrets"},
	ruleAzure:         {"azure", "[API_KEY]", "Azure client secrets and storage keys"},
	ruleSlack:         {"slack", "[API_KEY]", "Slack tokens"},
	ruleStripe:        {"stripe", "[API_KEY]", "Stripe keys"},
	rulePackages:      {"package-registry", "[API_KEY]", "npm, PyPI, RubyGems, Clojars, Artifactory tokens"},
	ruleHuggingFace:   {"huggingface", "[API_KEY]", "Hugging Face tokens"},
	ruleMessaging:     {"messaging", "[API_KEY]", "Discord, Telegram, Twilio, SendGrid, Mailchimp, Mailgun keys"},
	ruleVendor:        {"vendor", "[API_KEY]", "keys of other vendors that bear a prefix of their own"},
	ruleAuthorization: {"authorization", "[TOKEN]", "Bearer, Basic and Token credentials in headers"},
	rulePassword:      {"password", "[PASSWORD]", "passwords and passphrases that are assigned or told"},
	ruleAssignment:    {"assignment", "[SECRET]", "random-looking values assigned to a token, key, secret or credential"},
	ruleEmail:         {"email", "[EMAIL]", "email addresses"},
	ruleIBAN:          {"iban", "[IBAN]", "IBANs with valid check digits"},
	ruleCard:          {"card", "[CARD]", "payment card numbers with valid check digit"},
	ruleSSN:           {"ssn", "[SSN]", "US social security numbers"},
	ruleIP:            {"ip", "[IP]", "IPv4 and IPv6 addresses except loopback, unspecified, multicast and netmasks"},
	rulePhone:         {"phone", "[PHONE]", "phone numbers"},
	ruleHomePath:      {"home-path", "[USER]", "the user name in home directory paths"},
}

func ruleByID(id string) (ruleID, bool) {
	for i := range ruleCount {
		if rules[i].id == id {
			return i, true
		}
	}
	return 0, false
}

// placeholderAt returns the length of the placeholder that begins at i, 0 if there is none.
func placeholderAt(text string, i int) int {
	if text[i] != '[' {
		return 0
	}
	end := i + 1
	for end < len(text) && (text[end] >= 'A' && text[end] <= 'Z' || text[end] == '_') {
		end++
	}
	if end == len(text) || text[end] != ']' || end-i < 3 || end-i > 20 {
		return 0
	}
	candidate := text[i : end+1]
	for _, r := range rules {
		if r.placeholder == candidate {
			return len(candidate)
		}
	}
	return 0
}

// nextPlaceholder finds the first placeholder at or after from.
func nextPlaceholder(text string, from int) (start, end int, ok bool) {
	for from < len(text) {
		i := strings.IndexByte(text[from:], '[')
		if i < 0 {
			break
		}
		from += i
		if n := placeholderAt(text, from); n > 0 {
			return from, from + n, true
		}
		from++
	}
	return 0, 0, false
}
