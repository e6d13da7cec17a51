package imports

import (
	"fmt"
	"strings"
	"testing"
)

// gptNode is a node of ChatGPT's tree. message is what is in it, or empty.
func gptNode(id, parent, message string) string {
	if message == "" {
		message = "null"
	}
	return fmt.Sprintf(`%q:{"id":%q,"parent":%q,"children":[],"message":%s}`, id, id, parent, message)
}

// gptText is a message of text; more is put into it.
func gptText(id, role, text, more string) string {
	return fmt.Sprintf(`{"id":%q,"author":{"role":%q,"name":null,"metadata":{}},"content":{"content_type":"text","parts":[%q]}%s}`, id, role, text, more)
}

// gptContext is a message with the saved memories.
func gptContext(typ, text string) string {
	return fmt.Sprintf(`{"author":{"role":"assistant"},"recipient":"bio","metadata":{"is_visually_hidden_from_conversation":true},`+
		`"content":{"content_type":%q,"model_set_context":%q,"repository":null}}`, typ, text)
}

func gptConversation(current string, nodes ...string) string {
	return fmt.Sprintf(`{"id":"i","conversation_id":"c","title":"T","create_time":1714557600.25,"current_node":%q,"mapping":{%s}}`,
		current, strings.Join(nodes, ","))
}

