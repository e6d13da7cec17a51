package page

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/proxy/identity"
)

// Bounds of sessions and login links. Beyond MaxSessions the one that was used
// longest ago ends, of the admin or the tenant who has the most, so that none
// can end the sessions of others. Beyond maxLinks the one that was made first
// ends.
const (
	MaxSessions = 256
	maxLinks    = 16

	sessionIdle = 12 * time.Hour
	linkTTL     = 10 * time.Minute
)

// sessions are the browsers that have logged in, and the links by which others
// may. Neither a cookie nor a link is kept, only their hashes.
type sessions struct {
	mu    sync.Mutex
	open  map[[32]byte]*session
	links map[[32]byte]time.Time // until when each is valid
}

// session is a browser that has logged in.
type session struct {
	p    api.Principal
	used time.Time

	mu       sync.Mutex
	flash    *flash
	receipts []keptReceipt // of erasures, the newest last
}

// flash is what the next view reports of what was done.
type flash struct {
	Text string
	Bad  bool
	Undo []string // ids of memories whose last change can be taken back
}

// say has the next view report something.
func (s *session) say(f flash) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flash = &f
	}
}

// said returns what is to be reported, once.
func (s *session) said() *flash {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flash
	s.flash = nil
	return f
}

func newSecret() (text string, hash [32]byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	text = hex.EncodeToString(b[:])
	return text, sha256.Sum256([]byte(text))
}

// LoginLink returns a path that logs a browser in as the holder of the admin
// token, once, and until when it is valid.
func (h *Handler) LoginLink() (path string, expires time.Time) {
	code, hash := newSecret()
	s, now := &h.sessions, h.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil {
		s.links = map[[32]byte]time.Time{}
	}
	for len(s.links) >= maxLinks {
		oldest, first := time.Time{}, [32]byte{}
		for key, until := range s.links {
			if oldest.IsZero() || until.Before(oldest) {
				oldest, first = until, key
			}
		}
		delete(s.links, first)
	}
	expires = now.Add(linkTTL)
	s.links[hash] = expires
	return "/login?code=" + code, expires
}

// redeem reports whether a code is that of a valid link, which it ends.
func (s *sessions) redeem(code string, now time.Time) bool {
	hash := sha256.Sum256([]byte(code))
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.links[hash]
	delete(s.links, hash)
	return ok && now.Before(until)
}

// begin opens a session and returns its cookie's value.
func (s *sessions) begin(p api.Principal, now time.Time) string {
	value, hash := newSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[[32]byte]*session{}
	}
	for len(s.open) >= MaxSessions {
		delete(s.open, s.excess())
	}
	s.open[hash] = &session{p: p, used: now}
	return value
}

// excess returns the session that was used longest ago, of the admin or the
// tenant who has the most. The caller holds mu.
func (s *sessions) excess() (key [32]byte) {
	type holder struct {
		admin  bool
		tenant string
	}
	of := func(open *session) holder { return holder{open.p.Admin, open.p.Tenant} }
	many := map[holder]int{}
	for _, open := range s.open {
		many[of(open)]++
	}
	var found *session
	for k, open := range s.open {
		if found == nil || cmp.Or(cmp.Compare(many[of(found)], many[of(open)]), open.used.Compare(found.used)) < 0 {
			found, key = open, k
		}
	}
	return key
}

// find returns the session of a cookie, nil if there is none.
func (s *sessions) find(value string, now time.Time) *session {
	hash := sha256.Sum256([]byte(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open[hash]
	if open == nil {
		return nil
	}
	if now.Sub(open.used) > sessionIdle {
		delete(s.open, hash)
		return nil
	}
	open.used = now
	return open
}

func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(value)))
}

// cookieName names the session's cookie. Cookies do not know ports, so that two
// Remoras of one machine need different names.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	return "remora-session-" + port
}

func (h *Handler) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// authenticate finds out who calls: by a key in the request, or by the session.
// A proxy in front of Remora may name a user, to whom the session is limited
// then.
func (c *call) authenticate() (err error) {
	user := request.User(c.r)
	if credential := request.Credential(c.r); credential != "" {
		c.p, err = c.service.Authenticate(c.ctx, credential, user)
		return err
	}
	cookie, err := c.r.Cookie(cookieName(c.r))
	if err != nil {
		return api.ErrUnauthorized
	}
	if c.session = c.sessions.find(cookie.Value, c.now()); c.session == nil {
		return api.ErrUnauthorized
	}
	c.p = c.session.p
	if user == "" {
		return nil
	}
	part, err := identity.Parse(user)
	if err != nil || c.p.User != "" && c.p.User != part {
		return api.ErrUnauthorized
	}
	c.p.User = part
	return nil
}

// sendToLogin answers a request without a session.
func (c *call) sendToLogin() {
	to := "/login"
	if c.r.Method == http.MethodGet && !c.partial() && c.r.URL.Path != "/" {
		to += "?next=" + url.QueryEscape(c.r.URL.RequestURI())
	}
	_ = c.redirect(to)
}

// loginView is the form that asks for a key.
type loginView struct {
	base
	Next    string
	Problem string
}

// askLogin shows the form, or logs in by a link.
func (h *Handler) askLogin(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, w: w, r: r, ctx: r.Context()}
	q := r.URL.Query()
	v := loginView{base: base{Title: "Log in", Theme: themeOf(r)}, Next: q.Get("next")}
	if code := q.Get("code"); code != "" {
		if h.sessions.redeem(code, h.now()) {
			h.setCookie(w, r, h.sessions.begin(api.Principal{Admin: true, By: "admin"}, h.now()), int(sessionIdle.Seconds()))
			// A redirect would lose the cookie if the link was opened from
			// another site; this page's own refresh does not.
			c.render(http.StatusOK, "entered", v)
			return
		}
		v.Problem = "This link was used already, or is older than 10 minutes. “remora open” makes another."
	}
	c.render(http.StatusOK, "login", v)
}

// login opens a session for the holder of a key.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, w: w, r: r, ctx: r.Context()}
	form, err := c.form()
	if err != nil {
		c.fail(err)
		return
	}
	p, err := h.service.Authenticate(r.Context(), form.Get("key"), request.User(r))
	if err != nil {
		v := loginView{base: base{Title: "Log in", Theme: themeOf(r)}, Next: form.Get("next"), Problem: sentence(api.Detail(err))}
		_, status := api.Kind(err)
		c.render(status, "login", v)
		return
	}
	h.setCookie(w, r, h.sessions.begin(p, h.now()), int(sessionIdle.Seconds()))
	_ = c.redirect(form.Get("next"))
}

func logOut(c *call) error {
	if cookie, err := c.r.Cookie(cookieName(c.r)); err == nil {
		c.sessions.end(cookie.Value)
	}
	c.setCookie(c.w, c.r, "", -1)
	return c.redirect("/login")
}

// themes are those that can be chosen; the first follows the system.
var themes = []string{"auto", "light", "dark"}

const themeCookie = "remora-theme"

func themeOf(r *http.Request) string {
	if cookie, err := r.Cookie(themeCookie); err == nil {
		for _, known := range themes {
			if cookie.Value == known {
				return known
			}
		}
	}
	return themes[0]
}

// setTheme keeps the theme that was chosen, in a cookie that says nothing else.
func setTheme(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	chosen := form.Get("theme")
	if !slices.Contains(themes, chosen) {
		chosen = themes[0]
	}
	http.SetCookie(c.w, &http.Cookie{Name: themeCookie, Value: chosen, Path: "/", MaxAge: 365 * 86400, SameSite: http.SameSiteStrictMode})
	return c.redirect(form.Get("return"))
}
