package updates

import (
	"testing"

	"github.com/remora-proxy/remora/text"
)

// changed are statements and later ones that change them. Those of the issue
// are not among them: what counts is that others of their kind are found.
var changed = map[text.Language][][2]string{
	text.English: {
		{"The audit is on March 3rd with Priya.", "Priya's audit got moved to March 10th"},
		{"The rent for the studio is 900 a month", "Our landlord raised the rent for the studio to 975"},
		{"We run Node 18 on the billing service", "upgraded the billing service to Node 22 last night"},
		{"Piano lessons for Emil are Monday and Wednesday at 4", "Emil's piano lessons are Tuesday and Friday now"},
		{"Booked a table for 8 people at Osteria Lina on Saturday", "we're down to 6 people at Osteria Lina"},
		{"The launch of Pelican is planned for June 12", "Pelican launch is postponed to July 1"},
		{"The standup is at 9:30", "Standup moved to 10:15"},
		{"Price per jar: plum 3.20, quince 4.10, fig 3.90", "From today the quince goes up to 4.60 per jar"},
		{"The repo lives at git.old.example/tools", "We moved the repo to git.new.example"},
		{"Our wedding is on 14 May at the barn, 80 guests", "The barn had a fire, the wedding is now on 4 June"},
		{"My flight to Oslo leaves at 7:45", "my flight to Oslo has been delayed, it leaves at 9:20 now"},
		{"The deadline for the grant is Tuesday", "They extended the grant deadline to Friday"},
		// names
		{"Coffee beans come from Almeida Roasters", "From next month the coffee beans come from Brightside Roasters instead"},
		{"We use Terraform for the infrastructure", "we migrated from Terraform to Pulumi last week"},
		{"Tests run with Mocha", "We now use Vitest instead of Mocha"},
		{"I work at Siemens as an electrician", "I left Siemens and started at Bosch"},
		{"I work for Deloitte in London", "I'm at KPMG now"},
		{"Our accountant is Ms Okafor", "Ms Okafor retired, our accountant is now Mr Lindqvist"},
		{"Tea is my favourite drink", "My favourite drink is cocoa now"},
		// retractions
		{"I go to the gym every morning before work", "I quit the gym"},
		{"I drive a Skoda Octavia", "We sold the Skoda"},
		{"I take magnesium every evening", "I no longer take magnesium"},
		{"I drink two espressos a day", "I gave up espressos"},
		{"We're flying to Lisbon in May", "We're not flying to Lisbon after all, we stay home"},
		// states
		{"I'm vegan", "I eat meat again since the summer"},
		{"I'm single", "I got engaged to Nora last night"},
		{"I'm married", "We got divorced in spring"},
		{"I live in Bristol", "I moved to Cardiff last month"},
		{"I'm 41 years old", "I turned 42 yesterday"},
		{"My name is Ines Duarte", "Please call me by my new name, my name is Ines Falk"},
		{"My brother lives in Graz", "My brother moved to Linz"},
		{"I'm single", "I got married to Tom on Saturday"},
		{"I'm single", "I married Tom"},
		{"We leave ten days for customs because the folding rack goes on sale on 12 September 2027", "The folding rack goes on sale on 19 September 2027, the date has moved"},
		{"My savings goal is 5000 euros", "My savings goal is now 6000 euros"},
		{"I go to the gym every morning", "I cancelled my gym membership"},
		{"Tom plays the cello on Mondays", "Tom now plays the cello on Thursdays"},
		{"I drive a Volvo", "I replaced my Volvo with a Tesla"},
		{"I ride a Brompton", "The Brompton was sold yesterday"},
		{"I'm married to Anna", "I'm single again"},
		{"I'm vegetarian", "I eat meat again"},
		{"I eat meat", "I'm a vegetarian now"},
		{"I live in Leeds", "We have moved to York"},
	},
	text.German: {
		{"Die Probe ist am 12. November um 18 Uhr in der Aula", "Die Probe wurde auf den 19. November verschoben"},
		{"Der Kurs kostet 120 Euro", "Der Kurs kostet jetzt 135 Euro"},
		{"Wir fahren im Sommer nach Korsika", "Wir fahren doch nicht nach Korsika, sondern bleiben daheim"},
		{"Ich arbeite bei Bosch in Stuttgart", "Ich habe bei Bosch gekündigt und bin jetzt bei Trumpf"},
		{"Ich wohne in Kassel", "Ich bin nach Erfurt umgezogen"},
		{"Ich bin Vegetarierin", "Ich esse wieder Fleisch"},
		{"Das Lager liegt in Halle, Tor 4", "Das Lager ist nach Jena umgezogen"},
		{"Ich bin ledig", "Ich habe im Juni geheiratet"},
		{"Ich bin verheiratet", "Wir sind jetzt geschieden"},
		{"Wir trinken nur Hafermilch", "Hafermilch trinken wir nicht mehr"},
	},
	text.French: {
		{"Mon vol pour Dakar est le 3 mars", "Mon vol pour Dakar est reporté au 9 mars"},
		{"Le loyer du garage est de 80 euros", "Le loyer du garage passe à 95 euros"},
		{"Je travaille chez Renault", "J'ai quitté Renault pour Airbus"},
		{"J'habite à Nantes", "J'ai déménagé à Rennes"},
		{"Je bois du café le matin", "Je ne bois plus de café"},
		{"Notre fournisseur de pain est Moulin Vert", "Désormais le pain vient de chez Lambert"},
	},
	text.Spanish: {
		{"La reunión con Lucía es el 4 de mayo", "Han aplazado la reunión con Lucía al 11 de mayo"},
		{"El alquiler del local son 700 euros", "Nos han subido el alquiler del local a 760 euros"},
		{"Trabajo en Telefónica", "He dejado Telefónica, ahora estoy en Orange"},
		{"Vivo en Granada", "Me he mudado a Málaga"},
		{"Soy vegetariana", "Vuelvo a comer carne"},
		{"El taller de Bruno es los lunes", "El taller de Bruno pasa a los jueves, lo han cambiado"},
	},
	text.Italian: {
		{"La visita dal dentista è il 5 giugno", "La visita dal dentista è stata spostata al 12 giugno"},
		{"Abito a Pavia", "Mi sono trasferito a Lodi"},
		{"Lavoro in Fiat", "Ho lasciato la Fiat, adesso lavoro in Ferrari"},
	},
	text.Portuguese: {
		{"O ensaio da banda é na quinta às 20", "Mudaram o ensaio da banda para terça"},
		{"A mensalidade da academia é 90 reais", "A mensalidade da academia aumentou, agora é 110 reais"},
		{"Moro em Recife", "Não moro mais em Recife, mudei para Natal"},
	},
	text.Dutch: {
		{"De vergadering met Sanne is op 3 april", "De vergadering met Sanne is verplaatst naar 10 april"},
		{"Ik woon in Breda", "Ik ben verhuisd naar Tilburg"},
	},
	text.Russian: {
		{"Экзамен по физике 5 июня", "Экзамен по физике перенесли на 12 июня"},
		{"Я живу в Твери", "Я переехал в Казань"},
		{"Я работаю в Сбере", "Я ушла из Сбера, теперь работаю в Озоне"},
		{"Аренда склада стоит 40 тысяч", "Аренду склада подняли, теперь 45 тысяч"},
	},
	text.Unknown: {
		// Chinese, Japanese, Korean
		{"家长会定在5月8日", "家长会推迟到5月15日了"},
		{"我住在广州", "我上周搬到深圳了"},
		{"我在腾讯上班", "我离开腾讯了，现在在字节上班"},
		{"我吃素", "我又开始吃肉了"},
		{"会議は6月3日です", "会議は6月10日に変更になりました"},
		{"名古屋に住んでいます", "先月、仙台に引っ越しました"},
		{"納品は月曜日です", "納品は木曜日に変わりました"},
		{"워크숍은 5월 2일입니다", "워크숍이 5월 9일로 연기됐어요"},
		{"저는 대구에 살아요", "저는 지난달에 부산으로 이사했어요"},
	},
	text.Arabic: {
		{"موعد الندوة يوم 3 مايو", "تم تأجيل الندوة إلى 17 مايو"},
		{"أسكن في طنطا", "انتقلت إلى أسوان الشهر الماضي"},
		{"परीक्षा 5 मार्च को है", "परीक्षा अब 12 मार्च को है"},
		{"मैं पुणे में रहता हूँ", "मैं अब नागपुर में रहता हूँ"},
		{"Sınav 5 Mayıs'ta", "Sınav 12 Mayıs'a ertelendi"},
	},
}

