package redact

import (
	"strings"
)

// loginMatcher finds passwords on command lines, in calls and in connection
// strings.
type loginMatcher struct{ *document }

// command is a program that takes a secret on its command line.
type command struct {
	keywords []string
	// flags precede the secret, including the blank or equals sign before it,
	// if any. "" means that the secret is the first argument.
	flags []string
	// pair means that the argument is user:password.
	pair bool
}

// commands have short flags. Flags that end in password, token, key and the
// like are found by their names.
var commands = []command{
	{[]string{"curl "}, []string{"-u ", "-u", "--user ", "--user=", "--proxy-user ", "-U "}, true},
	{[]string{"sshpass "}, []string{"-p ", "-p"}, false},
	{[]string{"mysql", "mariadb", "7z ", "7za "}, []string{"-p"}, false}, // and mysqldump, mysqladmin
	{[]string{"login "}, []string{"-p ", "-p="}, false},                  // docker, podman, az, oc, helm registry
	{[]string{"mongo ", "mongosh ", "mongodump ", "mongorestore ", "psexec "}, []string{"-p "}, false},
	{[]string{"redis-cli "}, []string{"-a "}, false},
	{[]string{"secret set "}, []string{"--body ", "-b "}, false}, // gh
	{[]string{"sqlcmd ", "zip "}, []string{"-P ", "-P"}, false},  // and unzip
	{[]string{"ipmitool "}, []string{"-P "}, false},
	{[]string{"mosquitto_"}, []string{"-P ", "--pw "}, false},
	{[]string{"ldap"}, []string{"-w "}, false}, // ldapsearch, ldapmodify
	{[]string{"smbclient "}, []string{"-U "}, false},
	{[]string{"rar "}, []string{"-hp", "-p"}, false}, // and unrar
	{[]string{"openssl "}, []string{"pass:"}, false},
	{[]string{"wandb login ", "authtoken "}, []string{""}, false},
	{[]string{"nuget push "}, []string{"-k ", "--api-key ", "-apikey "}, false},
}

// Limits of a command, in bytes.
const (
	maxCommand  = 400 // distance of its flags
	maxArgument = 200
)

