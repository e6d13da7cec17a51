package redact_test

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/redact"
)

const (
	aKey  = "m4Xw9Rk2Tz7Lp0Qs8Vb5Nc3Hd6Jf1Gy"
	aHash = "b6589fc6ab0dc82cf12099d1c2d40ab994e8410c"
)

// toldSecrets have the secret between ‹ and ›.
var toldSecrets = []string{
	// the value after the word
	"the password of our NAS is ‹Teapot42x›", "our wifi password is still ‹Teapot42x›", "Password for the printer upstairs: ‹Teapot42x›",
	"das Passwort vom Drucker lautet seit Montag ‹Ofen42rohr›", "Das Kennwort ist jetzt ‹Ofen42rohr›.", "die Passwörter sind ‹Ofen42rohr› und ‹Blech17topf›",
	"das neue Passwort heißt «‹Sonnenhut›»", "ich habe das Passwort auf ‹Ofen42rohr› geändert",
	"le mot de passe du NAS est encore ‹Chaise42bleu›", "j'ai changé mon mot de passe en ‹Chaise42bleu›", "Mot de passe (wifi) : ‹Chaise42bleu›",
	"mi contraseña de la nube ahora es ‹Silla42azul›", "la clave del wifi es ‹Silla42azul›", "cambié la contraseña a ‹Silla42azul›",
	"la password del nas adesso è ‹Sedia42blu›", "la password della posta rimane ‹Sedia42blu›", "a minha senha do email continua sendo ‹Cadeira42azul›",
	"Het wachtwoord voor de printer is nog steeds ‹Stoel42blauw›", "mitt lösenord till jobbet är ‹Stol42bla›", "adgangskoden er nu ‹Stol42bla›",
	"passordet er fortsatt ‹Stol42bla›", "salasanani on nyt ‹Tuoli42sini›", "moje hasło do banku to ‹Krzeslo42nieb›", "hasłem do wifi jest ‹Krzeslo42nieb›",
	"zmieniłem hasło na ‹Krzeslo42nieb›", "moje heslo do banky je teraz ‹Stolicka42mod›", "a jelszavam most ‹Szek42kek99›", "parola contului este ‹Scaun42alb›",
	"banka şifrem ‹Sandalye42mavi›", "şifremi ‹Sandalye42mavi› olarak değiştirdim", "мой пароль теперь ‹Stul42sinij›", "Пароль от банка: ‹Stul42sinij›",
	"я сменил пароль на ‹Stul42sinij›", "мій пароль тепер ‹Stilets42syn›", "ο κωδικός μου για το mail είναι ‹Karekla42ble›",
	"銀行のパスワードは‹Isu42aoi›です", "パスワードは「‹Isu42aoi›」です", "我的银行密码是‹Yizi42lan›", "密码：‹Yizi42lan›", "은행 비밀번호는 ‹Uija42pa›입니다",
	"비밀번호를 ‹Uija42pa›로 변경했습니다", "बैंक का पासवर्ड ‹Kursi42neel› है", "كلمة المرور الجديدة هي ‹Kursi42azraq›", "הסיסמה לבנק היא ‹Kise42kahol›",
	"รหัสผ่านธนาคารคือ ‹Kaoi42fah›", "mật khẩu ngân hàng là ‹Ghe42xanh›", "kata sandi bank saya ‹Kursi42biru›", "la contrasenya del wifi és ‹Cadira42blau›",
	// before it
	"‹Teapot42x› is the password for the printer", "use ‹Teapot42x› as your password", "‹Teapot42x›, that's the wifi password",
	"‹Ofen42rohr› ist mein neues Passwort", "nimm ‹Ofen42rohr› als Passwort", "‹Chaise42bleu› est le mot de passe", "mets ‹Chaise42bleu› comme mot de passe",
	"‹Silla42azul› es mi contraseña", "‹Sedia42blu› è la password del nas", "‹Cadeira42azul› é a minha senha", "‹Stoel42blauw› is het wachtwoord",
	"‹Krzeslo42nieb› to moje hasło", "‹Stul42sinij› — пароль от банка", "‹Isu42aoi›がパスワードです", "‹Yizi42lan›是密码", "‹Uija42pa›가 비밀번호예요",
	// PINs and codes
	"the PIN of my debit card is ‹5821›", "‹5821› is the PIN of my card", "die PIN für mein Handy ist jetzt ‹5821›", "Der Code für die Haustür lautet ‹5821›",
	"the alarm code is now ‹5821›#", "code for the garage door is ‹5821›", "le code du portail est ‹58A21›", "el código de la puerta es ‹5821›",
	"o código do alarme é ‹5821›", "il PIN della carta è ‹5821›", "kod do sejfu to ‹5821›", "код от сейфа: ‹5821›", "暗証番号は‹5821›", "현관문 비밀번호는 ‹5821›",
	"मेरे कार्ड का पिन ‹5821› है", "the gate code has changed to ‹5821›",
	// keys
	"the foobar key is ‹" + aKey + "›", "my keys: ‹" + aKey + "› and ‹bar_" + aKey + "›", "key: ‹" + aKey + "›", "token ‹" + aKey + "›",
	"‹" + aKey + "› is the token for foobar", "der Schlüssel für foobar ist ‹" + aKey + "›", "la clé de foobar est ‹" + aKey + "›",
	"la clave de foobar es ‹" + aKey + "›", "ключ foobar: ‹" + aKey + "›", "foobar的密钥是‹" + aKey + "›", "foobarのキーは‹" + aKey + "›です",
	"BAZ_KEY=‹" + aKey + "›", "key=‹" + aKey + "›", "take ‹Teapot42!› as the password", "我用‹Yizi42lan›作为密码", "the alarm code has been ‹5821›",
	"if (\"‹Teapot42x›\" == password) {", "if (db_password !== '‹Teapot42x›') {", "char password[20] = \"‹Teapot42x›\";", "var password = @\"‹Teapot42x›\";",
	"api_key = '‹qz(t)]pw${e]mzk[fblq>-_$#vro}}›'", "DB_PASS=‹qz(t)]pw${e]mzk[fblq>-_$#vro}}›",
	// stems with their endings, in settings
	"пароль: ‹SuperSecret!x›", "jelszó=‹Kutya!Macska›", "{\"пароль\": \"‹hunter2x›\"}", "\"пароль\": \"‹qwertyasdf›\"", "\"סיסמה\": \"‹qwertyasdf›\"",
	"\"jelszó\": \"‹qwertyasdf›\"", "парола: ‹SuperSecret!x›", "паролем: ‹SuperSecret!x›", "Пароль = '‹qwertyasdf›'",
	// passphrases of words that are also in names
	"password = \"‹secret-garden-walrus-lamp›\"", "password = \"‹secret-garden›\"", "password: \"‹walrus_key_lamp›\"", "password = \"‹my-new-secret-key›\"",
	"password = \"‹fakeersdummyland›\"", "api_key = \"‹dfakeQ9x2Lm4Zt7Rw1›\"",
	"foobar_key = \"‹" + aKey + "›\"", "the key for the foobar account that we opened is ‹" + aKey + "›", "foobar-key: ‹" + aKey + "›",
}

