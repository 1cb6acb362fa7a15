package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// identityAt opens a ledger, and returns how it calls itself.
func identityAt(t *testing.T, name string) string {
	l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret()})
	if err != nil {
		t.Error(err)
		return ""
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return l.Identity()
}

func TestALedgerIsTheSameToEveryNodeAndAtEveryStart(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		nodes := []*ledger.Ledger{remote(t, name, 1)}
		if sqldb.OnServer(name) {
			nodes = append(nodes, remoteAt(t, name))
		}
		shared := reader(t, name)
		first := nodes[0].Identity()
		if len(first) != 16 {
			t.Errorf("the ledger is %q", first)
		}
		for _, l := range append(nodes, shared) {
			stage.Same(t, "the ledger and its campaign", []string{first, status(t, nodes[0]).CampaignUID}, []string{l.Identity(), status(t, l).CampaignUID})
		}
	})
}

func TestCampaignsOfTwoLedgersHaveDifferentMarkers(t *testing.T) {
	one, other := remote(t, file(t), 1), remote(t, file(t), 1)
	if uid := status(t, one).CampaignUID; uid == status(t, other).CampaignUID || one.Identity() == other.Identity() {
		t.Errorf("two campaigns are %q", uid)
	}
}

// TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign gives it coupons that are like its
// own in all but the UID.
func TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		own := given(stage.Coupon("c", 1))
		own.CampaignUID = status(t, l).CampaignUID
		must(t, l)(l.Recorder.Record(t.Context(), own))
		before := books(t, l)
		foreign := func(id firstcome.CampaignID, c firstcome.Coupon) record.Batch {
			c.Campaign = id
			return record.Batch{Campaign: id, Epoch: 1, CampaignUID: "0123456789abcdef.1", Coupons: []firstcome.Coupon{c}}
		}
		for what, b := range map[string]record.Batch{
			"a new coupon": foreign("c", stage.Coupon("c", 2)), "one like a known one": foreign("c", stage.Coupon("c", 1)), "of no campaign": foreign("unknown", stage.Coupon("c", 2)),
		} {
			if _, err := l.Recorder.Record(t.Context(), b); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to record it got %v", what, err)
			}
			if _, err := l.Recorder.Bury(t.Context(), b, "a trial"); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to bury it got %v", what, err)
			}
		}
		stage.Same(t, "the books", before, books(t, l))
		stage.Same(t, "dead letters", 0, len(letters(t, l, ledger.Letters{})))
	})
}

// openings are the ways in which a ledger is opened, and what doctor does.
func openings(t *testing.T, name string) map[string]error {
	t.Helper()
	l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret()})
	shared, err2 := ledger.OpenShared(t.Context(), name)
	for _, opened := range []*ledger.Ledger{l, shared} {
		if opened != nil {
			t.Cleanup(func() { _ = opened.Close() })
		}
	}
	errs := map[string]error{"to decide": err, "beside": err2}
	if sqldb.OnServer(name) {
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
		execute(t, services.Beside(t, migrated(t, name)), `DROP TABLE identity`)
		for how, err := range openings(t, name) {
			if err == nil || !strings.Contains(err.Error(), "lacks the table identity") || !strings.Contains(err.Error(), "restore all of its tables") {
				t.Errorf("opened %s it got %v", how, err)
			}
		}
	})
}

func TestANameThatAnOperatorGivesALedgerFitsWhereItIsUsed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		migrated(t, name)
		for _, bad := range []string{"", "staging 2026", "staging.2026", "스테이징", "a\nb"} {
			execute(t, services.Beside(t, name), `UPDATE identity SET ledger = '`+bad+`'`)
			for how, err := range openings(t, name) {
				if how != "doctor" && (err == nil || !strings.Contains(err.Error(), "UPDATE identity SET ledger = ")) {
					t.Errorf("called %q and opened %s it got %v", bad, how, err)
				}
			}
		}
		execute(t, services.Beside(t, name), `UPDATE identity SET ledger = 'staging-2026-11'`)
		stage.Same(t, "its name", "staging-2026-11", identityAt(t, name))
	})
}
