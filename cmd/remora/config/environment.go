package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Variables that have no row in the table of settings.
const (
	configVariable   = "REMORA_CONFIG"
	upstreamVariable = "REMORA_UPSTREAM"
)

// environment reads the variable of each setting. NAME_FILE means a mounted
// secret, unless a setting has that name, as storage.keyFile does.
func (r *report) environment(table []setting, getenv func(string) string) {
	taken := map[string]bool{}
	for _, s := range table {
		taken[s.env()] = true
	}
	for _, s := range table {
		text, origin, ok := r.variable(s.key, s.env(), !taken[s.env()+"_FILE"], getenv)
		if !ok {
			continue
		}
		r.origins[s.key] = origin
		if err := s.at.parse(text); err != nil {
			r.add(s.key, err.Error())
		}
	}
}

// variable reads NAME, or with mounts the file that NAME_FILE names, without
// newlines at its end.
func (r *report) variable(key, name string, mounts bool, getenv func(string) string) (text, origin string, ok bool) {
	text, mounted := getenv(name), name+"_FILE"
	if !mounts || getenv(mounted) == "" {
		return text, name, text != ""
	}
	if text != "" {
		r.addFrom(key, mounted, "both "+name+" and "+mounted+" are set")
		return "", "", false
	}
	data, err := ReadRegular(getenv(mounted))
	text = strings.TrimRight(string(data), "\r\n")
	if err == nil && strings.TrimSpace(text) == "" { // running without the secret would be running unprotected
		err = errors.New("the file is empty")
	}
	if err != nil {
		r.addFrom(key, mounted, err.Error())
		return "", "", false
	}
	return text, mounted, true
}

// unknownVariables describes variables with Remora's prefix that set nothing.
// They are never an error: Kubernetes gives the pods of a service called remora
// REMORA_PORT_..., REMORA_SERVICE_..., which are left out.
func unknownVariables(environ []string, table []setting) (warnings []string) {
	known := knownVariables(table)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "REMORA_") || value == "" || slices.Contains(known, name) {
			continue
		}
		near := sameLetters(name, known)
		if near == "" && isServiceVariable(name, value) {
			continue
		}
		if near == "" {
			near = closestVariable(strings.TrimPrefix(strings.ToUpper(name), "REMORA_"), known)
		}
		if near != "" {
			warnings = append(warnings, fmt.Sprintf("%s sets nothing; did you mean %s?", name, near))
		} else {
			warnings = append(warnings, name+" sets nothing: there is no such setting")
		}
	}
	return warnings
}

// knownVariables returns the names that set something. A list of objects can't
// be given as text.
func knownVariables(table []setting) []string {
	known := []string{configVariable, upstreamVariable, upstreamVariable + "_FILE"}
	for _, s := range table {
		if s.at.kind() != listOfObjects {
			known = append(known, s.env(), s.env()+"_FILE")
		}
	}
	return known
}

// sameLetters returns the variable that differs only in case and underscores,
// or "".
func sameLetters(name string, known []string) string {
	plain := func(name string) string { return strings.ReplaceAll(strings.ToUpper(name), "_", "") }
	i := slices.IndexFunc(known, func(k string) bool { return plain(k) == plain(name) })
	if i < 0 {
		return ""
	}
	return known[i]
}

// synonyms are other names of settings: those of their flags, and common ones.
var synonyms = map[string]string{
	"ADDR": "LISTEN", "ADDRESS": "LISTEN", "HOST": "LISTEN", "PORT": "LISTEN",
	"DATA": "STORAGE_DIR", "DATA_DIR": "STORAGE_DIR",
	"FORWARD": "FORWARD_LISTEN",
}

// closestVariable returns the variable that a name without its prefix most
// likely means, or "".
func closestVariable(name string, known []string) string {
	if synonym, ok := synonyms[name]; ok {
		return "REMORA_" + synonym
	}
	var names []string
	for _, k := range known {
		if !strings.HasSuffix(k, "_FILE") || strings.Contains(name, "FIL") {
			names = append(names, strings.TrimPrefix(k, "REMORA_"))
		}
	}
	near := Nearest(name, names)
	if near == "" { // a name with something added
		for _, k := range names {
			if strings.HasPrefix(name, k+"_") && len(k) > len(near) {
				near = k
			}
		}
	}
	if near == "" { // the end of exactly one name
		ends := slices.DeleteFunc(slices.Clone(names), func(k string) bool { return !strings.HasSuffix(k, "_"+name) })
		if len(ends) == 1 {
			near = ends[0]
		}
	}
	if near == "" {
		return ""
	}
	return "REMORA_" + near
}

// serviceVariable matches the variables that Kubernetes and Docker links make
// for a service called remora or remora-x.
var serviceVariable = regexp.MustCompile(`^REMORA_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_.*)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$`)

// isServiceVariable reports whether a variable was made for a service. A person
// who sets REMORA_PORT writes no URL.
func isServiceVariable(name, value string) bool {
	return serviceVariable.MatchString(name) &&
		(!strings.HasSuffix(name, "_PORT") || strings.HasSuffix(name, "SERVICE_PORT") || strings.Contains(name, "_TCP_") || strings.Contains(name, "_UDP_") ||
			strings.Contains(name, "_SCTP_") || strings.Contains(value, "://"))
}
