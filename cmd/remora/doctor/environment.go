package doctor

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/cmd/remora/agents"
)

// Environment is what agents of this machine find, and where Remora is.
type Environment struct {
	Getenv func(name string) string
	Look   func(program string) (path string, err error) // as exec.LookPath
	Read   func(path string) ([]byte, error)             // files of agents, and certificates
	Home   string                                        // "" = none is known

	Base    string // URL for agents
	Forward string // address of the forward listener, "" = none
	CACert  string // file of the certificate of its authority
	// ProxyFromEnvironment means that Remora itself uses the proxies of the
	// environment.
	ProxyFromEnvironment bool
}

// Findings examines the variables and files by which agents find Remora. They
// are those of the shell that the doctor runs in: an agent may have others.
func (e Environment) Findings() []Finding {
	findings := e.proxies()
	through := e.throughForward() // then base URLs are not needed
	seen := map[string]bool{}
	for _, a := range agents.All() {
		at := a.At(e.Base)
		installed := len(agents.Installed(func(program string) (string, error) {
			if slices.Contains(a.Programs, program) {
				return e.Look(program)
			}
			return "", errNotAsked
		})) > 0
		for _, v := range at.Variables {
			if f, ok := e.variable(at, v, installed && !through); ok && !seen[v.Name] {
				seen[v.Name] = true
				findings = append(findings, f)
			}
		}
		if len(a.Places) > 0 && installed && !through {
			findings = append(findings, e.file(at))
		}
	}
	return append(findings, e.trust(through)...)
}

// errNotAsked is the error of looking for a program of another agent.
var errNotAsked = fmt.Errorf("not asked")

// variable examines a variable that holds Remora's address. ok is false if there
// is nothing to say: it is not set, and no agent misses it.
func (e Environment) variable(a agents.Agent, v agents.Variable, missed bool) (f Finding, ok bool) {
	if !strings.HasPrefix(v.Value, e.Base) {
		return f, false
	}
	f = Finding{Subject: v.Name, Status: OK, Text: "leads to Remora"}
	fix := fmt.Sprintf("For %s, run: %s", a.Title, v.Line("sh"))
	given := e.Getenv(v.Name)
	switch is, err := url.Parse(given); {
	case given == "":
		f.Status, f.Text, f.Fix = Warning, fmt.Sprintf("not set here, and %s is installed: its requests don't pass through Remora", a.Title), fix
		return f, missed
	case strings.TrimSuffix(given, "/") == v.Value:
	case err != nil || is.Host == "":
		f.Status, f.Text, f.Fix = Warning, "is not a URL", fix
	case e.isRemora(is.Host):
		f.Status, f.Text, f.Fix = Warning, "leads to Remora with another path or scheme than "+v.Value, fix
	default:
		f.Status, f.Text, f.Fix = Warning, fmt.Sprintf("leads to %s, not to Remora", is.Host), fix+
			"; and if Remora is to send everything there, name that server in upstreams."
	}
	return f, true
}

// file examines the file of an agent that is installed.
func (e Environment) file(a agents.Agent) Finding {
	f := Finding{Subject: a.Title, Status: OK}
	host := strings.TrimPrefix(e.Base, "http://")
	_, port, _ := net.SplitHostPort(host) // Base has one
	misplaced := ""
	for _, place := range a.Places {
		if rest, inHome := strings.CutPrefix(place, "~/"); inHome {
			if e.Home == "" {
				continue
			}
			place = filepath.Join(e.Home, filepath.FromSlash(rest))
		}
		text, err := e.Read(place)
		if err != nil {
			continue
		}
		leads := bytes.Contains(text, []byte(host)) || bytes.Contains(text, []byte("localhost:"+port))
		if a.URL != nil {
			_, address := hostOf(a.URL(string(text)))
			if leads && !e.isRemora(address) {
				misplaced = place
			}
			leads = e.isRemora(address)
		}
		if leads {
			f.Text = place + " leads to Remora"
			return f
		}
	}
	f.Status, f.Text = Warning, fmt.Sprintf("installed, and %s does not name %s: its requests don't pass through Remora", a.File, e.Base)
	if misplaced != "" {
		f.Text = fmt.Sprintf("%s names %s only where %s does not read it: its requests don't pass through Remora", misplaced, e.Base, a.Title)
	}
	f.Fix = fmt.Sprintf("'remora env %s' prints what goes there.", a.Name)
	if a.Wrappable() {
		f.Fix = fmt.Sprintf("Run it with: remora wrap -- %s; or put there what 'remora env %s' prints, and where it says.", a.Programs[0], a.Name)
	}
	return f
}