func TestChatGPT(t *testing.T) {
	root := gptNode("root", "", "")
	runCases(t, "chatgpt", []importCase{
		{
			name: "the branch that was seen last",
			files: map[string]string{"conversations.json": "[" + gptConversation("a2", root,
				gptNode("q", "root", gptText("m1", "user", "Hello?", `,"create_time":1714557601.5,"weight":1.0,"recipient":"all"`)),
				gptNode("a1", "q", gptText("m2", "assistant", "First try", ``)),
				gptNode("a2", "q", gptText("m3", "assistant", "Hi.", `,"create_time":null,"metadata":{"model_slug":"gpt-4o"}`)),
			) + "]"},
			want: `
			conversation c title=T project=
			  m1 user 2024-05-01T10:00:01.5Z : "Hello?"
			  m3 assistant 2024-05-01T10:00:01.5Z gpt-4o: "Hi."
			`,
		},
		{
			name: "several files, time of the conversation, id of the conversation",
			files: map[string]string{
				"e/conversations-000.json": `[{"id":"1","title":null,"create_time":1714557600,"current_node":"q","mapping":{` + gptNode("q", "", gptText("m", "user", "a", "")) + `}}]`,
				"e/conversations-001.json": "[" + gptConversation("q", gptNode("q", "", gptText("m", "user", "b", ""))) + "]",
				"e/user.json":              `{"email":"x"}`,
				"e/chat.html":              `<html>`,
			},
			want: `
			conversation 1 title= project=
			  m user 2024-05-01T10:00:00Z : "a"
			conversation c title=T project=
			  m user 2024-05-01T10:00:00.25Z : "b"
			`,
		},
		{
			name: "what is left out",
			files: map[string]string{"conversations.json": "[" + gptConversation("n12",
				gptNode("n0", "", gptText("", "system", "be good", "")),
				gptNode("n1", "n0", gptText("", "user", "hidden", `,"metadata":{"is_visually_hidden_from_conversation":true}`)),
				gptNode("n2", "n1", gptText("", "user", "weightless", `,"weight":0`)),
				gptNode("n3", "n2", gptText("", "assistant", "search()", `,"recipient":"browser"`)),
				gptNode("n4", "n3", gptText("", "tool", "result", "")),
				gptNode("n5", "n4", `{"author":{"role":"assistant"},"content":{"content_type":"code","text":"x"}}`),
				gptNode("n6", "n5", `{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[]}}`),
				gptNode("n7", "n6", gptText("", "user", " \n", "")),
				gptNode("n8", "n7", `{"author":{"role":"user"},"content":{"content_type":"user_editable_context","user_profile":"p"}}`),
				gptNode("n9", "n8", `{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer","text":"no"},"See","",7,"this"]}}`),
				gptNode("n10", "n9", `{"author":{"role":"user"},"content":{"content_type":"multimodal_text","parts":[{}]}}`),
				gptNode("n11", "n10", `{}`),
				gptNode("n12", "n11", gptText("last", "assistant", "Yes", `,"weight":null,"recipient":null`)),
			) + `,{"id":"2","is_do_not_remember":true,"current_node":"q","mapping":{` + gptNode("q", "", gptContext("model_editable_context", "1. [2024-05-01]. Secret")) + `}}` +
				`,{"id":"3","mapping":{}},{"id":"4"},5]`},
			want: `
			conversation c title=T project=
			   user 2024-05-01T10:00:00.25Z : "See\nthis"
			  last assistant 2024-05-01T10:00:00.25Z : "Yes"
			`,
			rejected: "doNotRemember 1, empty 3, hidden 2, notUser 2, recipient 1, tool 1, unknownType 4, weight0 1",
		},
		{
			name: "circles",
			files: map[string]string{"conversations.json": "[" +
				gptConversation("b", gptNode("a", "b", gptText("a", "user", "a", "")), gptNode("b", "a", gptText("b", "assistant", "b", ""))) + "," +
				gptConversation("a", gptNode("a", "a", gptText("a", "user", "alone", ""))) + "]"},
			want: `
			conversation c title=T project=
			  a user 2024-05-01T10:00:00.25Z : "a"
			  b assistant 2024-05-01T10:00:00.25Z : "b"
			conversation c title=T project=
			  a user 2024-05-01T10:00:00.25Z : "alone"
			`,
		},
		{
			name: "no current node: the newest leaf",
			files: map[string]string{"conversations.json": "[" + gptConversation("lost",
				gptNode("q", "", gptText("q", "user", "q", `,"create_time":99`)),
				gptNode("a1", "q", gptText("a1", "assistant", "new", `,"create_time":20`)),
				gptNode("a2", "q", gptText("a2", "assistant", "old", `,"create_time":10`)),
			) + "]"},
			want: `
			conversation c title=T project=
			  q user 1970-01-01T00:01:39Z : "q"
			  a1 assistant 1970-01-01T00:00:20Z : "new"
			`,
		},
		{
			name: "saved memories, once each",
			files: map[string]string{"conversations.json": "[" +
				gptConversation("q",
					gptNode("c", "", gptContext("model_editable_context", "# Model Set Context\n\n1. [2024-05-01]. Likes tea\r\n2. [2024-06-02] Has a cat\n\nundated\n3. undated too\n")),
					gptNode("q", "c", gptText("m", "user", "a", ""))) + "," +
				gptConversation("c", gptNode("c", "", gptContext("user_editable_context", "1. [2024-05-01]. Likes tea\n12) [2024-07-03]: Runs\n- [2024-08-04] - Sings\n[2024-09-05]. Paints\n3. [2024-13-77]. Odd date"))) + "]"},
			want: `
			memory  fact "Likes tea" tags= 2024-05-01T00:00:00Z - user= conversation= app= project= null
			memory  fact "Has a cat" tags= 2024-06-02T00:00:00Z - user= conversation= app= project= null
			conversation c title=T project=
			  m user 2024-05-01T10:00:00.25Z : "a"
			memory  fact "Runs" tags= 2024-07-03T00:00:00Z - user= conversation= app= project= null
			memory  fact "Sings" tags= 2024-08-04T00:00:00Z - user= conversation= app= project= null
			memory  fact "Paints" tags= 2024-09-05T00:00:00Z - user= conversation= app= project= null
			memory  fact "Odd date" tags= - - user= conversation= app= project= null
			`,
			rejected: "empty 1",
		},
		{
			name: "one conversation that is no array, members of other types",
			files: map[string]string{"conversations.json": `{"id":7,"title":["x"],"create_time":"soon","current_node":"q","mapping":{"q":{"parent":null,"children":"x",` +
				`"message":{"id":1,"author":{"role":"user"},"weight":"heavy","metadata":null,"create_time":1e300,"content":{"content_type":"text","parts":["a"]}}},"r":3}}`},
			want: `
			conversation  title= project=
			   user - : "a"
			`,
		},
	})
}
