//go:build !check

package main

import (
	"errors"
	"testing"

	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP10AnAuditDuringAReconcileFindsNoWrongRank audits after each step of a reconcile. The restored ledger has forgotten an epoch, so that the gate's terms
// skip numbers that the ledger has not yet noted as lost.
func TestP10AnAuditDuringAReconcileFindsNoWrongRank(t *testing.T) {
	for _, step := range []string{"record", "switch"} {
		d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(1, 1))
		d.kept("a")
		b := d.backup()
		d.kept("b")
		d.empties()
		d.issue("c", "e")
		d = b.restore()
		cut := &cutOff{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, step}
		if _, err := recovery.New(cut, cut, cut, recovery.NewWatch(nil), nil).Reconcile(t.Context(), "op", "c"); !errors.Is(err, errCutOff) {
			t.Fatalf("it ends with %v", err)
		}
		found, err := audit.Ledger(t.Context(), d.ledger.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		for _, b := range found.Breaches.Shown {
			t.Errorf("before %s the audit finds %s %s: %s", step, b.Promise, b.Query, b.Text)
		}
	}
}
