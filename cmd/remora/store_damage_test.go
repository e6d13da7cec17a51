//go:build unix

package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// damageManifest zeroes the manifest's second half.
func damageManifest(t *testing.T, r *rig) {
	t.Helper()
	path := filepath.Join(r.sys.config.Storage.Dir, "data", "MANIFEST")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)/2:])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// status asks once and returns what the answer says of memory.
func (r *rig) status(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, r.url+"/v1/chat/completions",
		strings.NewReader(`{"model":"fake-1","messages":[{"role":"user","content":"says person0: hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remora-User", rigName(0))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.Header.Get("X-Remora-Status")
}

// damages are what befalls a file.
var damages = map[string]func(rng *rand.Rand, path string) error{
	"flip": func(rng *rand.Rand, path string) error {
		return rewrite(path, func(b []byte) []byte { b[rng.IntN(len(b))] ^= 1 << rng.IntN(8); return b })
	},
	"zero": func(rng *rand.Rand, path string) error {
		return rewrite(path, func(b []byte) []byte { at := rng.IntN(len(b)); clear(b[at:min(len(b), at+1+rng.IntN(8192))]); return b })
	},
	"truncate": func(rng *rand.Rand, path string) error {
		return rewrite(path, func(b []byte) []byte { return b[:rng.IntN(len(b))] })
	},
	"delete": func(_ *rand.Rand, path string) error { return os.Remove(path) },
}

func rewrite(path string, change func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return err
	}
	return os.WriteFile(path, change(b), 0o600)
}

// damageUsers are those who talk, and as many who are away and have most of the
// memories: no index of theirs is made, which costs ten times what storing them
// does.
func damageUsers() (names []string) {
	for user := range rigUsers {
		names = append(names, rigName(user))
	}
	for user := range rigUsers {
		names = append(names, "away"+strconv.Itoa(user))
	}
	return names
}

func damageScope(user string) storage.Scope {
	return storage.Scope{Tenant: "name:demo", App: "default", Project: "default", User: user}
}

// filledStores makes stores with several tables: one that was closed, and one
// whose process was killed, with its logs. Everything in them is known.
func filledStores(t *testing.T) (dirs map[string]string, known map[string]bool) {
	t.Helper()
	dir := rigDir(t)
	r := newRig(t, dir, nil)
	known = map[string]bool{}
	for batch := range 64 {
		var writes []storage.Write
		for user, name := range damageUsers() {
			w := storage.Write{Scope: damageScope(name)}
			n, words := 4, 100
			if user >= rigUsers {
				n, words = 9, 400
			}
			for i := range n {
				text := fmt.Sprintf("says %s: fact %d-%d %s", name, batch, i, strings.Repeat("of many words ", words))
				known[text] = true
				w.Memories = append(w.Memories, storage.Memory{
					ID: fmt.Sprintf("m-%d-%d-%d", user, batch, i), Kind: storage.KindEpisode, Text: text, Trust: 1,
					EventTime:  storage.TimeOf(time.Now()),
					Provenance: storage.Provenance{Role: storage.RoleUser, Turn: fmt.Sprintf("t-%d-%d-%d", user, batch, i)},
				})
			}
			writes = append(writes, w)
		}
		r.await("a write", func() bool { return r.sys.store.Put(t.Context(), writes) == nil })
	}
	time.Sleep(4 * keeperTick) // the inventory is behind by one
	killed := filepath.Join(t.TempDir(), "killed")
	pid := r.signal(syscall.SIGSTOP) // a copy of a store that stands still is what a kill leaves
	if err := copyFiles(killed, dir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.awaitMemory()
	r.stop()
	return map[string]string{"closed": dir, "killed": killed}, known
}

// TestDamages: whatever befalls a file, traffic passes, nothing wrong is
// recalled, and what is missing is told of.
func TestDamages(t *testing.T) {
	t.Parallel()
	dirs, known := filledStores(t)
	var mu sync.Mutex
	outcomes := map[string]int{}
	seed := uint64(time.Now().UnixNano())
	rounds := storeRounds(16, 200)
	t.Cleanup(func() { t.Logf("seed %d, %d damages: %v", seed, rounds, outcomes) })
	for round := range rounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel() // most of the time they wait, for the disk and for one another's end
			outcome := damageOnce(t, rand.New(rand.NewPCG(seed, uint64(round))), round, dirs, known)
			mu.Lock()
			defer mu.Unlock()
			outcomes[outcome]++
		})
	}
}

// damageOnce damages a file of a copy of one of the stores, and judges what
// comes of it.
func damageOnce(t *testing.T, rng *rand.Rand, round int, dirs map[string]string, known map[string]bool) (outcome string) {
	t.Helper()
	state := []string{"closed", "killed"}[round%2]
	kinds := []string{"*.sst", "*.sst", "*.sst", "*.mem", "*.mem", "*.mem", "MANIFEST", "MANIFEST", "*.vlog", "KEYREGISTRY", "DISCARD", "open"}
	how := []string{"flip", "zero", "truncate", "delete"}[round/2%4]
	dir := filepath.Join(t.TempDir(), "remora")
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyFiles(dir, dirs[state]); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, i := range rng.Perm(len(kinds)) {
		if files, _ = filepath.Glob(filepath.Join(dir, "data", "data", kinds[i])); len(files) > 0 {
			break
		}
	}
	slices.Sort(files)
	victim := files[rng.IntN(len(files))]
	what := fmt.Sprintf("%s %s of a %s store", how, filepath.Base(victim), state)
	if err := damages[how](rng, victim); err != nil {
		t.Fatal(err)
	}
	outcome = judgeDamage(t, dir, known, what)
	if name := filepath.Base(victim); outcome != "harmless" && slices.Contains([]string{"KEYREGISTRY", "DISCARD", "open"}, name) {
		t.Errorf("%s: %s", what, outcome)
	}
	if testing.Verbose() {
		t.Logf("%s: %s", what, outcome)
	}
	return outcome
}

// copyFiles leaves sockets out.
func copyFiles(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(name, 0o700)
		}
		if !entry.Type().IsRegular() || entry.Name() == "reserve" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(name, b, 0o600)
	})
}

func judgeDamage(t *testing.T, dir string, known map[string]bool, what string) string {
	t.Helper()
	r := newRig(t, dir, nil)
	defer r.stop()
	stop := r.traffic()
	time.Sleep(100 * time.Millisecond)
	found, damaged := map[string]bool{}, 0
	away, began := false, time.Now()
	for _, user := range damageUsers() {
		for q := (storage.Query{}); ; {
			page, err := r.sys.store.Scan(context.Background(), damageScope(user), q)
			if err != nil { // once more
				time.Sleep(20 * time.Millisecond)
				if away = time.Since(began) > patience; away {
					break
				}
				continue
			}
			damaged += page.Damaged
			for _, m := range page.Memories {
				found[m.Text] = true
				if !known[m.Text] && !strings.Contains(m.Text, "garden project") && m.Provenance.Role == storage.RoleUser {
					t.Errorf("%s: it made up %.100q", what, m.Text)
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	stop()
	missing := 0
	for text := range known {
		if !found[text] {
			missing++
		}
	}
	status := r.sys.store.Status()
	switch {
	case len(status.SetAside) > 0:
		return "set aside"
	case missing == 0 && damaged == 0:
		return "harmless"
	case damaged > 0 || status.Damaged > 0:
		return "counted"
	case away || !status.Open:
		return "unavailable"
	}
	t.Errorf("%s: %d of %d memories are missing and nothing says so: %+v", what, missing, len(known), status)
	return "SILENT"
}
