package redact

import (
	"strings"
)

// loginMatcher finds passwords on command lines, in calls and in connection
// strings.
type loginMatcher struct{ *document }

// securedString finds the literal that PowerShell is told to keep secret.
func (m *loginMatcher) securedString(_, end int) {
	line := m.text[end:min(len(m.text), end+maxCommand)]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	quote := strings.IndexAny(line, "\"'")
	if quote < 0 || !strings.Contains(strings.ToLower(line), "-asplaintext") {
		return
	}
	m.addArgument(end+quote, false, false)
}

// command is a program that is given a secret on its command line.
type command struct {
	keyword string
	// flags stand before the secret and end in what joins them: "-u " takes a blank, "-p" nothing. "" is the secret as the
	// first argument.
	flags []string
	// pair: the argument is user:password, and the password is what makes it secret.
	passwordOfPair bool
}

// commands have short flags; those that end in password, token, key and the like are found by their names.
var commands = []command{
	{"curl ", []string{"-u ", "-u", "--user ", "--user=", "--proxy-user ", "-U "}, true},
	{"sshpass ", []string{"-p ", "-p"}, false},
	{"mysql", []string{"-p"}, false}, // and mysqldump, mysqladmin
	{"mariadb", []string{"-p"}, false},
	{"login ", []string{"-p ", "-p="}, false}, // docker, podman, az, oc, helm registry
	{"redis-cli ", []string{"-a "}, false},
	{"mongo ", []string{"-p "}, false},
	{"mongosh ", []string{"-p "}, false},
	{"mongodump ", []string{"-p "}, false},
	{"mongorestore ", []string{"-p "}, false},
	{"secret set ", []string{"--body ", "-b "}, false}, // gh
	{"sqlcmd ", []string{"-P ", "-P"}, false},
	{"ipmitool ", []string{"-P "}, false},
	{"mosquitto_", []string{"-P ", "--pw "}, false},
	{"ldap", []string{"-w "}, false}, // ldapsearch, ldapmodify
	{"smbclient ", []string{"-U "}, false},
	{"7z ", []string{"-p"}, false},
	{"7za ", []string{"-p"}, false},
	{"rar ", []string{"-hp", "-p"}, false}, // and unrar
	{"zip ", []string{"-P ", "-P"}, false}, // and unzip
	{"openssl ", []string{"pass:"}, false},
	{"psexec ", []string{"-p "}, false},
	{"wandb login ", []string{""}, false},
	{"authtoken ", []string{""}, false},
	{"nuget push ", []string{"-k ", "--api-key ", "-apikey "}, false},
}

const (
	maxCommand  = 400 // how far the flags of a command are looked for, in bytes
	maxArgument = 200
)

// find returns an action that looks for the flags in the rest of the command.
func (c command) find() action {
	spaced := make([]string, len(c.flags))
	for i, flag := range c.flags {
		spaced[i] = " " + flag
	}
	return func(s *scanner, start, end int) {
		if start > 0 && isWord(s.text[start-1]) && s.text[start-1] != 'n' { // unzip, unrar
			return
		}
		line := s.text[end:min(len(s.text), end+maxCommand)]
		if i := strings.IndexByte(line, '\n'); i >= 0 && !strings.HasSuffix(strings.TrimRight(line[:i], "\r"), `\`) {
			line = line[:i]
		}
		line = cutAtOperator(cutAtOperator(line, '|'), '&')
		for k, flag := range c.flags {
			if flag == "" {
				s.addArgument(end, true, c.passwordOfPair)
				continue
			}
			i := 0
			if !strings.HasPrefix(line, flag) {
				if i = strings.Index(line, spaced[k]) + 1; i == 0 {
					continue
				}
			}
			s.addArgument(end+i+len(flag), flag[len(flag)-1] == ' ', c.passwordOfPair)
		}
	}
}

// cutAtPipe returns the part of a line in front of the sign, alone (a pipe) or twice, with a blank on both sides.
func cutAtOperator(line string, sign byte) string {
	for from := 1; from < len(line); {
		i := strings.IndexByte(line[from:], sign)
		if i < 0 {
			break
		}
		i += from
		twice := byteAt(line, i+1) == sign && byteAt(line, i+2) == ' '
		if line[i-1] == ' ' && (twice || sign == '|' && byteAt(line, i+1) == ' ') {
			return line[:i-1]
		}
		from = i + 1
	}
	return line
}

// argument adds the argument at i, without quotes. Where nothing stands between it and its flag a blank means that there
// is none.
func (m *loginMatcher) addArgument(i int, spaced, passwordOfPair bool) {
	t := m.text
	if i >= len(t) {
		return
	}
	quote := byte(0)
	if spaced {
		i = m.runTo(i, 4, func(c byte) bool { return c == ' ' })
	}
	for escaped := i; i < len(t) && t[i] == '\\' && i-escaped < 3; {
		i++
	}
	if i < len(t) && (t[i] == '"' || t[i] == '\'') {
		quote = t[i]
		i++
	}
	stop := m.runTo(i, maxArgument, func(c byte) bool {
		return c >= ' ' && c != quote && (quote != 0 || c != ' ' && c != '"' && c != '\'' && c != '`')
	})
	for stop > i && t[stop-1] == '\\' {
		stop--
	}
	value := t[i:stop]
	if passwordOfPair {
		user, password, ok := strings.Cut(value, ":")
		if !ok || len(password) < 3 || isPlaceholderValue(password) || isPlaceholderValue(user) && user != "" || strings.HasPrefix(password, "//") {
			return
		}
		m.add(ruleCredentialURL, i, stop)
		return
	}
	if !spaced && strings.HasPrefix(value, "assword") {
		return // -password
	}
	if len(value) < 4 || isPlaceholderValue(value) || value[0] == '-' || value[0] == '/' || strings.Contains(value, "://") || distinctBytes(value) < 3 {
		return
	}
	if quote == 0 && strings.Trim(value, "0123456789:.") == "" && len(value) < 6 {
		return // a port
	}
	m.add(rulePassword, i, stop)
}

