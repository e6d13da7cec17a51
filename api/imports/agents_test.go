package imports

import "testing"

func TestClaudeCode(t *testing.T) {
	runCases(t, "claude-code", []importCase{
		{
			name: "a transcript",
			files: map[string]string{
				"projects/-w-shop/s1.jsonl": `{"type":"summary","summary":"old","leafUuid":"x"}
{"type":"user","isSidechain":false,"sessionId":"s1","cwd":"/w/shop","uuid":"u1","timestamp":"2025-06-01T10:00:00.000Z","message":{"role":"user","content":"Fix it"}}
{"type":"assistant","sessionId":"s1","cwd":"/w/shop","uuid":"a1","timestamp":"2025-06-01T10:00:01.000Z","message":{"role":"assistant","model":"opus","content":[{"type":"thinking","thinking":"hm"}]}}
{"type":"assistant","sessionId":"s1","uuid":"a2","timestamp":"2025-06-01T10:00:02.000Z","message":{"role":"assistant","model":"opus","content":[{"type":"text","text":"I look."}]}}
{"type":"assistant","sessionId":"s1","uuid":"a3","timestamp":"2025-06-01T10:00:03.000Z","message":{"role":"assistant","model":"opus","content":[{"type":"tool_use","name":"Read","input":{}}]}}
{"type":"user","sessionId":"s1","uuid":"u2","timestamp":"2025-06-01T10:00:04.000Z","message":{"role":"user","content":[{"type":"tool_result","content":"file"}]},"toolUseResult":{"x":1}}
{"type":"assistant","sessionId":"s1","uuid":"a4","message":{"role":"assistant","model":"opus","content":[{"type":"text","text":"Done."}]}}
{"type":"user","sessionId":"s1","uuid":"u3","timestamp":"2025-06-01T10:00:06.000Z","isMeta":true,"message":{"role":"user","content":"Caveat"}}
{"type":"user","sessionId":"s1","uuid":"u4","timestamp":"2025-06-01T10:00:07.000Z","message":{"role":"user","content":[{"type":"text","text":"Thanks"},{"type":"image"}]}}
{"type":"user","sessionId":"s1","uuid":"u5","message":{"role":"user","content":"and"}}
{"type":"user","sessionId":"s1","isCompactSummary":true,"message":{"role":"user","content":"Summary"}}
{"type":"user","sessionId":"s1","isSidechain":true,"message":{"role":"user","content":"Sub"}}
{"type":"assistant","sessionId":"s1","uuid":"a5","message":{"role":"assistant","content":"Welcome"}}
{"type":"assistant","sessionId":"s1","isApiErrorMessage":true,"message":{"role":"assistant","content":[{"type":"text","text":"API Error"}]}}
{"type":"user","sessionId":"s1","message":{"role":"user","content":""}}
{"type":"user","sessionId":"s1","message":null}
[1]
`,
				"projects/-w-shop/agent-1.jsonl": `{"type":"user","isSidechain":true,"sessionId":"s1","message":{"role":"user","content":"Sub"}}`,
			},
			want: `
			conversation s1 title= project=shop
			  u1 user 2025-06-01T10:00:00Z : "Fix it"
			  a4 assistant 2025-06-01T10:00:02Z opus: "Done."
			  u4 user 2025-06-01T10:00:07Z : "Thanks"
			  u5 user 2025-06-01T10:00:07Z : "and"
			  a5 assistant 2025-06-01T10:00:07Z : "Welcome"
			`,
			rejected: "empty 2, error 1, hidden 1, notUser 1, sidechain 2, superseded 1, thinking 1, tool 2, unknownType 2",
		},
		{
			name: "two sessions in a file, a folder of Windows, no session",
			files: map[string]string{
				"a.jsonl": `{"type":"user","sessionId":"s1","cwd":"C:\\w\\shop\\","message":{"content":"a"}}
{"type":"user","sessionId":"s2","message":{"content":"b"}}`,
				"b.jsonl": `{"type":"user","uuid":"1","message":{"content":"c"}}`,
			},
			want: `
			conversation s1 title= project=shop
			   user - : "a"
			conversation s2 title= project=
			   user - : "b"
			conversation b title= project=
			  1 user - : "c"
			`,
		},
	})
}

