// Command economy estimates what a provider's prompt cache would make of
// recorded conversations, given as two directories of request bodies: what the
// client sent, and what reached the upstream through Remora.
//
//	go run ./cmd/remora-check/economy NAME CLIENT UPSTREAM
//
// It simulates the cache: the longest run of leading parts (tools, system
// prompt, messages or their blocks) of a request that an earlier request began
// with counts as cached. If the API has cache markers, only runs count whose
// end an earlier request had marked, at most 20 blocks before a marker of this
// one. Parts that Remora inserted count on neither side, so the shares of
// cached bytes are comparable. With Remora the share must not be smaller. Two
// placements that Remora does not use are shown for comparison: the block at
// the end of the system prompt, rewritten with each turn, and at the tail.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: economy NAME CLIENT UPSTREAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "economy:", err)
		os.Exit(1)
	}
}

func run(name, client, upstream string) error {
	sent, err := requests(client)
	if err != nil {
		return err
	}
	got, err := requests(upstream)
	if err != nil {
		return err
	}
	bare, with := share(sent, none), share(got, none)
	fmt.Printf("%s: cached share %.4f without Remora, %.4f with it; block in the system prompt %.4f, at the tail %.4f\n",
		name, bare, with, share(sent, inSystem), share(sent, atTail))
	if with < bare-1e-9 {
		return fmt.Errorf("%s: the prompt cache loses by Remora", name)
	}
	return nil
}

// part is what a cache tells apart.
type part struct {
	text   string // without cache markers
	system bool
	own    bool // the client's
	mark   bool // a cache marker stands here
}

// request is one body's parts, in the order in which providers hash them.
type request struct {
	parts   []part
	markers bool // the API has cache markers, so nothing is cached without
}

// lookback is how many blocks before a marker a cached prefix may end.
const lookback = 20

// share is the cached share of the clients' own bytes, each request changed
// first.
func share(all []request, change func(request, int) request) float64 {
	written := map[string]bool{}
	cached, total := 0, 0
	for n, r := range all {
		r = change(r, n)
		prefixes := make([]string, len(r.parts))
		var so strings.Builder
		for i, p := range r.parts {
			so.WriteString(p.text)
			so.WriteByte(0)
			prefixes[i] = so.String()
		}
		hit := -1 // index of the last cached part
		for i := range r.parts {
			if !r.markers {
				if written[prefixes[i]] {
					hit = i
				}
				continue
			}
			if r.parts[i].mark {
				for j := i; j >= 0 && j > i-lookback; j-- {
					if written[prefixes[j]] {
						hit = max(hit, j)
						break
					}
				}
			}
		}
		for i, p := range r.parts {
			if p.own {
				total += len(p.text)
				if i <= hit {
					cached += len(p.text)
				}
			}
			if !r.markers || p.mark {
				written[prefixes[i]] = true
			}
		}
	}
	if total == 0 {
		return 0
	}
	return float64(cached) / float64(total)
}

func none(r request, _ int) request { return r }

func block(n int) part { return part{text: fmt.Sprintf("block %d", n), system: true} }

func inSystem(r request, n int) request {
	at := 0
	for i, p := range r.parts {
		if p.system {
			at = i + 1
		}
	}
	r.parts = slices.Insert(slices.Clone(r.parts), at, block(n))
	return r
}

func atTail(r request, n int) request {
	r.parts = append(slices.Clone(r.parts), block(n))
	return r
}

// requests reads the recorder's NNNN.body files, in order; what is no request
// of a known API is left out.
func requests(dir string) ([]request, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.body"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []request
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if r := read(b); len(r.parts) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

func read(body []byte) request {
	var in struct {
		Model        string
		Tools        []json.RawMessage
		System       json.RawMessage // Messages API
		Instructions json.RawMessage // Responses API
		Messages     []json.RawMessage
		Input        json.RawMessage
	}
	if json.Unmarshal(body, &in) != nil {
		return request{}
	}
	var r request
	r.parts = append(r.parts, part{text: in.Model, own: true, system: true})
	add := func(system bool, prefix string, raws ...json.RawMessage) {
		for _, raw := range raws {
			bare, mark := unmarked(raw)
			r.parts = append(r.parts, part{
				text: prefix + string(bare), system: system, mark: mark, own: !bytes.Contains(raw, []byte("<remora-memory-")),
			})
			r.markers = r.markers || mark
		}
	}
	add(true, "tool", in.Tools...)
	add(true, "system", list(in.System)...)
	add(true, "instructions", list(in.Instructions)...)
	for _, m := range append(in.Messages, list(in.Input)...) {
		var message struct {
			Role    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(m, &message)
		system := message.Role == "system" || message.Role == "developer"
		if blocks := list(message.Content); len(blocks) > 0 && in.Input == nil {
			add(system, message.Role, blocks...)
		} else {
			add(system, "", m)
		}
	}
	if len(r.parts) == 1 {
		return request{}
	}
	return r
}

// list is a JSON array's elements; any other value but null is one of its own.
func list(raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &items) != nil {
		return []json.RawMessage{raw}
	}
	return items
}

// unmarked takes the cache marker out of an object; all else stays as it is.
// Strings become text blocks, which are the same to the API.
func unmarked(raw json.RawMessage) (bare []byte, mark bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		bare, _ = json.Marshal(map[string]string{"type": "text", "text": s})
		return bare, false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return raw, false
	}
	if _, mark = object["cache_control"]; mark {
		delete(object, "cache_control")
	}
	bare, err := json.Marshal(object) // with its keys in order, so that two spellings of one block are alike
	if err != nil {
		return raw, mark
	}
	return bare, mark
}
