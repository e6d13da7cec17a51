// verify compares what clients sent with what reached the upstream, as two directories of recorded request bodies.
//
//	go run ./.ci/verify [-enriched N] CLIENT UPSTREAM
//
// Every upstream body, with the inserted elements taken out of it, must be a body that a client sent, byte for byte, and
// the other way round. Bodies without an inserted element must be the client's as they stand. -enriched asks for at
// least N bodies with insertions; -1 for none at all.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// element is what Remora inserts into a Chat Completions body: one user message that holds one block and nothing else.
var element = regexp.MustCompile(`\{"role":"user","content":"<remora-memory-([0-9a-f]+)>(?:[^"\\]|\\.)*</remora-memory-([0-9a-f]+)>\\n"\},`)

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
	with, elements := 0, 0
	for name, b := range got {
		n := len(element.FindAllIndex(b, -1))
		users := bytes.Count(b, []byte(`"role":"user"`)) - n
		if n > users {
			return fmt.Errorf("%s: %d elements were inserted for %d user messages", name, n, users)
		}
		bare := b
		if n > 0 {
			with++
			elements += n
			bare = element.ReplaceAll(b, nil)
		}
		h := sha256.Sum256(bare)
		if left[h] == 0 {
			return fmt.Errorf("%s: without its %d inserted elements it is no body that a client sent", name, n)
		}
		left[h]--
	}
	if len(got) != len(sent) {
		return fmt.Errorf("clients sent %d bodies, the upstream got %d", len(sent), len(got))
	}
	fmt.Printf("%d bodies, %d enriched by %d elements, all other bytes identical\n", len(got), with, elements)
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
