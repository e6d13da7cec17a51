package badger

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remora-proxy/remora/storage"
)

// An exported keyring is a file of frames (frames.go): a 'K' for each file of the keyring (its name, its content, still
// wrapped), a 'D' for each data key that an erasure has destroyed (its id). It opens nothing without the
// key-encryption key.
const (
	keyringFileMagic  = "REMORA KEYRING\n"
	keyringFileFormat = 1
	maxKeyringFile    = 256 << 20 // bytes: about two million scopes

	frameKey       = 'K'
	frameDestroyed = 'D'
)

// ExportKeyring writes the keyring of a store, open or not, as it is: wrapped.
func ExportKeyring(cfg Config, w io.Writer) (scopes int, err error) {
	keys, err := openKeyringOf(cfg)
	if err != nil {
		return 0, err
	}
	mac, err := keys.newMAC("keyring export")
	if err != nil {
		return 0, err
	}
	f, err := newFrameWriter(w, mac, append([]byte(keyringFileMagic), keyringFileFormat))
	if err != nil {
		return 0, err
	}
	add := func(name, path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return f.frame(frameKey, []byte(name), content)
	}
	if err := add("secrets", keys.secretsPath()); err != nil {
		return 0, err
	}
	err = keys.each(func(h hash16) error {
		err := add(hex.EncodeToString(h[:]), keys.scopePath(h))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // erased meanwhile
		}
		scopes++
		return err
	})
	if err != nil {
		return 0, err
	}
	destroyed, err := keys.destroyed()
	if err != nil {
		return 0, err
	}
	for _, id := range destroyed {
		if err := f.frame(frameDestroyed, id[:]); err != nil {
			return 0, err
		}
	}
	return scopes, f.end()
}

// Imported is what [ImportKeyring] did.
type Imported struct {
	Added  int // data keys
	Kept   int // scopes that had a key, which stays
	Erased int // keys left out, since an erasure has destroyed them
	// Condemned counts keys that are here and that the imported keyring knows as destroyed: their scopes are erased when
	// the store is next opened.
	Condemned int
}

// importedKeyring is an exported keyring that has been checked.
type importedKeyring struct {
	kek       *kek
	keyFile   string
	secrets   []byte // the file
	namer     namer
	plain     []byte // of the secrets
	scopes    []importedKey
	destroyed []keyID
}

type importedKey struct {
	hash    hash16
	id      keyID
	content []byte
}

// ImportKeyring brings an exported keyring to a directory that has none, or adds what is missing to the same store's
// keyring. The key-encryption key must be configured; it is never made here. Nothing is written unless all of the file
// is right, and nobody has the store open.
func ImportKeyring(cfg Config, r io.Reader) (done Imported, err error) {
	s := New(cfg, nil)
	if err := cfg.Validate(); err != nil {
		return done, err
	}
	in, err := readKeyringFile(cfg, r)
	if known, ok := errors.AsType[*openError](err); ok {
		return done, known
	}
	if err != nil {
		return done, fmt.Errorf("import keyring: %w; nothing was imported", err)
	}
	if there, err := exists(s.dataDir()); err != nil {
		return done, err
	} else if there { // an open store would go on with the keys that it has in memory, and not see what is condemned
		unlock, free, err := lockDir(s.dataDir())
		if err != nil {
			return done, err
		}
		if !free {
			return done, refuse("a Remora uses %s: stop it first; nothing was imported", cfg.Dir)
		}
		defer unlock()
	}
	keys, err := s.existingKeyring()
	if err != nil {
		return done, s.explain(err)
	}
	fresh := keys == nil
	if fresh {
		keys = &keyring{dir: s.keyringDir(), namer: in.namer, keks: []*kek{in.kek}, keyFile: in.keyFile, write: writeDurably}
		for _, d := range []string{"scopes", "erased"} {
			if err := makeDir(filepath.Join(keys.dir, d)); err != nil {
				return done, err
			}
		}
	} else if !bytes.Equal(in.plain, append(bytes.Clone(keys.secret), keys.install...)) {
		return done, refuse("the keyring is of another store than %s; nothing was imported", cfg.Dir)
	}
	// What is added is wrapped by the configured key alone, and a rotation that has been here would not come back for it.
	if to, _, err := keys.rotatingTo(); err != nil {
		return done, s.explain(err)
	} else if to != nil {
		return done, refuse("a rotation of the key to %s is under way: finish it first; nothing was imported", to)
	}
	for _, id := range in.destroyed {
		if err := makeDir(filepath.Dir(keys.destroyedPath(id))); err != nil {
			return done, err
		}
		if err := keys.write(keys.destroyedPath(id), nil); err != nil {
			return done, err
		}
	}
	for _, sk := range in.scopes {
		if err := keys.importKey(sk, &done); err != nil {
			return done, err
		}
	}
	if err := keys.condemn(&done); err != nil {
		return done, err
	}
	if fresh {
		return done, keys.write(keys.secretsPath(), in.secrets) // the commit point: without it there is no keyring
	}
	return done, nil
}

