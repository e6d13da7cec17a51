package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Variables that belong to no row of the table of settings.
const (
	configVariable   = "REMORA_CONFIG"
	upstreamVariable = "REMORA_UPSTREAM"
)

// environment reads the variable of each setting. Where a key of its own is called NAME_FILE, as storage.keyFile is, that means this key.
func (l *loader) environment(table []setting) {
	taken := map[string]bool{}
	for _, s := range table {
		taken[s.env()] = true
	}
	for _, s := range table {
		text, origin, ok := l.variable(s.key, s.env(), !taken[s.env()+"_FILE"])
		if !ok {
			continue
		}
		l.origins[s.key] = origin
		if err := s.at.parse(text); err != nil {
			l.found.add(s.key, origin, err.Error())
		}
	}
}

// variable reads NAME, or with mounts the file that NAME_FILE names (newlines at its end cut), for the setting at key.
func (l *loader) variable(key, name string, mounts bool) (text, origin string, ok bool) {
	text, mounted := l.getenv(name), name+"_FILE"
	if !mounts || l.getenv(mounted) == "" {
		return text, name, text != ""
	}
	if text != "" {
		l.found.add(key, mounted, "both "+name+" and "+mounted+" are set")
		return "", "", false
	}
	data, err := readMounted(l.getenv(mounted))
	text = strings.TrimRight(string(data), "\r\n")
	if err == nil && strings.TrimSpace(text) == "" { // a secret that was meant to be there: going on without would be to go on unprotected
		err = errors.New("the file is empty")
	}
	if err != nil {
		l.found.add(key, mounted, err.Error())
		return "", "", false
	}
	return text, mounted, true
}

// readMounted reads a regular file, or what a link to one leads to, as mounted secrets are. Another, such as a pipe, is not opened: it may
// wait for a writer for ever.
func readMounted(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return readBounded(path)
}

// misspelt tells of variables that are meant for Remora, by their name, and that set nothing. Never an error: Kubernetes gives a pod
// REMORA_PORT_..., REMORA_SERVICE_... of a service that is called so, of which nothing is told.
func misspelt(environ []string, table []setting) (told []string) {
	known := knownVariables(table)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "REMORA_") || value == "" || slices.Contains(known, name) {
			continue
		}
		near := sameLetters(name, known)
		if near == "" && ofService(name, value) {
			continue
		}
		if near == "" {
			near = meant(strings.TrimPrefix(strings.ToUpper(name), "REMORA_"), known)
		}
		if near != "" {
			told = append(told, fmt.Sprintf("%s sets nothing; did you mean %s?", name, near))
		} else {
			told = append(told, name+" sets nothing: there is no such setting")
		}
	}
	return told
}

// knownVariables are those that set something. A list of objects has no form in text, so that its variable is an error.
func knownVariables(table []setting) []string {
	known := []string{configVariable, upstreamVariable, upstreamVariable + "_FILE"}
	for _, s := range table {
		if s.at.kind() != listOfObjects {
			known = append(known, s.env(), s.env()+"_FILE")
		}
	}
	return known
}

// sameLetters is the variable that differs in case and underscores only; "" = none does.
func sameLetters(name string, known []string) string {
	plain := func(name string) string { return strings.ReplaceAll(strings.ToUpper(name), "_", "") }
	i := slices.IndexFunc(known, func(k string) bool { return plain(k) == plain(name) })
	if i < 0 {
		return ""
	}
	return known[i]
}

// byFlag are the settings that flags set under another name, and what else they are called.
var byFlag = map[string]string{
	"ADDR": "LISTEN", "ADDRESS": "LISTEN", "HOST": "LISTEN", "PORT": "LISTEN",
	"DATA": "STORAGE_DIR", "DATA_DIR": "STORAGE_DIR",
	"FORWARD": "FORWARD_LISTEN",
}

// meant is the variable that a name without its prefix is most likely to stand for; "" = none.
func meant(name string, known []string) string {
	if flag, ok := byFlag[name]; ok {
		return "REMORA_" + flag
	}
	var names []string
	for _, k := range known {
		if !strings.HasSuffix(k, "_FILE") || strings.Contains(name, "FIL") {
			names = append(names, strings.TrimPrefix(k, "REMORA_"))
		}
	}
	near := nearest(name, names)
	if near == "" { // more than a name
		for _, k := range names {
			if strings.HasPrefix(name, k+"_") && len(k) > len(near) {
				near = k
			}
		}
	}
	if near == "" { // the end of one name, and of no other
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

// serviceVariable is what Kubernetes and Docker links make of a service or container called remora, or remora-something.
var serviceVariable = regexp.MustCompile(`^REMORA_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_.*)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$`)

// ofService tells such a variable from one of a person's, who would not write a URL for a port.
func ofService(name, value string) bool {
	return serviceVariable.MatchString(name) &&
		(!strings.HasSuffix(name, "_PORT") || strings.HasSuffix(name, "SERVICE_PORT") || strings.Contains(name, "_TCP_") || strings.Contains(name, "_UDP_") ||
			strings.Contains(name, "_SCTP_") || strings.Contains(value, "://"))
}
