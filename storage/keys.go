package storage

import "context"

// KeyRotator is what a [Store] offers whose keys lie wrapped by a key-encryption key, to wrap them by a new one while it
// serves. Nothing that is sealed is sealed anew, and no secret that names or ids derive from changes.
type KeyRotator interface {
	// RotateKey makes a new key and puts it where the store finds it or, where newKeyFile is not "", takes the key in
	// that file, which is generated if it is not there. No key file is lost: the old one is kept, since other stores may use it.
	// At every moment, also after a crash, the configured key opens everything; repeating the call carries on.
	RotateKey(ctx context.Context, newKeyFile string) (KeyRotation, error)
}

// KeyRotation is what RotateKey did.
type KeyRotation struct {
	From, To string // ids of the keys, which tell nothing of them
	Keys     int    // data keys that are wrapped by the new key
	// Pending: the store cannot change where its key is configured. Both keys open everything until the store is opened
	// with the new one.
	Pending bool
	// NewFile is where the new key lies, OldFile where the old one is kept; "" where Pending.
	NewFile, OldFile string
	// Unreadable counts data keys that neither key opens. They are left as they are.
	Unreadable int
}
