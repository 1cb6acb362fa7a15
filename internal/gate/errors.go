package gate

import (
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
)

// ErrUnverified means that a gate decides nothing, because its server restarted, was replaced by a replica, or is being rebuilt, or because it knows
// less than it told a node: see Witness. It may have an earlier state. Recovery verifies or rebuilds it.
var ErrUnverified = errors.New("the gate's server is not the one that decided last, or it has forgotten what it told, or it is being rebuilt, so it decides nothing")

// NeedsRebuild reports whether an error of a gate means that the campaign must be verified or rebuilt.
func NeedsRebuild(err error) bool {
	return errors.Is(err, ErrUnverified) || errors.Is(err, ErrGone) && !errors.Is(err, firstcome.ErrGateMismatch)
}

// ErrLedgerRolledBack means that the ledger is older than a campaign's gate: see LedgerRolledBackError.
var ErrLedgerRolledBack = errors.New("the ledger is older than the gate")

// A LedgerRolledBackError is the ErrLedgerRolledBack of a campaign. The ledger numbers each change, each epoch and each drained number before it
// tells the gate. So a gate that is ahead proves that the ledger was restored from a backup, or failed over to a replica that lagged. Only the gate
// has the data in between. Until an operator orders a reconcile, nothing of the campaign is decided, changed, recorded or rebuilt.
type LedgerRolledBackError struct {
	Campaign firstcome.CampaignID
	Found    string // how it was noticed; empty if a reconcile has begun and not ended
}

func (e *LedgerRolledBackError) Error() string {
	found := e.Found
	if found == "" {
		found = "a reconcile has begun and not ended"
	}
	return fmt.Sprintf("%v of %s (%s), as after a restored backup, so nothing of it is decided or changed. To copy the gate's data into the ledger, type: firstcome gate reconcile %s",
		ErrLedgerRolledBack, e.Campaign, found, e.Campaign)
}

// Is makes errors.Is report ErrLedgerRolledBack, and also firstcome.ErrGateUnavailable and firstcome.ErrBusy, because nothing was done.
func (e *LedgerRolledBackError) Is(target error) bool {
	return target == ErrLedgerRolledBack || target == firstcome.ErrGateUnavailable || target == firstcome.ErrBusy
}

// ErrStaleEpoch means that a campaign's gate is older than the ledger: see StaleEpochError.
var ErrStaleEpoch = errors.New("the gate is older than the ledger")

// A StaleEpochError is the ErrStaleEpoch of a campaign: the gate's epoch has ended. The ledger ends an epoch only while the gate that it rebuilds is
// frozen. So this is a different server, for example a former primary that an address leads to again after a replica was promoted and rebuilt. All
// numbers that it issues are lost. It decides, serves and changes nothing of the campaign.
//
// Nodes do not rebuild it by themselves while any node reaches another server: the two sides of a network partition would keep ending each other's
// epochs. An operator decides which server is the gate. With recovery.Machine.Auto no operator is needed once all nodes reach this one.
type StaleEpochError struct {
	Campaign     firstcome.CampaignID
	Gate, Ledger int64 // epochs
}

func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("%v of %s (it is in epoch %d, the ledger in %d), as where an address leads back to a Redis that another one has replaced, so nothing of it is decided or changed here. Make sure that all nodes reach the same Redis; if it should be this one, type: firstcome gate rebuild %s",
		ErrStaleEpoch, e.Campaign, e.Gate, e.Ledger, e.Campaign)
}

// Is makes errors.Is report ErrStaleEpoch, and also firstcome.ErrGateUnavailable and firstcome.ErrBusy, because nothing was done that counts.
func (e *StaleEpochError) Is(target error) bool {
	return target == ErrStaleEpoch || target == firstcome.ErrGateUnavailable || target == firstcome.ErrBusy
}

// ErrUnnamed means that nothing was done, because this node's gate has no name under which a campaign could be
// stored: it had none when the node started, or has lost it since.
var ErrUnnamed = errors.New("this node's Redis has no name as a gate, because it was emptied or is another one, so nothing was made. Bring its data back. Or, if it should decide, type firstcome gate rebuild --all, or start the nodes once with --new-gate")
