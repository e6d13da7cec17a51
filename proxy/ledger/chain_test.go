package ledger

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// TestSeedsNeverCollide: different scopes never share a chain or a turn id,
// however their parts are crafted.
func TestSeedsNeverCollide(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	rng := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "b", "\x00", "/", "|", ":", "key:", "name:", "\u200b", " ", "\u00e9", ""}
	word := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	seeds, turns := map[Hash]storage.Scope{}, map[string]storage.Scope{}
	ids := NewTurnIDs(secret)
	for range 20000 {
		scope := storage.Scope{Tenant: word(), App: word(), Project: word(), User: word()}
		seed, turn := chainSeed(Seed{Scope: scope, Secret: secret}), ids.ID(scope, "c", HexHash(Hash{}))
		if other, found := seeds[seed]; found && other != scope {
			t.Fatalf("the seeds of %q and %q collide", scope, other)
		}
		if other, found := turns[turn]; found && other != scope {
			t.Fatalf("the turn ids of %q and %q collide", scope, other)
		}
		seeds[seed], turns[turn] = scope, scope
	}
}
