package redact

import "strings"

// command is a program that is given a secret on its command line.
type command struct {
	keyword string
	// flags stand before the secret and end in what joins them: "-u " takes a blank, "-p" nothing. "" is the secret as the
	// first argument.
	flags []string
	// pair: the argument is user:password, and the password is what makes it secret.
	pair bool
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
		line = cutAtPipe(cutAtPipe(line, '|'), '&')
		for k, flag := range c.flags {
			if flag == "" {
				s.argument(end, true, c.pair)
				continue
			}
			i := 0
			if !strings.HasPrefix(line, flag) {
				if i = strings.Index(line, spaced[k]) + 1; i == 0 {
					continue
				}
			}
			s.argument(end+i+len(flag), flag[len(flag)-1] == ' ', c.pair)
		}
	}
}

// cutAtPipe returns the part of a line in front of the sign, alone (a pipe) or twice, with a blank on both sides.
func cutAtPipe(line string, sign byte) string {
	for from := 1; from < len(line); {
		i := strings.IndexByte(line[from:], sign)
		if i < 0 {
			break
		}
		i += from
		twice := at(line, i+1) == sign && at(line, i+2) == ' '
		if line[i-1] == ' ' && (twice || sign == '|' && at(line, i+1) == ' ') {
			return line[:i-1]
		}
		from = i + 1
	}
	return line
}

// argument adds the argument at i, without quotes. Where nothing stands between it and its flag a blank means that there
// is none.
func (s *scanner) argument(i int, spaced, pair bool) {
	t := s.text
	if i >= len(t) {
		return
	}
	quote := byte(0)
	if spaced {
		i = s.runTo(i, 4, func(c byte) bool { return c == ' ' })
	}
	for escaped := i; i < len(t) && t[i] == '\\' && i-escaped < 3; {
		i++
	}
	if i < len(t) && (t[i] == '"' || t[i] == '\'') {
		quote = t[i]
		i++
	}
	stop := s.runTo(i, maxArgument, func(c byte) bool {
		return c >= ' ' && c != quote && (quote != 0 || c != ' ' && c != '"' && c != '\'' && c != '`')
	})
	for stop > i && t[stop-1] == '\\' {
		stop--
	}
	value := t[i:stop]
	if pair {
		user, password, ok := strings.Cut(value, ":")
		if !ok || len(password) < 3 || isTemplate(password) || isTemplate(user) && user != "" || strings.HasPrefix(password, "//") {
			return
		}
		s.add(ruleCredentialURL, i, stop)
		return
	}
	if !spaced && strings.HasPrefix(value, "assword") {
		return // -password
	}
	if len(value) < 4 || isTemplate(value) || value[0] == '-' || value[0] == '/' || strings.Contains(value, "://") || distinct(value) < 3 {
		return
	}
	if quote == 0 && strings.Trim(value, "0123456789:.") == "" && len(value) < 6 {
		return // a port
	}
	s.add(rulePassword, i, stop)
}

// piped finds what is written into a command that reads a password: echo x | docker login --password-stdin.
func (s *scanner) piped(start, _ int) {
	before := s.text[max(0, start-maxCommand):start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	echo := strings.LastIndex(before, "echo ")
	if echo < 0 || !strings.Contains(before[echo:], "|") {
		return
	}
	i := start - len(before) + echo + len("echo ")
	for strings.HasPrefix(s.text[i:], "-n ") || strings.HasPrefix(s.text[i:], "-e ") {
		i += 3
	}
	s.argument(i, true, false)
}

// herePassword finds a string that is handed in by the shell: --with-token <<< "x".
func (s *scanner) herePassword(_, end int) {
	if at := s.runTo(end, 3, func(c byte) bool { return c == ' ' }); strings.HasPrefix(s.text[at:], "<<<") {
		s.argument(at+3, true, false)
	}
}

// netUse finds the password of net use: the last word of the line, behind /user:.
func (s *scanner) netUse(_, end int) {
	line := s.text[end:min(len(s.text), end+maxCommand)]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	user := strings.Index(strings.ToLower(line), "/user:")
	if user < 0 {
		return
	}
	at := strings.IndexByte(line[user:], ' ')
	if at >= 0 {
		s.argument(end+user+at, true, false)
	}
}

// htpasswd finds the password of htpasswd -b file user password.
func (s *scanner) htpasswd(_, end int) {
	words, i := 0, end
	for i < len(s.text) && words < 8 && s.text[i] >= ' ' {
		from := s.runTo(i, 8, func(c byte) bool { return c == ' ' })
		if words == 0 && (at(s.text, from) != '-' || !strings.Contains(s.text[from:min(len(s.text), from+6)], "b")) {
			return
		}
		if at(s.text, from) != '-' {
			words++
		} else if words == 0 {
			words = 1
		}
		if words == 4 {
			s.argument(from, true, false)
			return
		}
		i = s.runTo(from, 64, func(c byte) bool { return c > ' ' })
		if i == from {
			return
		}
	}
}

// basicAuth finds the second of two literals that a call is given as user and password.
func (s *scanner) basicAuth(_, end int) {
	s.literalPair(s.runTo(end, 3, func(c byte) bool { return c == '(' || c == ' ' }))
}

// connectionArguments finds the last of an address, a user and a password that a call is given.
func (s *scanner) connectionArguments(_, end int) {
	t := s.text
	for i := end; i < len(t) && i-end < maxCommand && t[i] != '\n'; i++ {
		if t[i] == ',' {
			s.literalPair(s.runTo(i+1, 3, func(c byte) bool { return c == ' ' }))
			return
		}
	}
}

// literalPair adds the second of two literals that begin at i.
func (s *scanner) literalPair(i int) {
	t := s.text
	user, stop, quoted, ok := s.value(i)
	if !ok || !quoted || user == stop || at(t, stop+1) != ',' {
		return
	}
	from, stop, quoted, ok := s.value(s.runTo(stop+2, 3, func(c byte) bool { return c == ' ' }))
	if ok && quoted && stop-from >= 3 && !isTemplate(t[from:stop]) {
		s.add(rulePassword, from, stop)
	}
}

// networkLogin finds user:password in front of the network of a data source name of Go's: user:password@tcp(host)/db.
func (s *scanner) networkLogin(start, _ int) {
	from := s.back(start, 160, func(c byte) bool { return c > ' ' && c != '"' && c != '\'' && c != '`' })
	user, password, ok := strings.Cut(s.text[from:start], ":")
	if ok && len(password) >= 3 && user != password && !isTemplate(password) {
		s.add(ruleCredentialURL, from, start)
	}
}

// sqlLogin finds user/password@ in connection strings of Oracle's.
func (s *scanner) sqlLogin(_, end int) {
	t := s.text
	slash := s.runTo(end, 64, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })
	if at(t, slash) != '/' || slash == end {
		return
	}
	stop := s.runTo(slash+1, 64, func(c byte) bool { return c > ' ' && strings.IndexByte("@/\"'<>", c) < 0 })
	if value := t[slash+1 : stop]; at(t, stop) == '@' && len(value) > 2 && !isTemplate(value) && value != t[end:slash] {
		s.add(rulePassword, slash+1, stop)
	}
}