// find returns an action that searches the rest of the command for the flags.
func (c command) find() action {
	return func(s *scanner, start, end int) {
		if before := byteAt(s.text, start-1); isWord(before) && before != 'n' { // unzip, unrar
			return
		}
		line := s.after(end, maxCommand)
		if i := strings.IndexByte(line, '\n'); i >= 0 && !strings.HasSuffix(strings.TrimRight(line[:i], "\r"), `\`) {
			line = line[:i]
		}
		line = " " + cutAtOperator(cutAtOperator(line, '|'), '&')
		for _, flag := range c.flags {
			if flag == "" {
				s.addArgument(end, true, c.pair)
			} else if i := strings.Index(line, " "+flag); i >= 0 {
				s.addArgument(end+i+len(flag), flag[len(flag)-1] == ' ', c.pair)
			}
		}
	}
}

// cutAtOperator returns the part of a line before the sign, alone (a pipe) or
// doubled, with a blank on both sides.
func cutAtOperator(line string, sign byte) string {
	for i := 1; i < len(line); i++ {
		if line[i] != sign || line[i-1] != ' ' {
			continue
		}
		if next := byteAt(line, i+1); next == sign && byteAt(line, i+2) == ' ' || sign == '|' && next == ' ' {
			return line[:i-1]
		}
	}
	return line
}

// addArgument adds the argument at i, without quotes. spaced means that a blank
// separates it from its flag.
func (m *loginMatcher) addArgument(i int, spaced, pair bool) {
	t := m.text
	if spaced {
		i = m.runTo(i, 4, isBlank)
	}
	i = m.runTo(i, 3, in(`\`))
	quote := byteAt(t, i)
	if quote == '"' || quote == '\'' {
		i++
	} else {
		quote = 0
	}
	stop := m.runTo(i, maxArgument, func(c byte) bool {
		return c >= ' ' && c != quote && (quote != 0 || strings.IndexByte(" \"'`", c) < 0)
	})
	i = min(i, stop)
	value := strings.TrimRight(t[i:stop], `\`)
	stop = i + len(value)
	if pair {
		user, password, ok := strings.Cut(value, ":")
		if ok && len(password) >= 3 && !isPlaceholderValue(password) && (user == "" || !isPlaceholderValue(user)) && !strings.HasPrefix(password, "//") {
			m.add(ruleCredentialURL, i, stop)
		}
		return
	}
	switch {
	case !spaced && strings.HasPrefix(value, "assword"): // -password
	case len(value) < 4 || isPlaceholderValue(value) || value[0] == '-' || value[0] == '/' || strings.Contains(value, "://") || distinctBytes(value) < 3:
	case quote == 0 && len(value) < 6 && strings.Trim(value, "0123456789:.") == "": // a port
	default:
		m.add(rulePassword, i, stop)
	}
}

// pipedPassword finds what is piped into a command that reads a password: echo
// x | docker login --password-stdin.
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

// hereString finds a here-string of the shell: --with-token <<< "x".
func (m *loginMatcher) hereString(_, end int) {
	if i := m.runTo(end, 3, isBlank); strings.HasPrefix(m.text[i:], "<<<") {
		m.addArgument(i+3, true, false)
	}
}

// netUse finds the password of net use: the last word of the line, after
// /user:.
func (m *loginMatcher) netUse(_, end int) {
	line := m.line(end, maxCommand)
	if user := strings.Index(strings.ToLower(line), "/user:"); user >= 0 {
		if blank := strings.IndexByte(line[user:], ' '); blank >= 0 {
			m.addArgument(end+user+blank, true, false)
		}
	}
}

// securedString finds the literal of PowerShell's ConvertTo-SecureString.
func (m *loginMatcher) securedString(_, end int) {
	line := m.line(end, maxCommand)
	if quote := strings.IndexAny(line, "\"'"); quote >= 0 && strings.Contains(strings.ToLower(line), "-asplaintext") {
		m.addArgument(end+quote, false, false)
	}
}

// htpasswd finds the password of htpasswd -b file user password.
func (m *loginMatcher) htpasswd(_, end int) {
	words, i := 0, end
	for words < 8 && byteAt(m.text, i) >= ' ' {
		from := m.runTo(i, 8, isBlank)
		flag := byteAt(m.text, from) == '-'
		switch {
		case words == 0 && (!flag || !strings.Contains(m.after(from, 6), "b")):
			return
		case !flag:
			words++
		default:
			words = max(words, 1)
		}
		if words == 4 {
			m.addArgument(from, true, false)
			return
		}
		if i = m.runTo(from, 64, func(c byte) bool { return c > ' ' }); i == from {
			return
		}
	}
}

// basicAuth finds the second of two literals passed to a call as user and
// password.
func (m *loginMatcher) basicAuth(_, end int) {
	m.literalPair(m.runTo(end, 3, in("( ")))
}

// connectionArguments finds the password in a call with address, user and
// password.
func (m *loginMatcher) connectionArguments(_, end int) {
	if comma := strings.IndexByte(m.line(end, maxCommand), ','); comma >= 0 {
		m.literalPair(m.runTo(end+comma+1, 3, isBlank))
	}
}

// literalPair adds the second of two literals that begin at i.
func (m *loginMatcher) literalPair(i int) {
	_, stop, ok := literal(m.text, i)
	if !ok || byteAt(m.text, stop+1) != ',' {
		return
	}
	from, stop, ok := literal(m.text, m.runTo(stop+2, 3, isBlank))
	if ok && stop-from >= 3 && !isPlaceholderValue(m.text[from:stop]) {
		m.add(rulePassword, from, stop)
	}
}

// networkLogin finds user:password before the network in a Go data source name:
// user:password@tcp(host)/db.
func (m *loginMatcher) networkLogin(start, _ int) {
	from := m.back(start, 160, func(c byte) bool { return c > ' ' && c != '"' && c != '\'' && c != '`' })
	user, password, ok := strings.Cut(m.text[from:start], ":")
	if ok && len(password) >= 3 && user != password && !isPlaceholderValue(password) {
		m.add(ruleCredentialURL, from, start)
	}
}

// sqlLogin finds the password in user/password@ of Oracle connection strings.
func (m *loginMatcher) sqlLogin(_, end int) {
	t := m.text
	slash := m.runTo(end, 64, wordOr(".-"))
	if byteAt(t, slash) != '/' || slash == end {
		return
	}
	stop := m.runTo(slash+1, 64, func(c byte) bool { return c > ' ' && strings.IndexByte("@/\"'<>", c) < 0 })
	if value := t[slash+1 : stop]; byteAt(t, stop) == '@' && len(value) > 2 && !isPlaceholderValue(value) && value != t[end:slash] {
		m.add(rulePassword, slash+1, stop)
	}
}
