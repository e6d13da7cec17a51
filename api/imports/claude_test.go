package imports

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClaude(t *testing.T) {
	runCases(t, "claude", []importCase{
		{
			name: "conversations",
			files: map[string]string{"conversations.json": `[{"uuid":"c1","name":"Tea","created_at":"2025-01-02T03:04:05.123456Z","updated_at":"x","account":{"uuid":"a"},
				"project":{"uuid":"p","name":"Home"},"chat_messages":[
				{"uuid":"m1","sender":"human","text":"Hello","content":[],"created_at":"2025-01-02T03:04:06Z"},
				{"uuid":"m2","sender":"assistant","text":"Hi\n[unsupported block]","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hi"},{"type":"tool_use","name":"x"},{"type":"text","text":"there"}]},
				{"uuid":"m3","sender":"human","text":"","content":[{"type":"tool_result","content":[{"type":"text","text":"no"}]}]},
				{"uuid":"m4","sender":"assistant","content":[{"type":"thinking","thinking":"hm"}]},
				{"uuid":"m5","sender":"human","text":" "},
				{"uuid":"m6","sender":"system","text":"be good"},
				{"uuid":"m7","sender":"human","content":[{"type":"image"}]}
				]},
				{"uuid":"c2","name":"","chat_messages":[]}, "x", {"uuid":"c3"}]`},
			want: `
			conversation c1 title=Tea project=Home
			  m1 user 2025-01-02T03:04:06Z : "Hello"
			  m2 assistant 2025-01-02T03:04:06Z : "Hi\nthere"
			`,
			rejected: "empty 2, notUser 1, thinking 1, tool 1, unknownType 3",
		},
		{
			name: "projects and memories",
			files: map[string]string{
				"e/memories.json": `[{"conversations_memory":"**Work context**\n\nAnn is a baker.\nShe works at night.\n\n# Taste\n- Likes tea\n  with milk\n- Hates coffee\n\n---\n",` +
					`"project_memories":{"p1":"Uses rye.","p9":"","p8":"Unknown project."},"account_uuid":"a"}]`,
				"e/projects.json": `[{"uuid":"p1","name":"Bread","created_at":"2025-01-02T03:04:05Z","description":"d","prompt_template":"t",` +
					`"docs":[{"uuid":"d1","filename":"rye.md","content":"Rye.","created_at":"2025-02-02T03:04:05Z"},{"filename":"empty.md","content":""},{"filename":"b.md","content":"B"}]}]`,
				"e/users.json": `[{"uuid":"a"}]`,
			},
			want: `
			memory d1 resource "Rye." tags= 2025-02-02T03:04:05Z - user= conversation= app= project=Bread {"resource_uri":"claude-project:p1/rye.md"}
			memory  resource "B" tags= 2025-01-02T03:04:05Z - user= conversation= app= project=Bread {"resource_uri":"claude-project:p1/b.md"}
			memory  fact "Ann is a baker. She works at night." tags= - - user= conversation= app= project= null
			memory  fact "Likes tea with milk" tags= - - user= conversation= app= project= null
			memory  fact "Hates coffee" tags= - - user= conversation= app= project= null
			memory  fact "Uses rye." tags= - - user= conversation= app= project=Bread null
			memory  fact "Unknown project." tags= - - user= conversation= app= project=p8 null
			`,
			rejected: "empty 1, heading 2",
		},
		{
			name: "objects instead of arrays, a file for each",
			files: map[string]string{
				"memories/a.json":    `{"conversations_memory":"One","memory_files":[{"path":"/a.md","content":"Two"}],"updated_at":"2025-01-02T03:04:05Z"}`,
				"projects/p.json":    `{"uuid":"p","name":"P","docs":[]}`,
				"conversations.json": `[{"uuid":"c","project":{"uuid":"p"},"created_at":"2025-01-02T03:04:05Z","chat_messages":[{"sender":"human","text":"a"}]}]`,
			},
			want: `
			conversation c title= project=P
			   user 2025-01-02T03:04:05Z : "a"
			memory  fact "One" tags= - 2025-01-02T03:04:05Z user= conversation= app= project= null
			memory  fact "Two" tags= - 2025-01-02T03:04:05Z user= conversation= app= project= null
			`,
		},
	})
}

func TestStatements(t *testing.T) {
	for _, c := range []struct {
		text string
		want []statement
	}{
		{"", nil},
		{"\n \n---\n***\n", nil},
		{"a\nb\n\n\nc", []statement{{"a b", false}, {"c", false}}},
		{"a\r\n\r\nb\r\n", []statement{{"a", false}, {"b", false}}},
		{"- a\n* b\n+ c\n• d\n1. e\n2) f", []statement{{"a", false}, {"b", false}, {"c", false}, {"d", false}, {"e", false}, {"f", false}}},
		{"intro:\n- a\n    - nested\n      more\nlazy\n\nafter", []statement{{"intro:", false}, {"a", false}, {"nested more lazy", false}, {"after", false}}},
		{"# One\na\n###### Six\n####### seven", []statement{{"# One", true}, {"a", false}, {"###### Six", true}, {"####### seven", false}}},
		{"**Bold**\n\n**Bold:**\n\n**Bold** and more\n\n- **Item**", []statement{
			{"**Bold**", true}, {"**Bold:**", true}, {"**Bold** and more", false}, {"**Item**", false}}},
		{"-no item\n1.no item", []statement{{"-no item 1.no item", false}}},
		{"2024. Year", []statement{{"Year", false}}},
	} {
		var got []statement
		for s := range statements(c.text) {
			got = append(got, s)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(statement{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		for range statements(c.text) {
			break // must not go on after that
		}
	}
}