func TestCodex(t *testing.T) {
	runCases(t, "codex", []importCase{
		{
			name: "a rollout",
			files: map[string]string{
				"sessions/2025/06/01/rollout-2025-06-01T10-00-00-abc.jsonl": `{"timestamp":"2025-06-01T10:00:00.000Z","type":"session_meta","payload":{"id":"abc","cwd":"/w/shop","source":"cli"}}
{"timestamp":"2025-06-01T10:00:00.000Z","type":"session_meta","payload":{"id":"parent","cwd":"/w/other"}}
{"timestamp":"2025-06-01T10:00:01.000Z","type":"turn_context","payload":{"cwd":"/w/shop","model":"gpt-5"}}
{"timestamp":"2025-06-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"no"}]}}
{"timestamp":"2025-06-01T10:00:02.000Z","type":"event_msg","payload":{"type":"user_message","message":"Fix it","images":[]}}
{"timestamp":"2025-06-01T10:00:03.000Z","type":"event_msg","payload":{"type":"agent_message","message":"I look."}}
{"timestamp":"2025-06-01T10:00:04.000Z","type":"event_msg","payload":{"type":"token_count","info":null}}
{"timestamp":"2025-06-01T10:00:05.000Z","type":"event_msg","payload":{"type":"agent_message","message":"Done."}}
{"type":"event_msg","payload":{"type":"user_message","message":"Thanks"}}
{"type":"event_msg","payload":{"type":"user_message","message":" "}}
{"type":"compacted","payload":{"message":"no"}}
7
`,
				"sessions/history.jsonl": "nonsense",
			},
			want: `
			conversation abc title= project=shop
			   user 2025-06-01T10:00:02Z : "Fix it"
			   assistant 2025-06-01T10:00:05Z gpt-5: "Done."
			   user 2025-06-01T10:00:05Z : "Thanks"
			`,
			rejected: "empty 1, superseded 1, unknownType 1",
		},
		{
			name: "sessions of subagents",
			files: map[string]string{
				"rollout-1.jsonl": `{"type":"session_meta","payload":{"id":"1","source":{"subagent":"review"}}}
{"type":"event_msg","payload":{"type":"user_message","message":"a"}}`,
				"rollout-2.jsonl": `{"type":"session_meta","payload":{"id":"2","thread_source":"subagent"}}
{"type":"event_msg","payload":{"type":"agent_message","message":"a"}}`,
				"rollout-3.jsonl": `{"type":"event_msg","payload":{"type":"user_message","message":"mine"}}`,
			},
			want: `
			conversation rollout-3 title= project=
			   user - : "mine"
			`,
			rejected: "sidechain 2",
		},
		{name: "a rollout without messages", files: map[string]string{"rollout-1.jsonl": `{"type":"session_meta","payload":{"id":"1"}}`}, rejected: "empty 1"},
	})
}

