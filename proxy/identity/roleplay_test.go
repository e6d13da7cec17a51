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
		"You play Kira, a guard, in a story that you and the user, who plays Sam, make up together. Never leave your role.",
		"You are Kira, a vampire in a medieval kingdom. Never break character.",
		"Du spielst Greta, eine Figur in einem Abenteuer.",
		"Ты играешь капитана. Оставайся в роли.",
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
		"You are a personal data assistant. Plot figures with matplotlib, compare scenarios and keep titles to max 500 characters.",
		"Du hilfst in deiner Rolle als Kundenberater bei Fragen zu Figuren, Szenarien und Einstellungen.",
		"Du bist Buchhalter in deiner Rolle als persönlicher Assistent. Figuren und Abbildungen beschriftest du.",
		"You are a music companion. The user plays tracks; say what the user is playing. Setting: quiet. Personality: calm.",
		"You help game developers. The player character is a prefab, the game master scene loads it, and the plot is in plot.json.",
		"Write your next reply in a formal tone. Escape every line break character. Never use more than 200 characters.",
		"Files are UTF-8: a tab in character 4 breaks the parser. Describe each scenario of the test plan in Gherkin.",
		"You are Max, Acme's support persona. Personality: friendly. Setting: a web shop. Stay in character limits of 300.",
		"Stay in your role as an assistant for tax questions. Refuse everything else.",
		"You recommend gifts for a girlfriend, a boyfriend or a companion. Ask for the budget first.",
		"You recommend fantasy novels and medieval fiction: each novel with its plot, a character and the setting: no spoilers.",
		"Restez dans votre rôle d'assistant comptable. Écrivez au plus 500 caractères.",
		"Eres un asistente personal. Responde en español, con escenarios y figuras claras.",
		"Sei un assistente personale. Rispondi con figure e scenari, in massimo 300 caratteri.",
		"Ты персональный помощник. Строй сценарии продаж, не больше 500 символов.",
		"你是一个个人助理。请扮演好助手，回答简短。",
		"あなたは個人アシスタントです。シナリオを比較してください。",
		"Jesteś osobistym asystentem. Odpowiadaj w postaci listy.",
		"أنت مساعد شخصي. أجب باختصار عن شخصية العميل.",
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