// piped finds what is written into a command that reads a password: echo x | docker login --password-stdin.
func (m *loginMatcher) pipedPassword(start, _ int) {
	before := m.text[max(0, start-maxCommand):start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	echo := strings.LastIndex(before, "echo ")
	if echo < 0 || !strings.Contains(before[echo:], "|") {
		return
	}
	i := start - len(before) + echo + len("echo ")
	for strings.HasPrefix(m.text[i:], "-n ") || strings.HasPrefix(m.text[i:], "-e ") {
		i += 3
	}
	m.addArgument(i, true, false)
}

// herePassword finds a string that is handed in by the shell: --with-token <<< "x".
func (m *loginMatcher) herePassword(_, end int) {
	if at := m.runTo(end, 3, func(c byte) bool { return c == ' ' }); strings.HasPrefix(m.text[at:], "<<<") {
		m.addArgument(at+3, true, false)
	}
}

// netUse finds the password of net use: the last word of the line, behind /user:.
func (m *loginMatcher) netUse(_, end int) {
	line := m.text[end:min(len(m.text), end+maxCommand)]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	user := strings.Index(strings.ToLower(line), "/user:")
	if user < 0 {
		return
	}
	at := strings.IndexByte(line[user:], ' ')
	if at >= 0 {
		m.addArgument(end+user+at, true, false)
	}
}

// htpasswd finds the password of htpasswd -b file user password.
func (m *loginMatcher) htpasswd(_, end int) {
	words, i := 0, end
	for i < len(m.text) && words < 8 && m.text[i] >= ' ' {
		from := m.runTo(i, 8, func(c byte) bool { return c == ' ' })
		if words == 0 && (byteAt(m.text, from) != '-' || !strings.Contains(m.text[from:min(len(m.text), from+6)], "b")) {
			return
		}
		if byteAt(m.text, from) != '-' {
			words++
		} else if words == 0 {
			words = 1
		}
		if words == 4 {
			m.addArgument(from, true, false)
			return
		}
		i = m.runTo(from, 64, func(c byte) bool { return c > ' ' })
		if i == from {
			return
		}
	}
}

// basicAuth finds the second of two literals that a call is given as user and password.
func (m *loginMatcher) basicAuth(_, end int) {
	m.literalPair(m.runTo(end, 3, func(c byte) bool { return c == '(' || c == ' ' }))
}

// connectionArguments finds the last of an address, a user and a password that a call is given.
func (m *loginMatcher) connectionArguments(_, end int) {
	t := m.text
	for i := end; i < len(t) && i-end < maxCommand && t[i] != '\n'; i++ {
		if t[i] == ',' {
			m.literalPair(m.runTo(i+1, 3, func(c byte) bool { return c == ' ' }))
			return
		}
	}
}

// literalPair adds the second of two literals that begin at i.
func (m *loginMatcher) literalPair(i int) {
	t := m.text
	user, stop, ok := literal(t, i)
	if !ok || user == stop || byteAt(t, stop+1) != ',' {
		return
	}
	from, stop, ok := literal(t, m.runTo(stop+2, 3, isBlank))
	if ok && stop-from >= 3 && !isPlaceholderValue(t[from:stop]) {
		m.add(rulePassword, from, stop)
	}
}

// networkLogin finds user:password in front of the network of a data source name of Go's: user:password@tcp(host)/db.
func (m *loginMatcher) networkLogin(start, _ int) {
	from := m.back(start, 160, func(c byte) bool { return c > ' ' && c != '"' && c != '\'' && c != '`' })
	user, password, ok := strings.Cut(m.text[from:start], ":")
	if ok && len(password) >= 3 && user != password && !isPlaceholderValue(password) {
		m.add(ruleCredentialURL, from, start)
	}
}

// sqlLogin finds user/password@ in connection strings of Oracle's.
func (m *loginMatcher) sqlLogin(_, end int) {
	t := m.text
	slash := m.runTo(end, 64, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })
	if byteAt(t, slash) != '/' || slash == end {
		return
	}
	stop := m.runTo(slash+1, 64, func(c byte) bool { return c > ' ' && strings.IndexByte("@/\"'<>", c) < 0 })
	if value := t[slash+1 : stop]; byteAt(t, stop) == '@' && len(value) > 2 && !isPlaceholderValue(value) && value != t[end:slash] {
		m.add(rulePassword, slash+1, stop)
	}
}
