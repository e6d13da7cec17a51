package imports

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	for in, want := range map[string]string{
		`"2025-01-02T03:04:05Z"`:             "2025-01-02T03:04:05Z",
		`"2025-01-02T03:04:05.123456+02:00"`: "2025-01-02T01:04:05.123456Z",
		`"2025-01-02T03:04:05.5"`:            "2025-01-02T03:04:05.5Z",
		`"2025-01-02 03:04:05.5+00:00"`:      "2025-01-02T03:04:05.5Z",
		`"2025-01-02 03:04:05"`:              "2025-01-02T03:04:05Z",
		`"2025-01-02"`:                       "2025-01-02T00:00:00Z",
		`1714557600.25`:                      "2024-05-01T10:00:00.25Z",
		`1714557600250`:                      "2024-05-01T10:00:00.25Z",
		`"soon"`:                             "",
		`""`:                                 "",
		`null`:                               "",
		`0`:                                  "",
		`-5`:                                 "",
		`1e300`:                              "",
		`1e15`:                               "",
		`{"a":1}`:                            "",
		`true`:                               "",
	} {
		var m moment
		if err := json.Unmarshal([]byte(in), &m); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		got := ""
		if !m.IsZero() {
			got = m.Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestContent(t *testing.T) {
	for in, want := range map[string]struct{ text, reason string }{
		`"a"`:          {"a", ""},
		`""`:           {"", reasonEmpty},
		`null`:         {"", reasonEmpty},
		`7`:            {"", reasonEmpty},
		`[]`:           {"", reasonEmpty},
		`[["a"]]`:      {"", reasonEmpty},
		`{"text":"a"}`: {"a", ""},
		`["a",{"text":"b"},{"text":""},{"type":"text","text":"c"}]`: {"a\nb\nc", ""},
		`[{"type":"text"}]`:             {"", reasonUnknownType},
		`[{"type":"image","text":"a"}]`: {"", reasonUnknownType},
		`[{"type":"server_tool_use"},{"type":"thinking","text":"a"}]`:           {"", reasonTool},
		`[{"type":"redacted_thinking"}]`:                                        {"", reasonThinking},
		`[{"text":"a","thought":true},{"text":"b","thought":false}]`:            {"b", ""},
		`[{"text":"a","functionCall":{}},{"text":"b","functionResponse":null}]`: {"b", ""},
		`[{"type":"text","text":"a","synthetic":true},{"type":"tool"}]`:         {"", reasonSynthetic},
		`[{"type":"text","text":"a","ignored":true}]`:                           {"", reasonSynthetic},
		`[{"type":7,"text":"a"},{"text":8}]`:                                    {"a", ""},
	} {
		var c content
		if err := json.Unmarshal([]byte(in), &c); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if c.text != want.text || c.blank() && c.reason() != want.reason {
			t.Errorf("%s: %q %s, want %q %s", in, c.text, c.reason(), want.text, want.reason)
		}
	}
}

func TestFolderAndStem(t *testing.T) {
	for in, want := range map[string]string{"": "", "/": "", "/w/shop": "shop", "/w/shop/": "shop", `C:\w\shop`: "shop", "shop": "shop"} {
		if got := folder(in); got != want {
			t.Errorf("folder of %q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a.json": "a", "x/a.b.json": "a.b", "a": "a", "x/.json": ".json"} {
		if got := stem(in); got != want {
			t.Errorf("stem of %q: %q, want %q", in, got, want)
		}
	}
}
