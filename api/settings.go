package api

import "context"

// Setting is one setting as it is in force. Secrets are never in it.
type Setting struct {
	Section string `json:"section"`       // the first part of Key, or the heading of those without one
	Key     string `json:"key"`           // path in the configuration file
	Env     string `json:"env,omitempty"` // environment variable, "" = none
	// Value is what is in force, and Default what would be without the file,
	// the environment and flags. Of a secret they are "set" or "not set".
	Value   string `json:"value"`
	Default string `json:"default"`
	// From is where the value was given, such as "config.json:12", a variable
	// or a flag, or why it is what it is.
	From    string `json:"from"`
	Doc     string `json:"doc"`     // what it means; names of code are in backquotes
	Changed bool   `json:"changed"` // whether Value is another than Default
}

// setup has the verbs about the program itself.
type setup struct{ *access }

// Settings returns the settings in force, for the admin.
func (s *setup) Settings(_ context.Context, p Principal) ([]Setting, error) {
	if !p.Everything() {
		return nil, ErrForbidden
	}
	if s.Deps.Settings == nil {
		return []Setting{}, nil
	}
	return s.Deps.Settings(), nil
}

// LoginLink is a link that opens the web page as the admin, once.
type LoginLink struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expiresAt"`
}

// LoginLink makes a login link, for the admin. It is ErrOff if there is no page
// to open.
func (s *setup) LoginLink(_ context.Context, p Principal) (LoginLink, error) {
	if !p.Everything() {
		return LoginLink{}, ErrForbidden
	}
	if s.Deps.LoginLink == nil {
		return LoginLink{}, ErrOff
	}
	url, expires := s.Deps.LoginLink()
	if url == "" {
		return LoginLink{}, ErrOff
	}
	return LoginLink{URL: url, ExpiresAt: expires.UTC().Format(timeLayout)}, nil
}
