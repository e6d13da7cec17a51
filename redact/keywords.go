package redact

import (
	"strings"
	"unicode/utf8"
)

// action handles an occurrence of a keyword, which is text[start:end].
type action func(s *scanner, start, end int)

// exactKeyword runs an action only where its keyword really occurs: the
// automaton confuses bytes outside ASCII.
func exactKeyword(a action, keyword string) action {
	if strings.IndexFunc(keyword, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return a
	}
	return func(s *scanner, start, end int) {
		if strings.EqualFold(s.text[start:end], keyword) {
			a(s, start, end)
		}
	}
}

// tell returns an action that finds what is assigned to a word, or else what a
// sentence gives as its value.
func tell(w secretWord) action {
	return func(s *scanner, start, end int) {
		before := len(s.matches)
		if w.kind == kindPassword {
			s.passwordAssignment(start, end)
		}
		// A value after the word may have been found by a longer name, or before.
		if len(s.matches) == before && (before == 0 || s.matches[before-1].start < end) && end >= s.assignedEnd {
			s.told(start, end, w)
		}
	}
}

// keywordActions returns every keyword and, at the same index, its action.
func keywordActions(custom []CustomRule) ([]string, []action) {
	var words []string
	var actions []action
	on := func(a action, keywords ...string) {
		for _, w := range keywords {
			words, actions = append(words, w), append(actions, exactKeyword(a, w))
		}
	}
	for _, t := range tokenShapes() {
		on(t.find(), t.prefix)
	}
	on((*scanner).pem, "-----BEGIN ")
	on((*scanner).pemTail, "-----END ")
	on((*scanner).jwt, "ey")
	on((*scanner).wrappedJWT, "ZXlK")
	on((*scanner).urlCredentials, "://")
	for _, c := range commands {
		on(c.find(), c.keywords...)
	}
	on((*scanner).pipedPassword, "password-stdin", "chpasswd")
	on((*scanner).hereString, "--with-token", "--password-stdin")
	on((*scanner).netUse, "net use ")
	on((*scanner).htpasswd, "htpasswd ")
	on((*scanner).basicAuth, "basicauth(", "basic_auth(", "auth=(")
	on((*scanner).connectionArguments, "getconnection(")
	on((*scanner).networkLogin, "@tcp(", "@unix(")
	on((*scanner).linkedSecret, "/reset/", "/verify/", "/confirm/", "/invite/", "/activate/", "/magic/", "/unsubscribe/", "/join/")
	on((*scanner).sqlLogin, "jdbc:oracle:thin:", "sqlplus ")
	on((*scanner).authorization, "bearer ", "basic ", "authorization: token ")
	on((*scanner).authorizationHeader, "authorization")
	on((*scanner).cookies, "cookie")
	on((*scanner).sessionCookie, sessionCookies...)
	on((*scanner).encodedPair, "auth\"", "_auth")
	on((*scanner).manifest, "kind: secret", "kind: \"secret\"")
	on((*scanner).pgpass, ":5432:", ":5433:")
	on((*scanner).passwordHash, "$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$argon2i$", "$argon2id$", "$scrypt$", "$pbkdf2")
	on((*scanner).putty, "private-lines:")
	for _, p := range parameters {
		on((*scanner).parameter, p+"=")
	}
	on((*scanner).azureSecret, "Q~")
	on((*scanner).mailchimp, "-us")
	on((*scanner).terraform, ".atlasv1.")
	on((*scanner).maxmind, "_mmk")
	on((*scanner).tokenAssignment, "token", "secret", "api_key", "apikey", "api-key", "access_key", "accesskey", "access-key",
		"private_key", "private-key", "privatekey", "credential", "license_key", "auth_key", "authkey", "encryption_key", "signing_key", "api key", "access key", "auth key", "license key", "private key", "secret key", "signing key", "encryption key",
		"app_key", "appkey", "app-key", "account_key", "accountkey", "account-key", "master_key", "masterkey", "master-key", "shared_key", "sharedkey",
		"storage_key", "storagekey", "subscription-key", "subscription_key", "subscriptionkey", "sas_key", "write_key", "writekey", "write-key", "sas-key", "service_key", "client_key",
		"client-key", "clientkey", "deploy_key", "session_key", "sessionkey", "encryption-key", "encryptionkey", "signing-key", "signingkey")
	for _, w := range lexicon().keywords {
		on(tell(w), spellings(w.text)...)
	}
	on((*scanner).shortPassword, "pass", "psk", "pw")
	on((*scanner).securedString, "securestring ")
	on((*scanner).shortCode, "pin", "cvv", "cvc", "otp", "passcode", "verification code", "security code", "one-time code", "login code", "access code",
		"authentication code", "2fa code", "bestätigungscode", "einmalcode", "code de vérification", "código de verificación")
	on((*scanner).recoveryCodes, "recovery code", "backup code", "rescue code", "wiederherstellungscode", "code de récupération", "codes de récupération",
		"código de recuperación", "códigos de recuperación")
	on((*scanner).credentialsInSentence, "credentials", "creds", "zugangsdaten", "identifiants", "credenciales")
	on((*scanner).seedPhrase, "seed phrase", "recovery phrase", "mnemonic", "seed words", "secret phrase")
	on((*scanner).awsAccount, "aws_account_id", "awsaccountid")
	on((*scanner).obfuscatedEmail, obfuscatedAts...)
	on((*scanner).phoneLink, "wa.me/", "?phone=", "&phone=")
	on((*scanner).homePath, "/home/", "/users/", `:\users\`, `:\\users\\`, "/documents and settings/")
	serviceActions(on)
	for i, r := range custom {
		on(func(s *scanner, _, _ int) { s.keywordsSeen[i/64] |= 1 << (i % 64) }, r.Keywords...)
	}
	return words, actions
}