// unchanged are statements and later ones that leave them as they are.
var unchanged = [][2]string{
	// other persons
	{"My sister lives in Graz", "I moved to Linz"},
	{"I work at Siemens", "My brother left Siemens"},
	{"Piano lessons for Emil are Monday and Wednesday", "Mara's piano lessons moved to Friday"},
	{"Wesley has judo on Tuesday", "Nora now has judo on Friday"},
	{"I'm vegetarian", "My husband eats meat again"},
	{"My brother is single", "I got married in June"},
	{"Ich wohne in Kassel", "Meine Schwester ist nach Erfurt umgezogen"},
	{"Vivo en Granada", "Mi hija se ha mudado a Málaga"},
	{"Я живу в Твери", "Мой брат переехал в Казань"},
	{"我住在广州", "我姐姐搬到深圳了"},
	// other things and occasions
	{"The dentist appointment is on May 4", "The vet appointment moved to May 9"},
	{"The rent for the studio is 900 a month", "Parking now costs 60 a month"},
	{"We run Node 18 on the billing service", "We upgraded Postgres to 16 in the search service"},
	{"Der Elternabend ist am 3. März", "Die Probe wurde auf den 10. März verlegt"},
	{"La reunión con Lucía es el 4 de mayo", "Han aplazado la cena con Pablo al 11 de mayo"},
	{"家长会定在5月8日", "运动会推迟到5月15日了"},
	// additions
	{"I play the violin", "I also play cello now"},
	{"Ich spreche Dänisch", "Ich lerne jetzt auch Polnisch"},
	{"Our shop sells rye bread for 4.80", "We now sell spelt bread as well, for 5.20"},
	// history
	{"I live in Leeds", "When I moved to Oslo in 2011 I had no furniture"},
	{"I work at Siemens", "I used to work at Bosch before"},
	{"J'habite à Nantes", "Autrefois j'habitais à Brest"},
	// not meant, asked, or denied
	{"I live in Leeds", "If I moved to Berlin, what would it cost?"},
	{"The launch of Pelican is June 12", "Should we move the Pelican launch to July 1?"},
	{"The launch of Pelican is June 12", "The Pelican launch has not moved"},
	{"I work at Siemens", "I might leave Siemens for Bosch"},
	{"Ich wohne in Kassel", "Vielleicht ziehe ich nach Erfurt um"},
	// the later one says nothing of a change
	{"My flight to Oslo has been delayed, it leaves at 9:20 now", "My flight to Oslo leaves at 7:45"},
	{"We sold the Skoda", "The Skoda is blue"},
	{"Der Kurs kostet jetzt 135 Euro", "Der Kurs kostet 120 Euro"},
	{"家长会推迟到5月15日了", "家长会在学校大厅"},
	// no person's but by name
	{"My kids are Nora (9) and Emil (6)", "Judo got moved, Nora now has it Monday at 4"},
	{"El hijo de Rocío cumple 5 años el 30 de noviembre", "Rocío ha dejado Iberdrola, ahora está en Repsol"},
	// for some time, together, in the end
	{"I have had a cough for three weeks", "I have been living in Leeds for three months now"},
	{"We baked a cake for the school", "It was great to get away from the school"},
	{"We play tennis on Sundays", "I can't give up tennis"},
	// another place has ended
	{"I live in Leeds", "I don't live in Oslo anymore"},
	{"Ich wohne in Kassel", "Ich wohne nicht mehr in Erfurt"},
	{"Vivo en Granada", "Ya no vivo en Cádiz"},
	// said again, or nothing new
	{"The launch of Pelican is June 12", "Pelican launch now officially announced for June 12"},
	{"I live in Leeds", "I left my keys at home in Leeds"},
	{"We use Postgres 16", "We use Redis 7 for the cache"},
	{"I ran 5 km on Monday", "I ran 8 km on Wednesday"},
	{"I bought 3 chairs on Friday", "I bought 2 lamps on Saturday"},
	// a word of a class that says nothing of the speaker
	{"I'm married to Anna", "I prefer single quotes in TypeScript"},
	{"I prefer single quotes in TypeScript", "I'm married to Anna"},
	{"I'm married to Anna", "We separated frontend and backend"},
	{"I'm married to Anna", "I booked a single room"},
	{"I'm married to Anna", "I separated the eggs"},
	{"I'm married to Anna", "We're single threaded now"},
	{"I'm single", "I bought a gift for Tom"},
	{"I'm single", "I need a new phone case"},
	{"I'm single", "In my case it was the driver"},
	{"I'm single", "I'm engaged in a dispute with my bank"},
	{"I'm single", "I met Marie at the station"},
	{"Ich bin ledig", "Ich bin Marie"},
	{"Ich bin verheiratet", "Wir haben Frontend und Backend getrennt"},
	{"Je suis célibataire", "Je suis Marie"},
	{"I'm vegan", "My cat eats raw meat"},
	{"I'm vegan", "My guests eat meat"},
	{"I eat meat", "I cooked a vegan curry for my guests"},
	{"I eat meat", "I got a vegan curry"},
	{"Soy vegetariana", "Mi gato come carne"},
	{"我吃素", "我的猫吃肉"},
	{"I work at Google", "Our CI now works on Windows"},
	{"I work at Google", "I now work on Linux"},
	{"I live in Munich", "I moved my savings to Revolut"},
	{"I live in Munich", "Our office moved to Berlin"},
	{"I live in Munich", "I moved Postgres to Hetzner"},
	{"Our office is based in Munich", "I moved to Berlin"},
	{"Ich wohne in Kassel", "Unser Büro ist nach Erfurt umgezogen"},
	{"我住在北京", "我们公司搬到上海了"},
	{"I work at Siemens", "I'm in Paris now"},
	{"I work at Siemens", "I'm at Starbucks now"},
	// a part of it, or what belongs to it, has ended
	{"I drive a Volvo", "I replaced the battery of my Volvo"},
	{"I love skiing", "I broke my arm skiing"},
	{"I ride my bike to work", "I sold my bike helmet"},
	{"I live in Leeds", "I stopped in Leeds for coffee"},
	{"My company makes tiles", "My company fired Tom"},
	// another person does it
	{"Tom plays the cello on Mondays", "I now play the cello on Thursdays"},
	{"I play the cello on Mondays", "Tom now plays the cello on Thursdays"},
	// what is, and what should be
	{"My savings goal is 5000 euros", "My savings are now 3200 euros"},
	{"My weight is 82 kg", "My target weight is now 75 kg"},
	{"Mein Sparziel: das Ziel für das Konto sind 5000 Euro", "Auf dem Konto sind jetzt 3200 Euro"},
	{"I'm 34 years old", "My dog is 4 years old"},
	{"I'm 34 years old", "My car turned 10 today"},
	{"My name is Ines Duarte", "Our API is called Gateway now"},
	{"I'm married to Anna", "I was single then"},
	{"I live in Munich", "I moved in with Anna"},
	{"I'm 34 years old", "I turned 40 pages yesterday"},
}

func TestUpdates(t *testing.T) {
	a := text.NewAnalyzer(1 << 10)
	var o, n Statement
	check := func(p [2]string, usual text.Language, want bool) {
		t.Helper()
		o.Read(a, p[0], usual)
		n.Read(a, p[1], usual)
		if got := n.Updates(&o, nil); got != want {
			t.Errorf("%q, then %q: got %v, want %v", p[0], p[1], got, want)
		}
	}
	for usual, pairs := range changed {
		for _, p := range pairs {
			check(p, usual, true)
		}
	}
	check([2]string{"我住在广州", "我上周搬到深圳了"}, text.English, true) // whatever is usual
	for _, p := range unchanged {
		check(p, text.English, false)
	}
}