// proxies examines the variables that name proxies.
func (e Environment) proxies() (findings []Finding) {
	own, _ := hostOf(e.Base)
	except := strings.FieldsFunc(e.Getenv("NO_PROXY")+","+e.Getenv("no_proxy"), func(r rune) bool { return r == ',' || r == ' ' })
	around := slices.ContainsFunc([]string{own, "*"}, func(name string) bool { return slices.Contains(except, name) })
	for _, name := range agents.ProxyVariables {
		given := e.Getenv(name)
		if given == "" {
			continue
		}
		f := Finding{Subject: name, Status: OK}
		_, address := hostOf(given)
		switch {
		case e.isRemora(address):
			f.Status, f.Text = Failed, "leads to Remora's reverse listener, which is no proxy"
			f.Fix = "Unset " + name + " and use a base URL ('remora env'), or name the forward listener there ('remora serve --forward')."
		case e.isForward(address) && e.ProxyFromEnvironment:
			f.Status, f.Text = Failed, "leads to Remora's forward listener, and Remora uses it for its own requests: they loop"
			f.Fix = "Set proxyFromEnvironment to false, or start Remora without " + name + "."
		case e.isForward(address):
			f.Text = "leads to Remora's forward listener"
		case !around:
			f.Status, f.Text = Warning, fmt.Sprintf("leads to %s, and agents may ask it for Remora's address, too", address)
			f.Fix = fmt.Sprintf("Set NO_PROXY=%s,localhost for agents.", own)
		default:
			f.Text = fmt.Sprintf("leads to %s, and not for requests to Remora", address)
		}
		findings = append(findings, f)
	}
	return findings
}

// trust examines whether agents whose connections are intercepted trust the
// authority.
func (e Environment) trust(through bool) (findings []Finding) {
	if !through || e.CACert == "" {
		return nil
	}
	authority, err := e.Read(e.CACert)
	if err != nil {
		return nil // checked where the authority is
	}
	const help = "'remora ca trust-help' prints the variables that agents read."
	for _, name := range [...]string{"NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} {
		file := e.Getenv(name)
		if file == "" {
			continue
		}
		f := Finding{Subject: name, Status: OK, Text: "has the certificate authority of the forward listener"}
		if text, err := e.Read(file); err != nil || !bytes.Contains(text, bytes.TrimSpace(authority)) {
			f.Status, f.Text, f.Fix = Warning, "names a file without the certificate authority of the forward listener", help
		}
		findings = append(findings, f)
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{
			Subject: "certificate authority", Status: Warning, Fix: help,
			Text: "agents go through the forward listener here, and no variable has them trust its authority",
		})
	}
	return findings
}

// throughForward reports whether HTTPS goes through the forward listener.
func (e Environment) throughForward() bool {
	for _, name := range [...]string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if _, address := hostOf(e.Getenv(name)); e.isForward(address) {
			return true
		}
	}
	return false
}

func (e Environment) isRemora(address string) bool {
	_, own := hostOf(e.Base)
	return same(address, own)
}

func (e Environment) isForward(address string) bool {
	return e.Forward != "" && same(address, e.Forward)
}

// hostOf returns the host of a URL, whose scheme may be missing, and its
// address, without credentials.
func hostOf(text string) (host, address string) {
	if text == "" {
		return "", ""
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", "an address that can't be read"
	}
	return u.Hostname(), u.Host
}

// same reports whether two addresses are those of one listener, as far as that
// is known without resolving names but localhost.
func same(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	return strings.EqualFold(hostA, hostB) || here(hostA) && here(hostB)
}

// here reports whether a host is this machine by its name or address.
func here(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || strings.EqualFold(host, "localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}