func (k *keyring) importKey(sk importedKey, done *Imported) error {
	if gone, err := exists(k.destroyedPath(sk.id)); err != nil {
		return err
	} else if gone {
		done.Erased++
		return nil
	}
	path := k.scopePath(sk.hash)
	if there, err := exists(path); err != nil {
		return err
	} else if there {
		done.Kept++
		return nil
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	done.Added++
	return k.write(path, sk.content)
}

// condemn marks for erasure the scopes whose keys have been destroyed elsewhere.
func (k *keyring) condemn(done *Imported) error {
	return k.each(func(h hash16) error {
		id, err := k.idOf(h)
		if errors.Is(err, storage.ErrDamaged) {
			return nil
		}
		if err != nil {
			return err
		}
		gone, err := exists(k.destroyedPath(id))
		if err != nil || !gone {
			return err
		}
		done.Condemned++
		return k.mark(h)
	})
}

// readKeyringFile reads a whole exported keyring and checks all of it.
func readKeyringFile(cfg Config, r io.Reader) (*importedKeyring, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxKeyringFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxKeyringFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxKeyringFile>>20)
	}
	rest, ok := bytes.CutPrefix(content, []byte(keyringFileMagic))
	switch {
	case !ok:
		return nil, errors.New("this is not a keyring of Remora")
	case len(rest) == 0:
		return nil, errTruncated
	case rest[0] > keyringFileFormat:
		return nil, errors.New("it was exported by a newer Remora")
	}
	in := new(importedKeyring)
	frames := &frameReader{r: bufio.NewReader(bytes.NewReader(rest[1:]))}
	frames.mac = sha256.New()          // until the key of the checksum is known
	kind, fields, err := frames.next() // the secrets come first: with them the checksum can be reckoned
	if err != nil {
		return nil, err
	}
	if kind != frameKey || len(fields) != 2 || string(fields[0]) != "secrets" {
		return nil, errAltered
	}
	in.secrets = fields[1]
	ids, err := wrappedByKeys("secrets", in.secrets)
	if err != nil {
		return nil, errAltered
	}
	in.kek, in.keyFile, err = cfg.loadKEK(ids)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("the key file %s does not exist, nor is the key in %s: bring it there first, it is not part of an exported keyring", cfg.KeyFile, cfg.keyFilesOf(ids))
	}
	if err != nil {
		return nil, err
	}
	in.plain, err = unwrapped([]*kek{in.kek}, "secrets", in.secrets)
	if errors.Is(err, errWrongKey) {
		return nil, errors.New("wrong key: the configured key does not open it")
	}
	if err != nil || len(in.plain) != 2*secretSize {
		return nil, errAltered
	}
	in.namer = newNamer(in.plain[:secretSize])
	if frames.mac, err = in.namer.newMAC("keyring export"); err != nil {
		return nil, err
	}
	frames.mac.Write(content[:len(keyringFileMagic)+1])
	frames.mac.Write(frames.read)
	for {
		kind, fields, err := frames.next()
		if errors.Is(err, io.EOF) {
			return in, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case kind == frameDestroyed && len(fields) == 1 && len(fields[0]) == len(keyID{}):
			in.destroyed = append(in.destroyed, keyID(fields[0]))
		case kind == frameKey && len(fields) == 2:
			if err := in.add(string(fields[0]), fields[1]); err != nil {
				return nil, err
			}
		default:
			return nil, errAltered
		}
	}
}

// add takes a scope's key. One that was unreadable where it was exported stays behind.
func (in *importedKeyring) add(name string, content []byte) error {
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != hashSize {
		return errAltered
	}
	h := hash16(raw)
	scope, key, err := openScopeFile([]*kek{in.kek}, h, content)
	if err != nil || in.namer.scope(scope) != h {
		return nil
	}
	id, err := newKeyID(key)
	in.scopes = append(in.scopes, importedKey{h, id, content})
	return err
}
