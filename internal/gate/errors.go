package gate

import (
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
)

// ErrUnverified says that a gate decides nothing, because its server restarted, was replaced by a copy, or is being rebuilt. What
// it has may be an older state. A rebuild makes it whole.
var ErrUnverified = errors.New("the gate's server is not the one that decided last, or the gate is being rebuilt, so it decides nothing")

// NeedsRebuild tells whether an error of a gate says that a rebuild makes the campaign whole.
func NeedsRebuild(err error) bool {
	return errors.Is(err, ErrUnverified) || errors.Is(err, ErrLost) && !errors.Is(err, firstcome.ErrGateMismatch)
}

// ErrLedgerRolledBack says that the ledger is older than a campaign's gate: see LedgerRolledBackError.
var ErrLedgerRolledBack = errors.New("the ledger is older than the gate")

// A LedgerRolledBackError is the ErrLedgerRolledBack of a campaign. The ledger numbers each change, each epoch and each drained number before the gate hears of
// it. So a gate that is ahead proves that the ledger was restored from a backup, or failed over to a replica that lagged. What lies between is
// at the gate alone. Until an operator has it brought back, nothing of the campaign is decided, changed, recorded or rebuilt.
type LedgerRolledBackError struct {
	Campaign firstcome.CampaignID
	Found    string // by what it was noticed; empty: a reconcile was begun and has not ended
}

func (e *LedgerRolledBackError) Error() string {
	found := e.Found
	if found == "" {
		found = "a reconcile was begun and has not ended"
	}
	return fmt.Sprintf("%v of %s (%s), as after a restored backup, so nothing of it is decided or changed. To bring back what the gate has, type: firstcome gate reconcile %s",
		ErrLedgerRolledBack, e.Campaign, found, e.Campaign)
}

// Is reports that it is ErrLedgerRolledBack, and firstcome.ErrGateUnavailable, because nothing was done.
func (e *LedgerRolledBackError) Is(target error) bool {
	return target == ErrLedgerRolledBack || target == firstcome.ErrGateUnavailable || target == firstcome.ErrBusy
}

// ErrStaleEpoch says that a campaign's gate is older than the ledger: see StaleEpochError.
var ErrStaleEpoch = errors.New("the gate is older than the ledger")

// A StaleEpochError is the ErrStaleEpoch of a campaign: the gate decides in an epoch that has ended. The ledger ends an epoch only while the gate
// that it rebuilds is frozen. So this is another gate, such as a primary in whose place a replica was promoted and rebuilt, and an address
// leads back to it. All numbers that it gives are lost. Nothing of the campaign is decided, served or changed at it, and nobody rebuilds it
// without being asked while a node reaches another server: two halves of a partition would end each other's epochs repeatedly. An operator says
// which gate decides; with recovery.Machine.Auto, nodes that all reach this one need no operator.
type StaleEpochError struct {
	Campaign     firstcome.CampaignID
	Gate, Ledger int64 // epochs
}

func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("%v of %s (it is in epoch %d, the ledger in %d), as where an address leads back to a Redis in whose place another one came, so nothing of it is decided or changed here. See that all nodes reach the same Redis; if it is to be this one, type: firstcome gate rebuild %s",
		ErrStaleEpoch, e.Campaign, e.Gate, e.Ledger, e.Campaign)
}

// Is reports that it is ErrStaleEpoch, and firstcome.ErrGateUnavailable, because nothing was done that counts.
func (e *StaleEpochError) Is(target error) bool {
	return target == ErrStaleEpoch || target == firstcome.ErrGateUnavailable || target == firstcome.ErrBusy
}
