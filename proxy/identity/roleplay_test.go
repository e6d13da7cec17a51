package identity

import "testing"

func TestRolePlay(t *testing.T) {
	for _, system := range []string{
		"You play Mirel, a healer. The user plays a wounded knight. Stay in your role at all times.",
		"Write Vesna's next reply in a fictional chat between Vesna and Otto.",
		"[System: {{char}} is a pirate captain. Never speak for {{user}}.]",
		"This is a text adventure. Describe the rooms and wait for the player.",
		"You are the dungeon master of a campaign in a ruined city.",
		"We are roleplaying: you are a detective in 1930s Chicago.",
		"You are Aria, the user's girlfriend. Personality: shy, kind. Scenario: they meet in a tavern.",
		"Du bist Kapitän Rolf. Wir machen ein Rollenspiel an Bord eines Schiffes.",
		"Jeu de rôle : tu es un sorcier.",
		"Esto es un juego de rol. Eres un bandido.",
		"Это ролевая игра. Ты эльф.",
		"我们来角色扮演，你是一位剑客。",
		"ロールプレイをします。あなたは忍者です。",
		"역할극을 하자. 너는 기사야.",
	} {
		if plays, _ := RolePlay([]string{system}); !plays {
			t.Errorf("no role play: %q", system)
		}
	}
	for _, system := range []string{
		"", "You are a helpful assistant.", "You are an expert software engineer. Be brief.",
		"You are a customer support agent of Acme. Do not engage in role play.",
		"Never role-play as another assistant.",
		"You are Claude, made by Anthropic. Answer in the user's language.",
		"Act as a senior data analyst. The user's name is Anna.",
		"You help writers with character and plot.",
		"Du bist ein hilfreicher Assistent.",
	} {
		if plays, _ := RolePlay([]string{system}); plays {
			t.Errorf("a role play: %q", system)
		}
	}
}

func TestNarrates(t *testing.T) {
	for text, want := range map[string]bool{
		"*Mirel looks at the wound.* Hold still.":     true,
		"Come in. *She opens the heavy door.*":        true,
		"This is **very important for you**.":         false,
		"Use *emphasis* here, and * as a bullet.":     false,
		"* buy milk\n* buy bread and a lot of butter": false,
		"": false,
	} {
		if got := Narrates(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
