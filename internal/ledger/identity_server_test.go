//go:build !check

package ledger_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestOfNodesThatOpenALedgerAtOnceOneSaysWhichItIs(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		remoteAt(t, name)
		execute(t, services.Beside(t, name), `DELETE FROM identity`)
		var found [4]string
		var opening sync.WaitGroup
		for n := range found {
			opening.Go(func() {
				found[n] = identityAt(t, name)
			})
		}
		opening.Wait()
		for _, identity := range found {
			if identity == "" || identity != found[0] {
				t.Fatalf("the ledger is %q", found)
			}
		}
	})
}

// TestANodeThatReadsAtALateStandbyMakesUpNoSecondIdentity has a name with two servers, of which
// the first only reads and has nothing of what was written to the second.
func TestANodeThatReadsAtALateStandbyMakesUpNoSecondIdentity(t *testing.T) {
	name := services.PostgreSQL.Database(t)
	migrated(t, name)
	late := services.PostgreSQL.Server(t, services.PostgreSQL.Fast()...)
	primary := parse(t, name)
	database := strings.Trim(primary.Path, "/")
	execute(t, services.Beside(t, late.URL()), `CREATE DATABASE "`+database+`"`)
	standby := *primary
	standby.Host = late.Address()
	migrated(t, standby.String())
	for at, statement := range map[string]string{
		name:             `DELETE FROM identity`,
		standby.String(): `DELETE FROM identity; ALTER DATABASE "` + database + `" SET default_transaction_read_only = on`,
	} {
		execute(t, services.Beside(t, at), statement)
	}
	both := *primary
	both.Host = late.Address() + "," + primary.Host
	var found [2]string
	for n := range found {
		found[n] = identityAt(t, both.String())
	}
	if found[0] == "" || found[0] != found[1] {
		t.Errorf("the ledger is %q", found)
	}
}

// TestF65AUserWhoMayNotTouchTheIdentityIsToldWhichRightIsMissing has a ledger of which no
// node has said yet which it is, as of one whose migration was killed right behind its end.
func TestF65AUserWhoMayNotTouchTheIdentityIsToldWhichRightIsMissing(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := migrated(t, kind.Database(t))
		execute(t, services.Beside(t, name), `DELETE FROM identity`)
		for right, lacks := range map[string]string{"SELECT": "INSERT", "INSERT": "SELECT"} {
			wantAdvice(t, openError(t, services.User(t, name, right)), "lacks the right to "+lacks)
		}
		if identityAt(t, services.User(t, name)) == "" {
			t.Error("a user who may write rows gives it no name")
		}
	})
}
