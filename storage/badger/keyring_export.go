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

// An exported keyring is a file of frames (frames.go): a 'K' for each file of
// the keyring (name, content, still wrapped), a 'D' for each data key that an
// erasure has destroyed (id). It opens nothing without the key-encryption key.
const (
	keyringFileMagic  = "REMORA KEYRING\n"
	keyringFileFormat = 2
	maxKeyringFile    = 256 << 20 // bytes: about two million scopes

	frameKey       = 'K'
	frameDestroyed = 'D'
)

// ExportKeyring writes the keyring of a store, open or not, still wrapped, and
// returns the number of scopes.
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
			return nil // it was just erased
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

// Imported is the result of [ImportKeyring].
type Imported struct {
	Added  int // data keys
	Kept   int // scopes that keep the key they had
	Erased int // keys left out because an erasure has destroyed them
	// Condemned counts keys of this keyring that the imported one lists as
	// destroyed. Their scopes are erased when the store is next opened.
	Condemned int
}

// importedKeyring is an exported keyring that was checked completely.
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

// ImportKeyring puts an exported keyring into a directory that has none, or
// adds what is missing to the same store's keyring. The key-encryption key must
// be configured; it is never made here. Nothing is written unless the whole
// file is valid and no process has the store open.
func ImportKeyring(cfg Config, r io.Reader) (done Imported, err error) {
	dir := directory(cfg.Dir)
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
	if there, err := exists(dir.data()); err != nil {
		return done, err
	} else if there { // an open store would keep its cached keys, and not see which scopes are to be erased
		unlock, free, err := lockDir(dir.data())
		if err != nil {
			return done, err
		}
		if !free {
			return done, refuse("a Remora uses %s: stop it first; nothing was imported", dir)
		}
		defer unlock()
	}
	keys, err := existingKeyring(cfg)
	if err != nil {
		return done, explain(dir, err)
	}
	isNew := keys == nil
	if isNew {
		keys = &keyring{dir: dir.keyring(), namer: in.namer, keks: []*kek{in.kek}, keyFile: in.keyFile, write: writeDurably}
		for _, d := range []string{"scopes", "erased"} {
			if err := makeDir(filepath.Join(keys.dir, d)); err != nil {
				return done, err
			}
		}
	} else if !bytes.Equal(in.plain, append(bytes.Clone(keys.secret), keys.install...)) {
		return done, refuse("the keyring is of another store than %s; nothing was imported", dir)
	}
	// Imported files are wrapped by the configured key alone, and a rotation
	// would not visit them again.
	if to, _, err := keys.rotatingTo(); err != nil {
		return done, explain(dir, err)
	} else if to != nil {
		return done, refuse("a rotation of the key to %s is under way: finish it first; nothing was imported", to)
	}
	for _, id := range in.destroyed {
		if err := keys.recordDestroyed(id); err != nil {
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
	if isNew {
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

// condemn marks the scopes for erasure whose keys were destroyed elsewhere.
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

// readKeyringFile reads an exported keyring and checks all of it.
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
	case rest[0] < keyringFileFormat:
		return nil, errors.New("it was exported by an older Remora")
	}
	in := new(importedKeyring)
	frames := &frameReader{r: bufio.NewReader(bytes.NewReader(rest[1:]))}
	frames.mac = sha256.New() // until the key of the checksum is known, from the first frame
	kind, fields, err := frames.next()
	if err != nil {
		return nil, err
	}
	if kind != frameKey || len(fields) != 2 || string(fields[0]) != "secrets" {
		return nil, errAltered
	}
	in.secrets = fields[1]
	ids, err := wrappingKeys("secrets", in.secrets)
	if err != nil {
		return nil, errAltered
	}
	in.kek, in.keyFile, err = cfg.loadKEK(ids)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("the key file %s does not exist, nor does %s: put the key there first, it is not part of an exported keyring", cfg.KeyFile, cfg.keyFilesOf(ids))
	}
	if err != nil {
		return nil, err
	}
	in.plain, err = unwrap([]*kek{in.kek}, "secrets", in.secrets)
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

// add adds a scope's key. One that was unreadable where it was exported is left
// out.
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

// KeyStatus describes a keyring, without any key.
type KeyStatus struct {
	Key        string         // id of the key in use
	KeyFile    string         // where it was found; "" = in no file
	RotatingTo string         // id of the key that a rotation is putting in its place; "" = none
	Scopes     int            // data keys
	WrappedBy  map[string]int // number of files that each key opens, by its id
	Unreadable int            // files that are damaged or that the configured key does not open
	Destroyed  int            // data keys that erasures have destroyed
}

// ReadKeyStatus describes the keyring of a store, open or not.
func ReadKeyStatus(cfg Config) (KeyStatus, error) {
	keys, err := openKeyringOf(cfg)
	if err != nil {
		return KeyStatus{}, err
	}
	st := KeyStatus{Key: keys.keks[0].id.String(), KeyFile: keys.keyFile, WrappedBy: map[string]int{}}
	add := func(name, path string) error {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		ids, err := wrappingKeys(name, content)
		for _, id := range ids {
			st.WrappedBy[id.String()]++
		}
		if err == nil {
			_, err = unwrap(keys.keks, name, content)
		}
		if err != nil {
			st.Unreadable++
		}
		return nil
	}
	if err := add("secrets", keys.secretsPath()); err != nil {
		return KeyStatus{}, err
	}
	err = keys.each(func(h hash16) error {
		st.Scopes++
		return add(scopeFileName(h), keys.scopePath(h))
	})
	if err != nil {
		return KeyStatus{}, err
	}
	if to, _, err := keys.rotatingTo(); err == nil && to != nil {
		st.RotatingTo = to.String()
	}
	destroyed, err := keys.destroyed()
	st.Destroyed = len(destroyed)
	return st, err
}
