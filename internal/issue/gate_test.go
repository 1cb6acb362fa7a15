package issue_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// void voids a user's coupon of the campaign c, as an operator would.
func void(t testing.TB, g *stage.Gate, user firstcome.UserID) {
	t.Helper()
	c := g.Course("c")
	change := firstcome.Change{Campaign: c.ID, Version: c.Version + 1, Kind: firstcome.ChangeVoid, Number: c.Holders[user].Number, User: user}
	stage.Must(t, stage.Err(g.Apply(t.Context(), change)))
}
