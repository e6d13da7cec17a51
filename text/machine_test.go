package text

import "testing"

func TestMachineText(t *testing.T) {
	for text, want := range map[string]bool{
		"[ERROR] The last call failed.":               true,
		"[list_files for 'src'] Result:\na.go":        true,
		"[TOOL_OUTPUT]\nI live in Rome.":              true,
		"Done. (This is an automated message.)":       true,
		"[my notes](notes.md) say that I like tea.":   false,
		"[draft] I like tea.":                         false,
		"I live in Rome and I like tea.":              false,
		"[A] or [B]? I would take the first of them.": false,
		"[URGENT] I'm allergic to nuts.":              false,
		"[IMPORTANT]\nAlways answer in German.":       false,
		"[WARNING] I am allergic to nuts.":            false,
		"I hate auto-generated docs, I prefer prose.": false,
		"Docs should be written (not auto-generated)": false,
		"(I hate auto-generated docs.)":               false,
		"(This message was generated.) Go on.":        true,
		"# Rules\n\n(A program wrote this message.)":  true,
	} {
		if got := MachineTagged(text); got != want {
			t.Errorf("%q: tagged %t", text, got)
		}
	}
	for line, want := range map[string]bool{
		"Observation: I live in Rome.": true, "Stop hook feedback:": true, "Tool result (read_file): text": true, "Result 2:\ntext": true, "## Output:": true,
		"Result 2: text": false, "Response: {\"a\": 1}": true, "Thought: I look.\nAction: search\nAction Input: x": true, "Feedback: always answer in German": false,
		"My feedback: shorter answers": false, "My feedback:\nshorter answers": false, "Feedback:\nI like short answers": false, "Thought: I should eat less salt.": false,
		"Action: call me Sam": false, "My results: I am fine.": false, "Mein Ergebnis:\ngut": false, "I have results: two.": false, "Note: I like tea.": false, "The result of my test is here: I am fine": false, "No label": false,
	} {
		if got := MachineLabel(line); got != want {
			t.Errorf("%q: label %t", line, got)
		}
	}
	for reply, want := range map[string]bool{
		"Thought: I look.\nAction: search\nAction Input: x":                  true,
		"<list_files>\n<path>src</path>\n</list_files>":                      true,
		"I call it.\n<tool_call>{\"name\": \"x\"}</tool_call>":               true,
		"Thought: compute.\nCode:\n```py\nprint(1)\n```<end_code>":           true,
		"<attempt_completion>\n<result>done</result>\n</attempt_completion>": false,
		"Use <b>bold</b>":                   false,
		"Action: drink more water":          false,
		"The action: is to leave.":          false,
		"Final Answer: it was born in Rome": false,
	} {
		if got := CallsInText(reply); got != want {
			t.Errorf("%q: calls %t", reply, got)
		}
	}
	for message, want := range map[string]bool{
		"Observation: 42": true, "[read_file for 'a'] Result:\nI live in Rome.": true, "<tool_response>x</tool_response>": true,
		"Observation: I was born in Bergen and I live in Oslo.": true, "Output: I want it in German.": false, "Feedback: always answer in German": false,
		"[URGENT] I'm allergic to nuts.": false, "Thought: I like tea.": false,
		"No, stop, do it in another way.":                                    false,
		"[ask_followup_question for 'x'] Result:\n<answer>\nRome\n</answer>": false,
	} {
		if got := IsCallResult(message); got != want {
			t.Errorf("%q: result %t", message, got)
		}
	}
}

func TestAfterPreamble(t *testing.T) {
	for message, want := range map[string]string{
		"# Context of the editor\n\n## Open files\n- a.go\n\n## My request for Kit:\nhi there": "hi there",
		"# Files\n\n## User message\nI like tea.":                                              "I like tea.",
		"# State\nx\n# The user's question:\nWhat is it?":                                      "What is it?",
		"# About me\nI'm vegetarian.\n## My question\nWhat should I cook?":                     "# About me\nI'm vegetarian.\n## My question\nWhat should I cook?",
		"# Context\nI'm vegetarian.\n## My question\nWhat to cook?":                            "# Context\nI'm vegetarian.\n## My question\nWhat to cook?",
		"# Recipe\nRice and beans\n## My question\nHow long?":                                  "# Recipe\nRice and beans\n## My question\nHow long?",
		"# Open files\n- a.md\n## About me\nI'm vegan.\n## My request:\nCook.":                 "# Open files\n- a.md\n## About me\nI'm vegan.\n## My request:\nCook.",
		"# Context\n## Active selection of the file:\nI'm vegan.\n## My request:\nTranslate":   "Translate",
		"# Context\n```\n# I count\n## My request:\n```\n## My request for Kit:\nTranslate":    "Translate",
		"# My plan\n\nI like tea.":                                                             "# My plan\n\nI like tea.",
		"# Guide\n\n## Request format\nJSON":                                                   "# Guide\n\n## Request format\nJSON",
		"I like tea.\n## My request:\nx":                                                       "I like tea.\n## My request:\nx",
		"# A\n## My request:\n":                                                                "# A\n## My request:\n",
	} {
		if got := AfterPreamble(message); got != want {
			t.Errorf("%q: got %q", message, got)
		}
	}
}

func TestNamesText(t *testing.T) {
	for message, want := range map[string]bool{
		"What did the email from Sam say?": true, "Which text did you translate for me?": true, "Was stand in der Nachricht?": true, "那封邮件说了什么？": true,
		"Where do I live?": false, "Suggest a dinner for me": false, "Wo wohne ich?": false, "我住在哪里？": false, "": false,
	} {
		if got := NamesText(message); got != want {
			t.Errorf("%q: %t", message, got)
		}
	}
}
