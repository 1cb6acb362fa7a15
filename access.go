package firstcome

import (
	"fmt"
	"time"
)

// A Role says what the holder of an API key may do.
type Role string

// The roles.
const (
	Admin   Role = "admin"   // everything
	Service Role = "service" // claims and reads for any user
	Viewer  Role = "viewer"  // reads
)

// ParseRole returns the role that a word names.
func ParseRole(word string) (Role, error) {
	switch r := Role(word); r {
	case Admin, Service, Viewer:
		return r, nil
	}
	return "", fmt.Errorf("there is no role %q: it is admin, service or viewer", word)
}

// A Key is an API key as the ledger keeps it: without the key itself.
type Key struct {
	ID        string
	Name      string
	Role      Role
	Hash      [32]byte // SHA-256 of the key
	CreatedAt time.Time
	RevokedAt time.Time // zero while it is good
}
