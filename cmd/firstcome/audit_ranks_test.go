//go:build !check

package main

import (
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP10AnAuditDuringAReconcileFindsNoWrongRank audits after each step of a reconcile. The restored ledger has forgotten an epoch, so that the gate's terms
// skip numbers that the ledger has not yet noted as lost.
func TestP10AnAuditDuringAReconcileFindsNoWrongRank(t *testing.T) {
	for _, step := range []string{"record", "switch"} {
		d := cutOffReconcile(t, step)
		found, err := audit.Ledger(t.Context(), d.ledger.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		for _, b := range found.Breaches.Shown {
			t.Errorf("before %s the audit finds %s %s: %s", step, b.Promise, b.Query, b.Text)
		}
	}
}

// TestP10TheAuditFindsOtherTermsAtTheGate puts the terms of before a rebuild back into Redis, which lack the numbers that it skipped. A reconcile would take
// them into a restored ledger.
func TestP10TheAuditFindsOtherTermsAtTheGate(t *testing.T) {
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(1, 1))
	d.kept("a")
	kept := d.do("HGET", d.key("campaign"), "terms")
	before, err := kept.ToString()
	stage.Must(t, err)
	d.empties()
	d.sound()
	d.do("HSET", d.key("campaign"), "terms", before)
	campaign := d.status()
	compared, err := compareWithGate(t.Context(), d.ledger.Tables().Source(), inspected(t, d.options(d.url)), nil, &campaign, nil)
	stage.Must(t, err)
	if b := compared.Breaches; b.Count["gate"] != 1 || !strings.Contains(b.Shown[0].Text, "the gate keeps other terms than the ledger") {
		t.Errorf("the audit finds %+v", b)
	}
}
