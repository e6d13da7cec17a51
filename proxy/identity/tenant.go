package identity

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// The control plane names users and tenants as requests do.

// Tenant returns the tenant of all requests, "" where tenants are by
// credential.
func (r *Resolver) Tenant() string {
	if r.byKey {
		return ""
	}
	return r.tenant
}

// Anonymous returns the user of requests that name none, "" if these get no
// memory.
func (r *Resolver) Anonymous() string {
	if r.keyHolder {
		return KeyHolderUser
	}
	return ""
}

// TenantOf returns the tenant of a credential, "" where tenants are not by
// credential, or if this one identifies nobody. Whether the tenant exists, the
// store knows.
func (r *Resolver) TenantOf(secret []byte, credential string) string {
	if !r.byKey || credential == "" || dummyKey(credential, r.dummies) {
		return ""
	}
	return r.keyTenant(secret, credential)
}

// keyHolder is shown as the user of requests that name none.
const keyHolder = "(key holder)"

// Show returns a part of a scope for people, shells and JSON: unchanged, or
// quoted if it could be mistaken for something else or would control a
// terminal. Parse reads it back.
func Show(part string) string {
	plain := part != "" && !strings.HasPrefix(part, "(") && !strings.ContainsAny(part, " \"'\\")
	switch {
	case part == KeyHolderUser:
		return keyHolder
	case plain && strconv.Quote(part) == `"`+part+`"`:
		return part
	}
	return strconv.Quote(part)
}

// Parse reads what Show has shown, or a name as a request gives it.
func Parse(shown string) (part string, err error) {
	switch {
	case shown == keyHolder:
		return KeyHolderUser, nil
	case strings.HasPrefix(shown, `"`):
		if part, err = strconv.Unquote(shown); err != nil || part == "" || len(part) > storage.MaxScopePart {
			return "", fmt.Errorf("is no quoted name")
		}
		return part, nil
	}
	part, why := nameOf(shown)
	if part == "" && why == "" {
		why = "is empty"
	}
	if why != "" {
		return "", fmt.Errorf("%s", why)
	}
	return part, nil
}
