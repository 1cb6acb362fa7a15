package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// lined expects those campaigns that may have people in line at another gate.
func lined(t testing.TB, l *ledger.Ledger, want ...firstcome.CampaignID) {
	t.Helper()
	got, err := l.Recorder.Lined(t.Context())
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
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", id, withPace(5, 1)))
		}
		create(t, l, "plain", 5)
		create(t, l, "drains", 5)
		tell := func(waiting int64) {
			line := firstcome.Line{Generation: 1, LastTicket: 3, ServedThrough: 3 - waiting, Served: 3 - waiting, Waiting: waiting}
			stage.Must(t, stage.Err(l.Recorder.Record(t.Context(), record.Batch{Campaign: "drains", Epoch: 1, Line: gate.LineReport{Line: line}})))
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

// TestEachDirectIssueAtAnotherGateIsInTheAuditLog issues past two people, and where nobody waits.
func TestEachDirectIssueAtAnotherGateIsInTheAuditLog(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, g := remoteAt(t, name), stage.NewGate(0)
		over := &gate.Router{Gate: g, Retired: l.Gate, Ledger: l.Recorder}
		for _, id := range []firstcome.CampaignID{"c", "empty"} {
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", id, withPace(5, 1)))
			stage.Must(t, stage.Err(g.Apply(t.Context(), firstcome.Change{Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Terms: withPace(5, 1), Epoch: 1})))
		}
		stage.Must(t, stage.Err(over.Claim(t.Context(), "c", users("a", "b"))))
		for _, id := range []firstcome.CampaignID{"c", "c", "empty"} { // the second time x has it already
			stage.Must(t, stage.Err(over.Issue(t.Context(), gate.Order{Actor: "somebody", Reason: "sorry"}, id, users("x"))))
		}
		stage.Must(t, stage.Err(over.Issue(t.Context(), gate.Order{Actor: "many"}, "empty", users("y", "z"))))
		logged(t, l, "c", `somebody x 1 {"issued":1,"last_number":1,"reason":"sorry","waiting":2}`)
		logged(t, l, "empty", `many  0 {"issued":2,"last_number":3,"waiting":0}`, `somebody x 1 {"issued":1,"last_number":1,"reason":"sorry","waiting":0}`)
	})
}

// TestEachDirectIssueIsInTheAuditLog issues where nobody waits and the ledger decides.
func TestEachDirectIssueIsInTheAuditLog(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		create(t, l, "c", 5)
		for range 2 { // the second time x has it already
			stage.Must(t, stage.Err(l.Gate.Issue(t.Context(), gate.Order{Actor: "somebody", Reason: "sorry"}, "c", users("x"))))
		}
		logged(t, l, "c", `somebody x 1 {"issued":1,"last_number":1,"reason":"sorry","waiting":0}`)
	})
}

// logged wants these lines about direct issues of a campaign in the audit log, the latest first.
func logged(t *testing.T, l *ledger.Ledger, id firstcome.CampaignID, want ...string) {
	t.Helper()
	entries, err := l.Reads.AuditLog(t.Context(), ledger.LogFilter{Campaign: id, Limit: 9})
	stage.Must(t, err)
	var got []string
	for _, e := range entries {
		if e.Action == "coupon.issue" {
			got = append(got, fmt.Sprintf("%s %s %d %s", e.Actor, e.User, e.Number, e.Detail))
		}
	}
	stage.Same(t, "the direct issues in the audit log", want, got)
}
