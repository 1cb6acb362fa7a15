package firstcome

import "time"

// A Change is a numbered change of a campaign, on its way from the ledger to a
// gate, which applies change v after v-1, once.
type Change struct {
	Campaign CampaignID
	Version  int64 // from 1, which makes the campaign
	Kind     ChangeKind
	At       time.Time // when the ledger took it, by the ledger's clock
	// Marker is the campaign's, and never changes: by it a gate tells the campaign from one
	// that another ledger has under the same id. Empty: not said.
	Marker string

	// Ceiling is the highest number that the gate may give from then on. 0: not said.
	Ceiling int64

	Terms  Terms  // of ChangeTerms and ChangeReconcile: the whole terms as they shall be
	Epoch  int64  // of ChangeTerms with version 1: the gate's first epoch
	Number int64  // of ChangeVoid
	User   UserID // of ChangeVoid: who held the number

	Paused, Closed bool      // of ChangeReconcile: what the gate was
	ClosedAt       time.Time // of ChangeReconcile: since when, by the gate
}

// A ChangeKind says what a change does.
type ChangeKind string

// The kinds of changes.
const (
	ChangeTerms  ChangeKind = "terms"
	ChangePause  ChangeKind = "pause"
	ChangeResume ChangeKind = "resume"
	ChangeClose  ChangeKind = "close"
	ChangeVoid   ChangeKind = "void"
	// ChangeRebuild is the ledger's note that the gate was made anew from what the ledger has. No gate applies it: it has it.
	ChangeRebuild ChangeKind = "rebuild"
	// ChangeReconcile is a ledger's note that it was restored from a backup, and took its terms from the gate. The versions between it and
	// the one before it are those that the ledger has forgotten. No gate applies it.
	ChangeReconcile ChangeKind = "reconcile"
)
