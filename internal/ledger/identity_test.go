package ledger_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

func TestALedgerIsTheSameToEveryNodeAndAtEveryStart(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		nodes := []*ledger.Ledger{remote(t, name, 1)}
		if ledger.OnServer(name) {
			nodes = append(nodes, remoteAt(t, name))
		}
		shared, err := ledger.OpenShared(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		first := nodes[0].Identity()
		if len(first) != 16 {
			t.Errorf("the ledger is %q", first)
		}
		for _, l := range append(nodes, shared) {
			c, err := l.Campaign(t.Context(), "c")
			before, err2 := nodes[0].Campaign(t.Context(), "c")
			if err := errors.Join(err, err2); err != nil || l.Identity() != first || c.Marker != before.Marker {
				t.Errorf("a node says that it is %q, and the campaign %q: %v", l.Identity(), c.Marker, err)
			}
		}
	})
}

func TestOfNodesThatOpenALedgerAtOnceOneSaysWhichItIs(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		remoteAt(t, name)
		if _, err := beside(t, name).Exec(`DELETE FROM identity`); err != nil {
			t.Fatal(err)
		}
		var found [4]string
		var opening sync.WaitGroup
		for n := range found {
			opening.Go(func() {
				l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: secret(t), Gate: "redis:test"})
				if err != nil {
					t.Error(err)
					return
				}
				found[n] = l.Identity()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
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
	_, stop := open(t, name, nil)
	stop()
	late := services.PostgreSQL.Server(t, services.PostgreSQL.Fast()...)
	primary, err := url.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.Trim(primary.Path, "/")
	if _, err := beside(t, late.URL()).Exec(`CREATE DATABASE "` + database + `"`); err != nil {
		t.Fatal(err)
	}
	standby := *primary
	standby.Host = late.Address()
	_, stop = open(t, standby.String(), nil)
	stop()
	for at, statement := range map[string]string{
		name:             `DELETE FROM identity`,
		standby.String(): `DELETE FROM identity; ALTER DATABASE "` + database + `" SET default_transaction_read_only = on`,
	} {
		if _, err := beside(t, at).Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	both := *primary
	both.Host = late.Address() + "," + primary.Host
	var found [2]string
	for n := range found {
		l, err := ledger.Open(t.Context(), both.String(), ledger.Options{Secret: secret(t), Gate: "redis:test"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		found[n] = l.Identity()
	}
	if found[0] == "" || found[0] != found[1] {
		t.Errorf("the ledger is %q", found)
	}
}

func TestCampaignsOfTwoLedgersHaveDifferentMarkers(t *testing.T) {
	one, other := remote(t, filepath.Join(t.TempDir(), "firstcome.db"), 1), remote(t, filepath.Join(t.TempDir(), "firstcome.db"), 1)
	a, err1 := one.Campaign(t.Context(), "c")
	b, err2 := other.Campaign(t.Context(), "c")
	if err := errors.Join(err1, err2); err != nil || a.Marker == b.Marker || one.Identity() == other.Identity() {
		t.Errorf("two campaigns are %q and %q, %v", a.Marker, b.Marker, err)
	}
}

// TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign gives it coupons that are like its
// own in all but the marker.
func TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		c, err := l.Campaign(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		own := given(decided(t, 1))
		own.Marker = c.Marker
		must(t, l)(l.Record(t.Context(), own))
		before := books(t, l)
		foreign := func(id firstcome.CampaignID, c firstcome.Coupon) flow.Batch {
			c.Campaign = id
			return flow.Batch{Campaign: id, Epoch: 1, Marker: "0123456789abcdef.1", Coupons: []firstcome.Coupon{c}}
		}
		for what, b := range map[string]flow.Batch{
			"a new coupon": foreign("c", decided(t, 2)), "one like a known one": foreign("c", decided(t, 1)), "of no campaign": foreign("unknown", decided(t, 2)),
		} {
			if _, err := l.Record(t.Context(), b); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to record it got %v", what, err)
			}
			if _, err := l.Bury(t.Context(), b, "a trial"); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to bury it got %v", what, err)
			}
		}
		same(t, "the books", before, books(t, l))
		letters, err := l.DeadLetters(t.Context(), ledger.Letters{})
		if err != nil || len(letters) > 0 {
			t.Errorf("there are the letters %v, %v", letters, err)
		}
	})
}

// openings are the ways in which a ledger is opened, and what doctor does.
func openings(t *testing.T, name string) map[string]error {
	t.Helper()
	l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: secret(t)})
	shared, err2 := ledger.OpenShared(t.Context(), name)
	for _, opened := range []*ledger.Ledger{l, shared} {
		if opened != nil {
			t.Cleanup(func() { _ = opened.Close() })
		}
	}
	errs := map[string]error{"to decide": err, "beside": err2}
	if ledger.OnServer(name) {
		if f := examine(t, name)["tables"]; f.Grade == doctor.Fail {
			errs["doctor"] = errors.New(f.Found + ": " + f.Fix)
		} else {
			errs["doctor"] = nil
		}
	}
	return errs
}

func TestF56ALedgerThatLacksItsIdentitySaysWhatToDo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		_, stop := open(t, name, nil)
		stop()
		if _, err := beside(t, name).Exec(`DROP TABLE identity`); err != nil {
			t.Fatal(err)
		}
		for how, err := range openings(t, name) {
			if err == nil || !strings.Contains(err.Error(), "lacks the table identity") || !strings.Contains(err.Error(), "restore all of its tables") {
				t.Errorf("opened %s it got %v", how, err)
			}
		}
	})
}

func TestANameThatAnOperatorGivesALedgerFitsWhereItIsUsed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		_, stop := open(t, name, nil)
		stop()
		for _, bad := range []string{"", "staging 2026", "staging.2026", "스테이징", "a\nb"} {
			if _, err := beside(t, name).Exec(`UPDATE identity SET ledger = '` + bad + `'`); err != nil {
				t.Fatal(err)
			}
			for how, err := range openings(t, name) {
				if how != "doctor" && (err == nil || !strings.Contains(err.Error(), "UPDATE identity SET ledger = ")) {
					t.Errorf("called %q and opened %s it got %v", bad, how, err)
				}
			}
		}
		if _, err := beside(t, name).Exec(`UPDATE identity SET ledger = 'staging-2026-11'`); err != nil {
			t.Fatal(err)
		}
		l, stop := open(t, name, nil)
		defer stop()
		if l.Identity() != "staging-2026-11" {
			t.Errorf("it is %q", l.Identity())
		}
	})
}

// TestF65AUserWhoMayNotTouchTheIdentityIsToldWhichRightIsMissing has a ledger of which no
// node has said yet which it is, as of one whose migration was killed right behind its end.
func TestF65AUserWhoMayNotTouchTheIdentityIsToldWhichRightIsMissing(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		_, stop := open(t, name, nil)
		stop()
		if _, err := beside(t, name).Exec(`DELETE FROM identity`); err != nil {
			t.Fatal(err)
		}
		for right, lacks := range map[string]string{"SELECT": "INSERT", "INSERT": "SELECT"} {
			_, err := ledger.Open(t.Context(), services.User(t, name, right), ledger.Options{Secret: secret(t)})
			if err == nil || !strings.Contains(err.Error(), "lacks the right to "+lacks) {
				t.Errorf("who may %s alone got %v", right, err)
			}
		}
		l, err := ledger.Open(t.Context(), services.User(t, name), ledger.Options{Secret: secret(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil || l.Identity() == "" {
			t.Errorf("a user who may write rows has the ledger %q, %v", l.Identity(), err)
		}
	})
}