// tellsNothing are sentences with the same words, and values that are none.
var tellsNothing = []string{
	"password = \"insert-token-here\"", "password = \"real_key\"", "password = \"my-secret-password\"", "password = \"fake-walrus\"", "password = \"dummyValue\"",
	"пароль: неверный", "{\"пароль\": null}", "парольная фраза: walrus", "jelszó: hibás",
	"my password is wrong", "the password is required on Windows11", "password strength: 3 of 5", "the password policy is NIST80063B",
	"I keep the password in KeePass2", "the password for Windows11 is gone", "can you reset the password on web01?", "Web01 is asking for the password",
	"Windows11 is where I need the password", "reset the password before 2026-01-02", "the password is 16 characters long", "the password expires in 90days",
	"the password was set by admin2 on 12.5.2024", "a password for each of the 12users", "does Passwort1 count as a password?", "password rules v2.1 apply",
	"mein Passwort ist zu kurz", "das Passwort für Windows11 fehlt", "das Passwort ist seit 2024 abgelaufen", "der Passwortgenerator ist in Version7 kaputt",
	"mon mot de passe est trop long", "le mot de passe de Windows11 est perdu", "mi contraseña es muy corta", "la contraseña de Windows11 no funciona",
	"la mia password è scaduta ieri", "a senha do Windows11 sumiu", "mijn wachtwoord is verlopen", "mitt lösenord är för kort", "hasło jest za krótkie",
	"hasło do Windows11 nie działa", "пароль слишком короткий", "пароль от Windows11 не подходит", "パスワードは12文字です", "Windows11のパスワードが違います",
	"密码是8到12位", "我忘了密码", "비밀번호는 12자 이상입니다", "पासवर्ड बहुत छोटा है", "كلمة المرور قصيرة جدا", "הסיסמה קצרה מדי", "รหัสผ่านสั้นเกินไป",
	"the pin is 12 mm long", "GPIO pin 1024", "the pin header has 2040 pads", "error code is 5012", "the code is 5012 lines long", "der Fehlercode lautet 5012",
	"the door is 2040 wide, code review at 1500", "the code of conduct is from 2019", "el código postal es 28013", "код ошибки 5012", "郵便番号は1000001",
	"the door closes at 1830, says the code", "the key is under the mat", "the key to it is patience", "cache key is " + aKey, "the public key is " + aKey,
	"primary key: " + aKey, "partitionKey = \"" + aKey + "\"", "the key commit is " + aHash, "key=value", "the key file is id_ed25519_2024_backup.pem",
	"press the key F12 twice", "token limit is 128000", "the token HelloWorld2 is parsed", "the secret is 42", "the key is 7b1c9d8e-3a2f-4e5d-9c6b-0f1a2b3c4d5e",
	"locked out user ann42x: wrong password", "Passwort vergessen, Gerät ist Router7590", `{"kind": "password", "minimum4you": 12}`,
	"password: \"real_key\"", "token = 'insert-token-here'", "password_hint = \"Teapot42x\"", "tokenizer=qz42k_base1", "password = \"${DB_PASS}\"",
	"if (password != oldPassword2) {", "secret = get(\"a1\")[b2]{c}", "der Schlüssel passt nicht", "la clé est dans le tiroir 12b", "ключ подходит к замку 12", "密钥长度是256位", "the monkey: Bonobo77x was cute",
	"the turkey is 12pounds", "the key is proxyFactoryBean2Impl, a class", "the key is /etc/ssl/private/key2024a.pem",
}

// TestToldSecrets has secrets that a sentence tells, in either order and with
// words between.
func TestToldSecrets(t *testing.T) {
	r, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, marked := range toldSecrets {
		text := strings.NewReplacer("‹", "", "›", "").Replace(marked)
		out, _ := r.Redact(text)
		for part := range strings.SplitSeq(marked, "‹") {
			if secret, _, ok := strings.Cut(part, "›"); ok && strings.Contains(out, secret) {
				t.Errorf("%q: left over", out)
			}
		}
		if again, found := r.Redact(out); again != out || len(found) > 0 {
			t.Errorf("%q became %q", out, again)
		}
	}
	for _, text := range tellsNothing {
		if out, found := r.Redact(text); len(found) > 0 {
			t.Errorf("%q became %q", text, out)
		}
	}
}
