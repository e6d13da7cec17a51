package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remora-proxy/remora/proxy/identity"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// testPlace returns a machine with a home and nothing else.
func testPlace() Place {
	return Place{os: "linux", home: "/home/ada", getenv: func(string) string { return "" }}
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// shown returns a configuration as it is printed.
func shown(t *testing.T, c Config) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func generated(t *testing.T, name string, want []byte) {
	t.Helper()
	file := filepath.Join("..", "..", "..", filepath.FromSlash(name))
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale, run make docs (-want +got):\n%s", name, diff)
	}
}

func TestExampleEqualsDefaults(t *testing.T) {
	c := Default()
	generated(t, "config.example.json", []byte(shown(t, c)))

	got, err := Load(Overrides{File: filepath.Join("..", "..", "..", "config.example.json")}, environment(), testPlace())
	if err != nil {
		t.Fatal(err)
	}
	want, err := Load(Overrides{}, environment(), testPlace())
	if err != nil {
		t.Fatal(err)
	}
	got.File = want.File
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{}), cmpopts.IgnoreTypes(&loaded{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("config.example.json does not decode to the defaults (-want +got):\n%s", diff)
	}
}

func TestConfigurationDocs(t *testing.T) {
	c := Default()
	var b bytes.Buffer
	if err := writeDocs(&b, c.settings()); err != nil {
		t.Fatal(err)
	}
	generated(t, "docs/configuration.md", b.Bytes())
}

// TestSettings checks that every row has its own key and variable, and a
// description.
func TestSettings(t *testing.T) {
	c := Default()
	keys, variables := map[string]bool{}, map[string]bool{}
	for _, s := range c.settings() {
		if keys[s.key] || variables[s.env()] {
			t.Errorf("%s or %s is not unique", s.key, s.env())
		}
		keys[s.key], variables[s.env()] = true, true
		if s.doc == "" || !strings.HasSuffix(s.doc, ".") {
			t.Errorf("%s: the documentation %q is not a sentence", s.key, s.doc)
		}
	}
	if got, want := (setting{key: "recall.firstDeadline"}).env(), "REMORA_RECALL_FIRST_DEADLINE"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name := range sectionDocs {
		found := false
		for key := range keys {
			found = found || strings.HasPrefix(key, name+".")
		}
		if !found {
			t.Errorf("section %s is described but has no setting", name)
		}
	}
}

