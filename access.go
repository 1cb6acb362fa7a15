package firstcome

import (
	"fmt"
	"slices"
	"time"
)

// A Role is what the holder of an API key may do.
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything
	Operator Role = "operator" // all of a campaign, dead letters and the audit log; no keys
	Support  Role = "support"  // like Viewer, plus lookups of one user or code at a time, and voids
	Viewer   Role = "viewer"   // campaigns and counts, without users' ids
	Service  Role = "service"  // claims and reads for any user
	Shop     Role = "shop"     // like Service, plus facts, direct issues and voids
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

// A Key is an API key in the ledger, which does not have the key's text.
type Key struct {
	ID        string
	Name      string
	Role      Role
	Hash      [32]byte // SHA-256 of the key
	CreatedAt time.Time
	RevokedAt time.Time // zero if it is not revoked
	// LoggedOutAt is when its holder last logged out of the console; zero if never. Sessions that began before have ended.
	LoggedOutAt time.Time
}
