package auth

import "github.com/firstcome/firstcome"

// Who is a set of those who may call an operation or see a page.
type Who uint16

// The members of a Who.
const (
	Admin    Who = 1 << iota // API keys by their roles
	Operator                 //
	Support                  //
	Viewer                   //
	Service                  //
	Shop                     //
	Self                     // a user's own token, about themself alone
	Public                   // also without credentials, as often as from any address
	Everyone                 // also without credentials, as often as they like
)

// SeesAll are the callers who see every user's id and code. All others see only those of users they named.
const SeesAll = Admin | Operator

// Has tells whether a caller is in the set.
func (w Who) Has(c Caller) bool {
	if c.User != "" {
		return w&Self != 0
	}
	return w.HasRole(c.Role)
}

// HasRole tells whether API keys of a role are in the set. A role that is not here may do nothing.
func (w Who) HasRole(r firstcome.Role) bool { return w&roles[r] != 0 }

var roles = map[firstcome.Role]Who{
	firstcome.Admin: Admin, firstcome.Operator: Operator, firstcome.Support: Support, firstcome.Viewer: Viewer,
	firstcome.Service: Service, firstcome.Shop: Shop,
}
