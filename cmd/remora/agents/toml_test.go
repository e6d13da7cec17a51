package agents

import (
	"testing"
)

func TestCodexURL(t *testing.T) {
	const want, line = "http://127.0.0.1:8787/v1", `openai_base_url = "http://127.0.0.1:8787/v1"`
	for name, test := range map[string]struct {
		text string
		none bool
	}{
		"alone":                  {text: line},
		"among others":           {text: "model = \"gpt\" # a model\r\n" + line + " # mine\r\n[projects.\"/home/ann\"]\ntrust_level = \"trusted\"\n"},
		"a literal":              {text: "'openai_base_url'='http://127.0.0.1:8787/v1'"},
		"behind an array":        {text: "notify = [ # [x]\n  \"a]\",\n  ['b'],\n]\n" + line},
		"behind several lines":   {text: "instructions = \"\"\"\n[table]\n\"quoted\" \\\"\"\"\n\"\"\"\n" + line},
		"a comment":              {text: "# " + line, none: true},
		"in the last table":      {text: "[projects.\"/home/ann\"]\ntrust_level = \"trusted\"\n" + line, none: true},
		"in an array of tables":  {text: "[[x]]\n" + line, none: true},
		"in a string":            {text: "instructions = '''\n" + line + "\n'''", none: true},
		"in an array":            {text: "x = [\n'''" + line + "''',\n]", none: true},
		"nothing":                {none: true},
		"broken":                 {text: "openai_base_url = \"http://127", none: true},
		"only a key":             {text: "openai_base_url", none: true},
		"of another provider":    {text: "model_provider = \"azure\"\n" + line, none: true},
		"another provider":       {text: "model_provider = \"local\"\n[model_providers.local] # mine\nname = \"local\"\nbase_url = \"" + want + "\""},
		"with dotted keys":       {text: "model_provider = \"local\"\nmodel_providers . \"local\" . base_url = \"" + want + "\""},
		"one that is not chosen": {text: "[model_providers.local]\nbase_url = \"" + want + "\"", none: true},
		"the provider by name":   {text: "model_provider = \"openai\"\n" + line},
	} {
		if got := codexURL(test.text); (got == want) == test.none || test.none && got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("a = [\"]\"]\n[b.'c']\nd = '''\n''' # e")
	f.Fuzz(func(_ *testing.T, text string) { tomlStrings(text) })
}
