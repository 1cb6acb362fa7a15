//go:build !check

package ledger_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP10PrizesCostAClaimNoRowAndNoStatement counts what MariaDB does for claims of one campaign after the other. A campaign with prizes costs what one
// without does, and that is what it was before there were prizes.
func TestP10PrizesCostAClaimNoRowAndNoStatement(t *testing.T) {
	server := services.MariaDB.Server(t, services.MariaDB.Fast()...) // of its own: what is counted is of all its databases
	name, err := server.Database(t.Context())
	stage.Must(t, err)
	l, db := start(t, name, nil), services.Beside(t, name)
	var first, second []firstcome.UserID
	for n := range 100 {
		first, second = append(first, firstcome.UserID(fmt.Sprint("user-", n))), append(second, firstcome.UserID(fmt.Sprint("user-", 50+n)))
	}
	prizes := []firstcome.Prize{{ID: "drink", Name: "A drink", Quantity: 10}, {ID: "shipping", Name: "Free shipping"}}
	costs := func(id firstcome.CampaignID, terms firstcome.Terms) map[string]int64 {
		t.Helper()
		terms.Name, terms.Quantity, terms.Answer = "a campaign", 120, firstcome.Recorded
		stage.Must(t, l.Campaigns.Create(t.Context(), "test", id, terms))
		claim(t, l.Gate, id, first[0]) // so that the statements are prepared
		before := worked(t, db)
		claim(t, l.Gate, id, first...)
		claim(t, l.Gate, id, second...) // half of them again, and at the end sold out
		work := worked(t, db)
		for what := range work {
			work[what] -= before[what]
		}
		return work
	}
	want := map[string]int64{ // 119 users get a coupon, each a row
		"COM_SELECT": 9, "COM_INSERT": 2, "COM_UPDATE": 2, "COM_DELETE": 0, "COM_COMMIT": 2,
		"HANDLER_WRITE": 119, "HANDLER_UPDATE": 2, "HANDLER_DELETE": 0,
	}
	costs("warm", firstcome.Terms{})
	stage.Same(t, "without prizes", want, costs("plain", firstcome.Terms{Benefit: []byte(`{"percent":20}`)}))
	stage.Same(t, "with prizes", want, costs("prizes", firstcome.Terms{Prizes: prizes}))
}

// worked returns how many statements and rows the server has written and read.
func worked(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows, err := db.Query(`SELECT variable_name, variable_value FROM information_schema.global_status WHERE variable_name IN (
		'COM_SELECT', 'COM_INSERT', 'COM_UPDATE', 'COM_DELETE', 'COM_COMMIT', 'HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE') ORDER BY 1`)
	stage.Must(t, err)
	defer rows.Close()
	all := map[string]int64{}
	for rows.Next() {
		var what string
		var n int64
		stage.Must(t, rows.Scan(&what, &n))
		all[what] = n
	}
	stage.Must(t, rows.Err())
	return all
}
