package auth

import "github.com/firstcome/firstcome"

// A Who is a set of callers that may call an operation or see a page.
type Who uint16

// The members of a Who.
const (
	Admin    Who = 1 << iota // API keys by their roles
	Operator                 //
	Support                  //
	Viewer                   //
	Service                  //
	Shop                     //
	Self                     // a user's own token, for themself only
	Public                   // also without credentials, limited by address
	Everyone                 // also without credentials, without a limit
)

// SeesAll are the callers who see every user's id and code. Other callers see only those of a user whom they named.
const SeesAll = Admin | Operator

// Has reports whether a caller is in the set.
func (w Who) Has(c Caller) bool {
	if c.User != "" {
		return w&Self != 0
	}
	return w.HasRole(c.Role)
}

// HasRole reports whether API keys of a role are in the set. An unknown role is in none.
func (w Who) HasRole(r firstcome.Role) bool { return w&roles[r] != 0 }

var roles = map[firstcome.Role]Who{
	firstcome.Admin: Admin, firstcome.Operator: Operator, firstcome.Support: Support, firstcome.Viewer: Viewer,
	firstcome.Service: Service, firstcome.Shop: Shop,
}
