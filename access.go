package firstcome

import (
	"fmt"
	"slices"
	"time"
)

// A Role says what the holder of an API key may do.
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything
	Operator Role = "operator" // all of a campaign, dead letters and the audit log; no keys
	Support  Role = "support"  // what a viewer reads, one user or code at a time, and voids
	Viewer   Role = "viewer"   // campaigns and counts; no user's id
	Service  Role = "service"  // claims and reads for any user
	Shop     Role = "shop"     // what a service does, and the facts, direct issues and voids
)

// Roles returns every role.
func Roles() []Role { return []Role{Admin, Operator, Support, Viewer, Service, Shop} }

// ParseRole returns the role that a word names.
func ParseRole(word string) (Role, error) {
	if r := Role(word); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("there is no role %q: it is admin, operator, support, viewer, service or shop", word)
}

// A Key is an API key as the ledger keeps it: without the key itself.
type Key struct {
	ID        string
	Name      string
	Role      Role
	Hash      [32]byte // SHA-256 of the key
	CreatedAt time.Time
	RevokedAt time.Time // zero while it is good
	// LoggedOutAt is when its holder logged out of the console last; zero: never. Sessions that began until then are over.
	LoggedOutAt time.Time
}
