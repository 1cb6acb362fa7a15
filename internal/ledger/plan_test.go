package ledger

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
)

// TestUsersAreLookedUpInTheIndex holds the plan of every width: without a hint,
// SQLite read the whole campaign for more than one user.
func TestUsersAreLookedUpInTheIndex(t *testing.T) {
	secret, err := firstcome.NewSecret(make([]byte, firstcome.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(context.Background(), filepath.Join(t.TempDir(), "firstcome.db"), Options{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for width, query := range lookQueries {
		var id, parent, unused int
		var plan string
		args := make([]any, width+1)
		if err := l.read.db.QueryRow(`EXPLAIN QUERY PLAN `+query, args...).Scan(&id, &parent, &unused, &plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan, "coupons_p3_one_per_user (user_id=? AND campaign_id=?)") {
			t.Errorf("%d users are looked up by: %s", width, plan)
		}
	}
}