func TestGemini(t *testing.T) {
	runCases(t, "gemini-cli", []importCase{
		{
			name: "a session",
			files: map[string]string{
				"tmp/h/chats/session-1.json": `{"sessionId":"s1","projectHash":"h","startTime":"2025-06-01T10:00:00.000Z","directories":["/w/shop"],"messages":[
				{"id":"1","type":"user","content":"Hello"},
				{"id":"2","timestamp":"2025-06-01T10:00:02.000Z","type":"gemini","content":[{"text":"thought","thought":true},{"text":"Hi"}],"model":"pro","toolCalls":[]},
				{"id":"3","type":"info","content":"Saved"},
				{"id":"4","type":"user","content":[{"text":"Read @a.txt"},{"text":"long file"}],"displayContent":[{"text":"Read @a.txt"}]},
				{"id":"5","type":"gemini","content":""},
				{"id":"6","type":"user","content":[{"functionResponse":{"name":"x"}}]},
				{"id":"7","type":"user","content":"<session_context>\nToday"},
				{"id":"8"}, 9]}`,
				"tmp/h/logs.json": "nonsense",
			},
			want: `
			conversation s1 title= project=shop
			  1 user 2025-06-01T10:00:00Z : "Hello"
			  2 assistant 2025-06-01T10:00:02Z pro: "Hi"
			  4 user 2025-06-01T10:00:02Z : "Read @a.txt"
			`,
			rejected: "empty 1, hidden 1, notUser 1, tool 1, unknownType 2",
		},
		{
			name: "checkpoints",
			files: map[string]string{
				"checkpoint-a.json": `[{"role":"user","parts":[{"text":"This is the Gemini CLI. We are setting up the context for our chat."}]},
				{"role":"user","parts":[{"text":"Hello"}]},
				{"role":"model","parts":[{"functionCall":{"name":"x"}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"x"}}]},
				{"role":"model","parts":[{"text":"Hi"},{"text":"there"}]}]`,
				"checkpoint-b.json": `{"authType":"x","history":[{"role":"user","parts":[{"text":"Again"}]}]}`,
			},
			want: `
			conversation checkpoint-a title= project=
			   user - : "Hello"
			   assistant - : "Hi\nthere"
			conversation checkpoint-b title= project=
			   user - : "Again"
			`,
			rejected: "hidden 1, tool 2",
		},
		{
			name: "a log: what is written again, steps back, context that is no message",
			files: map[string]string{
				"chats/session-1.jsonl": `{"sessionId":"s1","projectHash":"h","startTime":"2025-06-01T10:00:00.000Z","kind":"main"}
{"id":"1","type":"user","content":[{"text":"One"}],"timestamp":"2025-06-01T10:00:01.000Z"}
{"id":"2","type":"gemini","content":"..."}
{"id":"2","type":"gemini","content":"First answer","model":"pro"}
{"id":"3","type":"user","content":"Two"}
{"id":"4","type":"gemini","content":"Second answer"}
{"$rewindTo":"3"}
{"$rewindTo":"unknown"}
{"$set":{"messages":[{"id":"x","type":"user","content":"<state_snapshot>"}],"directories":["/w/shop"]}}
{"id":"3","type":"user","content":"Three"}
{"unknown":1}
"x"
`,
				"chats/session-1.json":    `{"sessionId":"s1","messages":[{"id":"1","type":"user","content":"One"}]}`,
				"chats/p/session-2.jsonl": `{"sessionId":"s2","kind":"subagent"}` + "\n" + `{"id":"1","type":"user","content":"Sub"}`,
				"chats/session-3.jsonl":   `{"sessionId":"s3","messages":[{"id":"1","type":"user","content":"Whole"}]}`,
			},
			want: `
			conversation s1 title= project=shop
			  1 user 2025-06-01T10:00:01Z : "One"
			  2 assistant 2025-06-01T10:00:01Z pro: "First answer"
			  3 user 2025-06-01T10:00:01Z : "Three"
			conversation s3 title= project=
			  1 user - : "Whole"
			`,
			rejected: "empty 1, sidechain 1, unknownType 1",
		},
	})
}

func TestOpenCode(t *testing.T) {
	runCases(t, "opencode", []importCase{
		{
			name: "sessions",
			files: map[string]string{
				"a.json": `{"info":{"id":"ses_1","title":"Tea","directory":"/w/shop","time":{"created":1717236000000,"updated":1}},"messages":[
				{"info":{"id":"m1","role":"user","time":{}},"parts":[{"type":"text","text":"Hello"},{"type":"text","text":"file","synthetic":true},{"type":"file"}]},
				{"info":{"id":"m2","role":"assistant","time":{"created":1717236001500},"modelID":"opus"},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"Hi"},{"type":"tool"}]},
				{"info":{"id":"m3","role":"assistant"},"parts":[{"type":"tool","state":{"output":"x"}}]},
				{"info":{"id":"m4","role":"user"},"parts":[{"type":"text","text":"x","synthetic":true}]},
				{"info":{"id":"m5","role":"user"},"parts":[]},
				{"info":{"id":"m6","role":"other"},"parts":[{"type":"text","text":"x"}]},
				{"info":{"id":"m7","role":"assistant"},"parts":[{"type":"reasoning","text":"x"}]},
				8],"todos":[{"x":[]}]}`,
				"b.json": `{"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"a"}]}],"info":{"id":"ses_2"}}` +
					`{"info":{"id":"ses_3","parentID":"ses_2"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"sub"}]}]}` +
					`{"info":{"id":"ses_4"},"messages":[]} [{"x":1}] {"other":1}`,
			},
			want: `
			conversation ses_1 title=Tea project=shop
			  m1 user 2024-06-01T10:00:00Z : "Hello"
			  m2 assistant 2024-06-01T10:00:01.5Z opus: "Hi"
			conversation ses_2 title= project=
			  m user - : "a"
			`,
			rejected: "empty 2, notUser 1, sidechain 1, synthetic 1, thinking 1, tool 1, unknownType 3",
		},
	})
}
