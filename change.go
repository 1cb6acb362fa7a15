package firstcome

import "time"

// A Change is a numbered change of a campaign, on its way from the ledger to a gate. The gate applies change v after v-1, and once.
type Change struct {
	Campaign CampaignID
	Version  int64 // from 1, which creates the campaign
	Kind     ChangeKind
	At       time.Time // when the ledger numbered it, by the ledger's clock
	// CampaignUID is the campaign's UID, and never changes. By it a gate distinguishes the campaign from another ledger's campaign with the same id. It is
	// empty if unknown.
	CampaignUID string

	// Ceiling is the highest number that the gate may issue from then on, or 0 if it does not change.
	Ceiling int64

	Terms Terms // only of ChangeTerms and ChangeReconcile: all new terms
	// Payload is the text of Terms as the ledger has it or, of a ChangeResume, of the lists of imported codes. The gate keeps it, and does not read it:
	// see recovery.GateState.
	Payload string
	// Before is set if the change moves prizes: the gate refuses the change if it has given this number or a later one.
	Before int64
	Epoch  int64 // only of ChangeTerms with version 1: the gate's first epoch
	Number int64 // of ChangeVoid
	// Burns is set in a ChangeVoid if the coupon's stock does not come back: the gate lowers its quantity by one.
	Burns bool
	User  UserID // only of ChangeVoid: the user who held the number

	Paused, Closed bool      // only of ChangeReconcile, and Paused of the creation: the gate's state
	ClosedAt       time.Time // only of ChangeReconcile: when it was closed, by the gate
}

// A ChangeKind is what a change does.
type ChangeKind string

// The kinds of changes.
const (
	ChangeTerms  ChangeKind = "terms"
	ChangePause  ChangeKind = "pause"
	ChangeResume ChangeKind = "resume"
	ChangeClose  ChangeKind = "close"
	ChangeVoid   ChangeKind = "void"
	// ChangeRebuild is the ledger's note that the gate was rebuilt from the ledger. No gate applies it, because the rebuilt gate already has it.
	ChangeRebuild ChangeKind = "rebuild"
	// ChangeReconcile is the note of a ledger that was restored from a backup, and took its terms from the gate. The ledger has forgotten the
	// versions between the change before and this one. No gate applies it.
	ChangeReconcile ChangeKind = "reconcile"
)