// TestEveryFieldCanBeSet checks that every field of the packages'
// configurations has a setting, or a reason why not.
func TestEveryFieldCanBeSet(t *testing.T) {
	c := Default()
	set := map[uintptr]bool{}
	for _, s := range c.settings() {
		at := reflect.ValueOf(s.at)
		if inner := at.FieldByName("scalar"); inner.IsValid() {
			at = inner
		}
		set[at.FieldByName("to").Pointer()] = true
	}
	const constant = "is a constant of its package"
	fixed := map[string]string{
		"Proxy.Identity.Loopback":           "follows from the listen address",
		"Proxy.Identity.Container":          "is detected",
		"Proxy.RecallDeadline":              "is Recall.Deadline",
		"Proxy.FirstDeadline":               "is Recall.FirstDeadline",
		"Proxy.Limits.Assemblies":           constant,
		"Proxy.Ledger.ReplayWindow":         constant,
		"Proxy.Transport.TLSTimeout":        constant,
		"Proxy.Transport.PlainIdleTimeout":  constant,
		"Server.WriteIdle":                  "is Proxy.Streams.WriteIdle",
		"Forward.DialTimeout":               "is Proxy.Transport.DialTimeout",
		"Forward.Drain":                     constant,
		"Recall.MaxLoads":                   constant,
		"Recall.LoadTimeout":                constant,
		"Recall.SnapshotAfter":              constant,
		"Recall.SearchConfig.MaxTerms":      constant,
		"Recall.SearchConfig.BorrowTerms":   constant,
		"Recall.SearchConfig.BorrowWeight":  constant,
		"Recall.SearchConfig.Weights":       "is varied by benchmarks only",
		"Recall.Vectors":                    "is varied by benchmarks only, but for what the program fills in",
		"Embeddings.QueryTimeout":           constant,
		"Embeddings.Retries":                constant,
		"Embeddings.CacheQueries":           constant,
		"Persist.MaxWrite":                  "is the store's",
		"Persist.MaxQuarantined":            constant,
		"Persist.Audit.Tokens":              constant,
		"Persist.Audit.WindowMessages":      constant,
		"Persist.Audit.PerAudit":            constant,
		"Persist.Audit.MaxConversations":    constant,
		"Persist.Facts.Config.MaxForgotten": constant,
		"Persist.Facts.Config.KeepLonger":   constant,
		"Persist.Facts.Config.HalfLife":     constant,
		"Distill.MaxFacts":                  constant,
		"Server.Limit":                      "is made of Exchanges",
		"Storage.Key":                       "is storageKey, decoded",
		"Storage.NewKey":                    "follows from the key file and the machine",
		"Storage.MemoryBytes":               "is Store.MemoryBytes",
		"Storage.FreeBytes":                 "is for tests",
		"Storage.Fatal":                     "is the program's",
	}
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		if _, ok := fixed[name]; ok {
			delete(fixed, name)
			return
		}
		if v.Kind() != reflect.Struct {
			if !set[v.Addr().Pointer()] {
				t.Errorf("%s has no setting", name)
			}
			return
		}
		for i := range v.NumField() {
			walk(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
	for name, part := range map[string]any{
		"Server": &c.Server, "Forward": &c.Forward, "Proxy": &c.Proxy, "Recall": &c.Recall, "Embeddings": &c.Embeddings, "Persist": &c.Persist,
		"Distill": &c.Distill, "Redact": &c.Redact, "Storage": &c.Storage, "Log": &c.Log,
	} {
		walk(name, reflect.ValueOf(part).Elem())
	}
	for name := range fixed {
		t.Errorf("%s is listed as fixed, but is not a field", name)
	}
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, `{"listen": "127.0.0.1:1001", "storage": {"dir": "/from/file"}, "recall": {"topK": 5, "deadline": "40ms"}, "timeouts": {"writeIdle": "4m"}}`)
	env := environment("REMORA_CONFIG", file, "REMORA_STORAGE_DIR", "/from/env", "REMORA_RECALL_TOP_K", "6",
		"REMORA_UPSTREAM", "https://env.example", "REMORA_IDENTITY_USER_HEADERS", "X-A, X-B",
		"REMORA_IDENTITY_TENANTS", strings.Repeat("ab", 32)+"=team")
	c, err := Load(Overrides{Data: "/from/flag", Upstream: "https://flag.example"}, env, testPlace())
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct{ name, got, want string }{
		{"listen, of the file", c.Server.Listen, "127.0.0.1:1001"},
		{"storage.dir, of the flag", c.Storage.Dir, "/from/flag"},
		{"storage.keyFile, by default", filepath.ToSlash(c.Storage.KeyFile), "/home/ada/.config/remora/store.key"},
		{"recall.deadline, of the file", c.Recall.Deadline.String(), "40ms"},
		{"the proxy's deadline, the same", c.Proxy.RecallDeadline.String(), "40ms"},
		{"what a connection may take nothing for, as an answer", c.Server.WriteIdle.String(), "4m0s"},
		{"upstream, of the flag", c.Proxy.Upstreams[0].URL, "https://flag.example"},
		{"headers, of the environment", strings.Join(c.Proxy.Identity.UserHeaders, "|"), "X-A|X-B"},
		{"tenants, of the environment", c.Proxy.Identity.Tenants[strings.Repeat("ab", 32)], "team"},
	} {
		if check.got != check.want {
			t.Errorf("%s: got %q, want %q", check.name, check.got, check.want)
		}
	}
	if got, want := c.Recall.TopK, 6; got != want {
		t.Errorf("recall.topK, of the environment: got %d, want %d", got, want)
	}
	if got, want := len(c.Proxy.Upstreams), 1; got != want {
		t.Errorf("got %d upstreams, want %d for every path", got, want)
	}
}

func TestMountedSecret(t *testing.T) {
	key := strings.Repeat("0f", 32)
	mounted := writeFile(t, "debug\n")
	c, err := Load(Overrides{}, environment("REMORA_STORAGE_KEY", key, "REMORA_LOG_LEVEL_FILE", mounted), testPlace())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(c.Storage.Key), 32; got != want {
		t.Errorf("key has %d bytes, want %d", got, want)
	}
	if got, want := c.Log.Level, "debug"; got != want {
		t.Errorf("log.level: got %q, want %q, from the mounted file", got, want)
	}
	if got := shown(t, c); strings.Contains(got, key) || !strings.Contains(got, `"key": "[redacted]"`) {
		t.Errorf("the key is shown, or not shown to be set:\n%s", got)
	}

	// So has the one upstream, which stands in no row of the table.
	url := writeFile(t, "https://llm.example\n")
	c, err = Load(Overrides{}, environment("REMORA_UPSTREAM_FILE", url), testPlace())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Proxy.Upstreams, "https://llm.example"; len(got) != 1 || got[0].URL != want {
		t.Errorf("upstreams: got %v, want the one of the mounted file", got)
	}

	// A flag wins over a variable that can't be read.
	if c, err = Load(Overrides{Upstream: "https://other.example"}, environment("REMORA_UPSTREAM_FILE", url+".none"), testPlace()); err != nil || c.Proxy.Upstreams[0].URL != "https://other.example" {
		t.Errorf("the flag's upstream: got %v, %v", c, err)
	}

	// A secret whose file is missing must not count as empty: the listener would be
	// open.
	_, err = Load(Overrides{}, environment(
		"REMORA_UPSTREAM", "https://llm.example", "REMORA_UPSTREAM_FILE", url,
		"REMORA_FORWARD_TOKEN_FILE", writeFile(t, ""), "REMORA_RECALL_EMBEDDINGS_KEY_FILE", writeFile(t, "\n"), "REMORA_DISTILL_KEY_FILE", t.TempDir(),
	), testPlace())
	for _, want := range []string{
		"upstreams: both REMORA_UPSTREAM and REMORA_UPSTREAM_FILE are set (REMORA_UPSTREAM_FILE)",
		"forward.token: the file is empty (REMORA_FORWARD_TOKEN_FILE)",
		"recall.embeddings.key: the file is empty (REMORA_RECALL_EMBEDDINGS_KEY_FILE)",
		"is not a regular file (REMORA_DISTILL_KEY_FILE)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	// storage.keyFile has a variable that ends in _FILE itself.
	c, err = Load(Overrides{}, environment("REMORA_STORAGE_KEY_FILE", "/run/secrets/key"), testPlace())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Storage.KeyFile, "/run/secrets/key"; got != want || c.storageKey != "" {
		t.Errorf("storage.keyFile: got %q, want %q", got, want)
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, file string
		env        []string
		want       []string // each a whole line
	}{
		{
			name: "all at once, with key and place",
			file: "{\n  \"listn\": \"x\",\n  \"recall\": {\n    \"deadline\": \"soon\",\n    \"topK\": 0,\n    \"gates\": 1,\n    \"weights\": {\"k1\": 1.6},\n    \"maxTerms\": 8\n  },\n  \"upstreams\": [{\"name\": \"a\", \"url\": \"ftp://x\", \"path\": [\"/\"]}],\n  \"log\": {\"level\": \"loud\"}\n}",
			env:  []string{"REMORA_LIMITS_TEE_BYTES", "lots"},
			want: []string{
				`listn: unknown key; did you mean "listen"? (config.json:2)`,
				`recall.deadline: must be a duration such as "30ms", "1m30s" or "24h" between 1ms and 876000h (config.json:4)`,
				`recall.topK: must be an integer between 1 and 100 (config.json:5)`,
				`recall.gates: unknown key; did you mean "gate"? (config.json:6)`,
				`recall.weights: unknown key (config.json:7)`,
				`recall.maxTerms: unknown key (config.json:8)`,
				`upstreams[0].path: unknown key; did you mean "paths"? (config.json:10)`,
				`log.level: must be one of debug, info, warn, error (config.json:11)`,
				`limits.teeBytes: must be a number of bytes between 1 KiB and 1 GiB (REMORA_LIMITS_TEE_BYTES)`,
				`upstreams[0].url: must begin with http:// or https:// (config.json:10)`,
				`upstreams[0].paths: must name at least one prefix; "/" takes every path (config.json:10)`,
			},
		},
		{
			name: "duplicate keys",
			file: "{\n  \"listen\": \"127.0.0.1:1\",\n  \"log\": {\"level\": \"info\",\n \"level\": \"warn\"},\n  \"listen\": \"127.0.0.1:2\"\n}",
			want: []string{`log.level: duplicate key, first on line 3 (config.json:4)`, `listen: duplicate key, first on line 2 (config.json:5)`},
		},
		{
			name: "not JSON",
			file: "{\n  \"listen\": \"127.0.0.1:1\"\n  \"log\": {}\n}",
			want: []string{`config.json:3: not valid JSON: invalid character '"' after object key:value pair`},
		},
		{name: "cut off", file: "{\n  \"log\": {\n", want: []string{`config.json:3: not valid JSON: unexpected end`}},
		{name: "empty", file: "", want: []string{`config.json:1: not valid JSON: unexpected end`}},
		{name: "more after the end", file: "{}\n{}", want: []string{`config.json:2: more after the end of the configuration`}},
		{name: "not an object", file: "[]", want: []string{`the configuration must be a JSON object (config.json:1)`}},
		{
			name: "too deep",
			file: strings.Repeat("[", 10_000),
			want: []string{`config.json:1: nested deeper than 16 levels`},
		},
		{
			name: "wrong shapes",
			file: `{"log": "info", "listen": null, "upstreams": {}, "identity": {"tenants": [], "userHeaders": ["a", 1]}, "storage": {"minFreeBytes": -1, "key": "short"}}`,
			want: []string{
				`log: must be an object (config.json:1)`,
				`listen: must not be null; leave the key out for its default (config.json:1)`,
				`upstreams: must be a list of objects (config.json:1)`,
				`identity.tenants: must be an object of strings (config.json:1)`,
				`identity.userHeaders[1]: must be a string (config.json:1)`,
				`storage.minFreeBytes: must be a number of bytes between 0 and 1 TiB (config.json:1)`,
				`storage.key: must be 32 bytes, as hex or base64 (config.json:1)`,
			},
		},
		{
			name: "custom redaction rules",
			file: `{"redact": {"disable": ["nose"], "rules": [
{"id": "ticket", "pattern": "T-(\\d+", "placeholder": "[TICKET]"},
{"id": "email", "pattern": "x*", "placeholder": "TICKET", "validator": "crc", "keywords": ["x", "ok"]},
{"id": "ticket", "pattern": "T-\\d+", "placeholder": "[ticket]", "words": []}]}}`,
			want: []string{
				`redact.rules[1].validator: must be one of none, luhn, mod97, entropy (config.json:3)`,
				`redact.rules[2].words: unknown key (config.json:4)`,
				`redact.rules[0].pattern: is not a regular expression (RE2): missing closing ) (config.json:2)`,
				`redact.rules[1].id: "email" is already used by a built-in rule (config.json:3)`,
				`redact.rules[1].placeholder: must be [NAME], where NAME is 2 to 19 of A-Z and _ (config.json:3)`,
				`redact.rules[1].pattern: must not match the empty string (config.json:3)`,
				`redact.rules[1].keywords[0]: must have 2 to 32 bytes (config.json:3)`,
				`redact.rules[2].id: "ticket" is already used by rules[0] (config.json:4)`,
				`redact.rules[2].placeholder: must be [NAME], where NAME is 2 to 19 of A-Z and _ (config.json:4)`,
				`redact.disable[0]: unknown rule "nose" (config.json:1)`,
			},
		},
		{
			name: "relations between settings",
			file: `{
"recall": {"deadline": "2s", "maxBytes": 1048576,
"maxScopeBytes": 2097152},
"persist": {"facts": {"retention": "87600h"}},
"limits": {"teesBytes": 4096, "teeBytes": 8192}}`,
			want: []string{
				`limits.teesBytes: must be at least limits.teeBytes (8192) (config.json:5)`,
				`recall.firstDeadline: must be at least recall.deadline (2s) (config.json:2)`,
				`recall.maxBytes: must be at least recall.maxScopeBytes (2097152) (config.json:2, config.json:3)`,
				`persist.facts.longRetention: must be at least persist.facts.retention (87600h) (config.json:4)`,
			},
		},
		{
			name: "numbers out of range",
			file: `{"limits": {
"headerBytes": 9223372036854775807,
"idleConnections": 65537},
"persist": {"retention": "2562047h", "turnsPerSecond": 1e300, "queueTurns": 99999999999999999999},
"injection": {"ttl": "0s"},
"storage": {"minFreeBytes": 1099511627777}}`,
			env: []string{"REMORA_RECALL_GATE", "NaN"},
			want: []string{
				`limits.headerBytes: must be a number of bytes between 4 KiB and 16 MiB (config.json:2)`,
				`limits.idleConnections: must be an integer between 1 and 65,536 (config.json:3)`,
				`persist.retention: must be a duration such as "30ms", "1m30s" or "24h" between 1ms and 876000h (config.json:4)`,
				`persist.turnsPerSecond: must be a number between 0 and 1000000000 (config.json:4)`,
				`persist.queueTurns: must be an integer between 1 and 1,048,576 (config.json:4)`,
				`injection.ttl: must be a duration such as "30ms", "1m30s" or "24h" between 1m and 876000h (config.json:5)`,
				`storage.minFreeBytes: must be a number of bytes between 0 and 1 TiB (config.json:6)`,
				`recall.gate: must be a number between 0 and 1 (REMORA_RECALL_GATE)`,
			},
		},
		{
			name: "listen addresses",
			file: `{"listen": "999.1.1.1:99999", "forward": {"listen": "127.0.0.1:70000"}}`,
			want: []string{
				`listen: must be host:port, with an address or a name and a port up to 65535 (config.json:1)`,
				`forward.listen: must be host:port, with an address or a name and a port up to 65535 (config.json:1)`,
			},
		},
		{
			name: "environment",
			file: `{}`,
			env:  []string{"REMORA_LISTEN", "nowhere", "REMORA_UPSTREAMS", "x", "REMORA_LOG_LEVEL", "info", "REMORA_LOG_LEVEL_FILE", "/x", "REMORA_LOG_FORMAT_FILE", "/does/not/exist"},
			want: []string{
				`upstreams: can't be given as text; use the configuration file, or REMORA_UPSTREAM for one upstream of every path (REMORA_UPSTREAMS)`,
				`log.level: both REMORA_LOG_LEVEL and REMORA_LOG_LEVEL_FILE are set (REMORA_LOG_LEVEL_FILE)`,
				`log.format: open /does/not/exist: no such file or directory (REMORA_LOG_FORMAT_FILE)`,
				`listen: must be host:port, with an address or a name and a port up to 65535 (REMORA_LISTEN)`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(Overrides{File: writeFile(t, test.file)}, environment(test.env...), testPlace())
			if err == nil {
				t.Fatal("got no error")
			}
			var got []string
			for _, p := range err.(Problems) {
				got = append(got, strings.ReplaceAll(p.Error(), "stat ", "open "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			for _, line := range test.want {
				if !strings.Contains(strings.ReplaceAll(err.Error(), "stat ", "open "), line) {
					t.Errorf("the message lacks %q", line)
				}
			}
		})
	}
}

// TestProblemsNameSettings checks that what a package finds wrong is reported under a key that can be set.
func TestProblemsNameSettings(t *testing.T) {
	keys := map[string]bool{}
	c := Default()
	for _, s := range c.settings() {
		keys[s.key] = true
		if _, isText := s.at.(scalar[string]); isText {
			_ = s.at.parse("\x00 :")
		} else if s.at.kind() == "list of strings" {
			_ = s.at.parse("\x00 :")
		}
	}
	c.Proxy.Identity.Tenants = map[string]string{"x": ""}
	c.Proxy.Upstreams[0].URL, c.Proxy.Clients = "ftp://x", []identity.Client{{}}
	c.Forward.Token, c.storageKey = "short", "short"
	r := &report{}
	c.validate(r)
	if len(r.problems) < 15 {
		t.Errorf("got %d problems of a configuration where nearly everything is wrong: %v", len(r.problems), r.problems)
	}
	for _, p := range r.problems {
		key, _, _ := strings.Cut(p.key, "[")
		if !keys[key] {
			t.Errorf("a problem is reported under %q, which is not a setting: %s", p.key, p.what)
		}
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := Load(Overrides{}, environment(), testPlace()); err != nil {
		t.Errorf("the default file may be missing: got %v", err)
	}
	_, err := Load(Overrides{File: "/does/not/exist.json"}, environment(), testPlace())
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "config.example.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(example), `{}`, `{"upstreams":[{"name":"a","url":"http://h","paths":["/"]}]}`,
		`{"listen":"127.0.0.1:1","listen":2}`, `{"recall":{"gate":1e-3,"scopes":[]}}`, `[[[[`, "\ufeff{}", `{"identity":{"tenants":{"a":"b"}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Overrides{File: name}, environment(), testPlace())
		if err != nil || c.storageKey != "" || c.Forward.Token != "" {
			return
		}
		// What it shows is a configuration that means the same.
		again, err := Load(Overrides{File: writeFile(t, shown(t, c))}, environment(), testPlace())
		if err != nil {
			t.Fatalf("what was shown does not load: %v\n%s", err, shown(t, c))
		}
		if diff := cmp.Diff(shown(t, c), shown(t, again)); diff != "" {
			t.Errorf("loading what was shown changed it:\n%s", diff)
		}
	})
}
