// Command verify compares what clients sent with what reached the upstream,
// given as two directories of recorded request bodies.
//
//	go run ./cmd/remora-check/verify [-enriched N] CLIENT UPSTREAM
//
// Every upstream body, without the inserted elements, must be byte for byte a
// body that a client sent, and vice versa. Bodies without inserted elements
// must be the client's, unchanged. -enriched requires at least N bodies with
// insertions; -1 requires none.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// block is one recalled block as the inside of a JSON string.
const block = `<remora-memory-[0-9a-f]+>(?:[^"\\]|\\.)*</remora-memory-[0-9a-f]+>\\n`

// elements are what Remora inserts, each holding one block and nothing else: a
// user message in Chat Completions, an input item in Responses, a text block in
// Messages, a part for Gemini.
var elements = regexp.MustCompile(`\{"role":"user","content":"` + block + `"\},` +
	`|\{"type":"message","role":"user","content":\[\{"type":"input_text","text":"` + block + `"\}\]\},` +
	`|\{"type":"text","text":"` + block + `"\},` +
	`|\{"text":"` + block + `"\},`)

// A string that must hold two things becomes an array of both.
var (
	wrappedText  = regexp.MustCompile(`"content":\[\{"type":"text","text":"` + block + `"\},\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]`)
	wrappedInput = regexp.MustCompile(`"input":\[\{"type":"message","role":"user","content":\[\{"type":"input_text","text":"` + block +
		`"\}\]\},\{"type":"message","role":"user","content":\[\{"type":"input_text","text":("(?:[^"\\]|\\.)*")\}\]\}\]`)
)

// bare is what the client may have sent where got reached the upstream: with
// its own arrays, or with strings.
func bare(got []byte) [][]byte {
	strings := wrappedText.ReplaceAll(got, []byte(`"content":$1`))
	strings = wrappedInput.ReplaceAll(strings, []byte(`"input":$1`))
	return [][]byte{elements.ReplaceAll(got, nil), elements.ReplaceAll(strings, nil)}
}

func main() {
	enriched := flag.Int("enriched", 0, "bodies with insertions that there must be; -1 = there must be none")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := verify(flag.Arg(0), flag.Arg(1), *enriched); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func verify(client, upstream string, want int) error {
	sent, err := bodies(client)
	if err != nil {
		return err
	}
	got, err := bodies(upstream)
	if err != nil {
		return err
	}
	left := map[[32]byte]int{}
	for _, b := range sent {
		left[sha256.Sum256(b)]++
	}
	with, all := 0, 0
	for _, name := range slices.Sorted(maps.Keys(got)) {
		b := got[name]
		n := len(elements.FindAllIndex(b, -1))
		candidates := [][]byte{b}
		if n > 0 {
			with++
			all += n
			candidates = bare(b)
		}
		found := false
		for _, c := range candidates {
			if h := sha256.Sum256(c); !found && left[h] > 0 {
				left[h]--
				found = true
				if users := bytes.Count(c, []byte(`"role":"user"`)) + bytes.Count(c, []byte(`"input":"`)); n > users {
					return fmt.Errorf("%s: %d elements were inserted for %d user messages", name, n, users)
				}
			}
		}
		if !found {
			return fmt.Errorf("%s: without its %d inserted elements it is no body that a client sent", name, n)
		}
	}
	if len(got) != len(sent) {
		return fmt.Errorf("clients sent %d bodies, the upstream got %d", len(sent), len(got))
	}
	fmt.Printf("%d bodies, %d enriched by %d elements, all other bytes identical\n", len(got), with, all)
	if want < 0 && with > 0 || with < want {
		return fmt.Errorf("%d enriched bodies, want %d", with, want)
	}
	return nil
}

// bodies reads the recorder's NNNN.body files.
func bodies(dir string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.body"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[f], err = os.ReadFile(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}
