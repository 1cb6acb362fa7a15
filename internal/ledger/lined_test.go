package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// lined expects those campaigns that may have people in line at another gate.
func lined(t testing.TB, l *ledger.Ledger, want ...firstcome.CampaignID) {
	t.Helper()
	got, err := l.Lined(t.Context())
	stage.Must(t, err)
	var ids []firstcome.CampaignID
	for _, r := range got {
		ids = append(ids, r.Campaign)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("they may have people in line (-want +got):\n%s", diff)
	}
}

func TestThoseThatMayHaveALineAtAnotherGateHaveAPaceOrHadOne(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		lined(t, l)
		for _, id := range []firstcome.CampaignID{"paced", "retired", "another-gates"} {
			stage.Must(t, l.Create(t.Context(), "test", id, withPace(5, 1)))
		}
		create(t, l, "plain", 5)
		create(t, l, "drains", 5)
		tell := func(waiting int64) {
			line := firstcome.Line{Generation: 1, LastTicket: 3, ServedThrough: 3 - waiting, Served: 3 - waiting, Waiting: waiting}
			stage.Must(t, stage.Err(l.Record(t.Context(), flow.Batch{Campaign: "drains", Epoch: 1, Line: flow.LineReport{Line: line}})))
		}
		tell(2)
		db := services.Beside(t, name)
		execute(t, db, `UPDATE campaigns SET retired_at = 1 WHERE id = 'retired'`)
		execute(t, db, `UPDATE campaigns SET gate = 'redis:other' WHERE id = 'another-gates'`)
		lined(t, l, "drains", "paced")
		tell(0)
		lined(t, l, "paced")
	})
}

// TestADirectIssueAtAnotherGateIsInTheAuditLogIfItPassesPeople issues past two people, and where nobody waits.
func TestADirectIssueAtAnotherGateIsInTheAuditLogIfItPassesPeople(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, gate := remoteAt(t, name), stage.NewGate(0)
		over := &flow.Over{RemoteGate: gate, Book: l}
		for _, id := range []firstcome.CampaignID{"c", "empty"} {
			stage.Must(t, l.Create(t.Context(), "test", id, withPace(5, 1)))
			stage.Must(t, stage.Err(gate.Apply(t.Context(), firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Terms: withPace(5, 1), Epoch: 1})))
		}
		stage.Must(t, stage.Err(over.Claim(t.Context(), "c", users("a", "b"))))
		for _, id := range []firstcome.CampaignID{"c", "c", "empty"} { // the second time x has it already
			stage.Must(t, stage.Err(over.Issue(t.Context(), "somebody", id, users("x"))))
		}
		db := services.Beside(t, name)
		var lines int
		var actor, campaign, detail string
		stage.Must(t, db.QueryRow(`SELECT count(*), min(actor), min(campaign_id), min(detail) FROM audit_log WHERE action = 'coupon.issue'`).Scan(&lines, &actor, &campaign, &detail))
		if lines != 1 || actor != "somebody" || campaign != "c" {
			t.Errorf("the log has %d lines, of %s about %s", lines, actor, campaign)
		}
		stage.Same(t, "the log's detail", `{"issued":1,"last_number":1,"waiting":2}`, detail)
	})
}
