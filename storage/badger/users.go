package badger

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/remora-proxy/remora/storage"
)

// Each user costs a key file and room in the indexes, so their number is
// bounded: for the store by Config.MaxUsers, for a tenant by
// Config.MaxTenantUsers. At either bound no key is made for another user, and
// the write fails with [storage.ErrTooManyUsers]. Those who are there already
// are stored as before.

// population counts the users of a keyring. Guarded by keyring.mu.
type population struct {
	maxUsers, maxTenantUsers int // 0 = no bound

	counted bool // all is set
	all     int
	// tenants counts them by tenant, nil as long as all are fewer than one
	// tenant may have.
	tenants map[string]int
}

// admit counts a new user, or returns an error if there are too many. The
// caller holds mu, and calls expel if the user's key cannot be made.
func (k *keyring) admit(scope storage.Scope) error {
	p := &k.population
	if p.maxUsers == 0 && p.maxTenantUsers == 0 {
		return nil
	}
	if !p.counted {
		n, err := k.countFiles()
		if err != nil {
			return err
		}
		p.all, p.counted = n, true
	}
	if p.maxUsers > 0 && p.all >= p.maxUsers {
		return fmt.Errorf("the store has %d users, as many as storage.maxUsers allows: %w", p.all, storage.ErrTooManyUsers)
	}
	if p.maxTenantUsers > 0 && p.all >= p.maxTenantUsers {
		if p.tenants == nil {
			if err := k.countTenants(); err != nil {
				return err
			}
		}
		if n := p.tenants[scope.Tenant]; n >= p.maxTenantUsers {
			return fmt.Errorf("the tenant has %d users, as many as storage.maxTenantUsers allows: %w", n, storage.ErrTooManyUsers)
		}
	}
	p.count(scope.Tenant, 1)
	return nil
}

func (p *population) count(tenant string, n int) {
	p.all += n
	if p.tenants != nil {
		p.tenants[tenant] += n
	}
}

// countFiles counts the keys without reading them.
func (k *keyring) countFiles() (n int, err error) {
	err = k.each(func(hash16) error { n++; return nil })
	return n, err
}

// countTenants reads all keys, once, which takes some seconds for a hundred
// thousand of them. What cannot be read belongs to no tenant.
func (k *keyring) countTenants() error {
	tenants := map[string]int{}
	err := k.each(func(h hash16) error {
		if scope, _, err := k.readLocked(h); err == nil {
			tenants[scope.Tenant]++
		}
		return nil
	})
	if err == nil {
		k.population.tenants = tenants
	}
	return err
}

// expel counts a user less, if the key is there. The caller holds mu.
func (k *keyring) expel(h hash16, scope storage.Scope) {
	if _, err := os.Stat(filepath.Clean(k.scopePath(h))); err == nil && k.population.counted {
		k.population.count(scope.Tenant, -1)
	}
}
