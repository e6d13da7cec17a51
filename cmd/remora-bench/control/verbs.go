package control

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/load"
	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// verb is a kind of call.
type verb struct {
	name string
	aim  time.Duration // of the 99th percentile; 0 = none
	pace time.Duration // at least, between two calls; 0 = as fast as they are answered
	make func(rnd *rand.Rand) request
}

// Aims of the 99th percentile.
const (
	readAim   = 2 * time.Millisecond
	searchAim = 5 * time.Millisecond
	eventAim  = 10 * time.Millisecond
)

const (
	warmUsers     = 16  // who are searched
	questionsEach = 200 // of each of them
	questionBytes = 120
	editedEach    = 5 // memories of each of them that have a history
	editsEach     = 3
	entriesEach   = 20
	entryTTL      = 3600
	eventsEach    = 40     // of a user in a second; 100 are taken
	commonWord    = "team" // in one text of five
)

// questions are what each of the first users is asked about, and what stands in
// their texts.
type questions [][]question

type question struct {
	text string
	rare string // one of its words that few texts have
}

func (c corpus) questions() questions {
	out := make(questions, c.warm())
	g := prose.New(corpusSeed)
	for user := range out {
		for _, told := range c.told(user, questionsEach) {
			text := g.Question(told, questionBytes)
			words := strings.Fields(strings.Trim(text, "?"))
			out[user] = append(out[user], question{text, words[len(words)-1]})
		}
	}
	return out
}

func (q questions) pick(rnd *rand.Rand) (user int, picked question) {
	user = rnd.IntN(len(q))
	return user, q[user][rnd.IntN(len(q[user]))]
}

// get returns the request that reads a path of a user.
func get(user int, path, query string) request {
	return request{method: "GET", path: path + "?user=" + load.User(user) + query, want: 200}
}

func post(user int, path string, body map[string]any, want int) request {
	text, err := json.Marshal(body)
	if err != nil { // it holds strings and numbers
		panic(err)
	}
	return request{method: "POST", path: path + "?user=" + load.User(user), body: string(text), want: want}
}

// searching and listing are what the control plane is loaded with.
func (c corpus) searching(q questions) func(*rand.Rand) request {
	return func(rnd *rand.Rand) request {
		user, asked := q.pick(rnd)
		return searchFor(user, asked)
	}
}

func searchFor(user int, q question) request {
	return post(user, "/v1/memories/search", map[string]any{"query": q.text}, 200)
}

func (c corpus) listing(query string) func(*rand.Rand) request {
	return func(rnd *rand.Rand) request { return get(rnd.IntN(c.users), "/v1/memories", "&limit=50"+query) }
}

// edited returns the index of a memory with a history.
func (c corpus) edited(k int) int { return k % editedEach * perBlock }

// verbs returns what is measured, in this order: what writes comes last.
func (c corpus) verbs(q questions) []verb {
	anywhere := func(rnd *rand.Rand) (user int, id string) {
		user = rnd.IntN(c.users)
		return user, c.id(user, rnd.IntN(c.memories))
	}
	return []verb{
		{name: "nothing (/livez)", make: func(*rand.Rand) request { return request{method: "GET", path: "/livez", want: 200} }},
		{name: "get a memory", aim: readAim, make: func(rnd *rand.Rand) request {
			user, id := anywhere(rnd)
			return get(user, "/v1/memories/"+id, "")
		}},
		{name: "get a memory, user not named", make: func(rnd *rand.Rand) request {
			_, id := anywhere(rnd)
			return request{method: "GET", path: "/v1/memories/" + id, want: 200}
		}},
		{name: "list, 50", aim: readAim, make: c.listing("")},
		{name: "list, 50 of a kind", aim: readAim, make: c.listing("&kind=fact")},
		{name: "list, 50 with a common word", aim: readAim, make: c.listing("&q=" + commonWord)},
		{name: "list, 50 with a rare word", aim: readAim, make: func(rnd *rand.Rand) request {
			user, asked := q.pick(rnd)
			return get(user, "/v1/memories", "&limit=50&q="+url.QueryEscape(asked.rare))
		}},
		{name: "history of a memory", aim: readAim, make: func(rnd *rand.Rand) request {
			user := rnd.IntN(len(q))
			return get(user, "/v1/memories/"+c.id(user, c.edited(rnd.IntN(editedEach)))+"/history", "")
		}},
		{name: "search, index warm", aim: searchAim, make: c.searching(q)},
		{name: "recall, a dry run", make: func(rnd *rand.Rand) request {
			user, asked := q.pick(rnd)
			return post(user, "/v1/recall", map[string]any{"message": asked.text}, 200)
		}},
		{name: "exchanges, 50", make: func(rnd *rand.Rand) request { return get(rnd.IntN(c.users), "/v1/exchanges", "&limit=50") }},
		{name: "entries, put", make: func(rnd *rand.Rand) request { return c.entry(rnd, "PUT") }},
		{name: "entries, get", aim: readAim, make: func(rnd *rand.Rand) request { return c.entry(rnd, "GET") }},
		{name: "events, a message", aim: eventAim, pace: time.Second / time.Duration(eventsEach*c.users), make: func(rnd *rand.Rand) request {
			user := rnd.IntN(c.users)
			return post(user, "/v1/events/message", map[string]any{
				"userId": load.User(user), "threadId": fmt.Sprintf("event-%d", rnd.IntN(20)), "msgId": fmt.Sprintf("m%016x", rnd.Uint64()),
				"role": "user", "content": "I told my sister that we moved the table near the window, because the light is better there.",
			}, 202)
		}},
	}
}

func (c corpus) entry(rnd *rand.Rand, method string) request {
	r := get(rnd.IntN(c.warm()), fmt.Sprintf("/v1/entries/key-%02d", rnd.IntN(entriesEach)), "")
	if r.method = method; method == "PUT" {
		r.body = fmt.Sprintf(`{"value": {"note": "the build took %d s", "tags": ["build", "ci"]}, "ttl": %d}`, rnd.IntN(1000), entryTTL)
	}
	return r
}

// warm is how many users are searched, and have edited memories and entries.
func (c corpus) warm() int { return min(c.users, warmUsers) }
