package storage

import "context"

// BulkEraser is what a [Store] offers that can erase many scopes at once. Each is erased as by [Store.Erase]: its data
// key is destroyed first. Cut short, some are erased and some are not; repeating it is safe.
type BulkEraser interface {
	// EraseTenant erases every scope of a tenant. One whose data key cannot be read is not known to be the tenant's: only
	// its own erasure, or that of all, removes it.
	EraseTenant(ctx context.Context, tenant string) (Receipt, error)
	// EraseAll erases every scope. What remains is an empty store with the secrets that names and ids derive from.
	EraseAll(ctx context.Context) (Receipt, error)
}
