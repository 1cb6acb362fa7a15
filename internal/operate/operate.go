// Package operate makes the changes that operators order. API and console call it, and only it calls the ledger's changing methods (test/docs checks
// every call).
//
// A change takes four steps, all of them in Operator.change:
//
//	end the leases → the ledger numbers the change   → the gate applies it → grant leases again
//	(issue.Issuer)    (after an unfinished earlier one)  (gate.Changer)
//
// If the ledger decides, the third step is part of the second.
package operate

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Campaigns is the part of a ledger that changes campaigns for an Operator. ledger.Campaigns implements it.
type Campaigns interface {
	Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) error
	SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (made int64, err error)
	ChangeState(ctx context.Context, actor string, id firstcome.CampaignID, from int64, to firstcome.ChangeKind) (version int64, err error)
	Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error)
	MayIssue(ctx context.Context, id firstcome.CampaignID) error
}

// Letters is the part of a ledger that resolves dead letters for an Operator. ledger.Recorder implements it.
type Letters interface {
	Replay(ctx context.Context, actor string, letter int64) error
	VoidLetter(ctx context.Context, actor string, letter int64, reason string) error
}

// A Ledger is the part of a ledger that an Operator needs.
type Ledger struct {
	Campaigns
	Letters
	Reads
}

// Reads is the part of a ledger that an Operator reads. ledger.Reads implements it.
type Reads interface {
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	DeadLetter(ctx context.Context, letter int64) (ledger.DeadLetter, error)
	LettersToResolve(ctx context.Context, of ledger.Letters) (some []ledger.DeadLetter, all int64, err error)
}

// An Issuer makes a change while the node forgets cached answers. issue.Issuer implements it.
type Issuer interface {
	Change(id firstcome.CampaignID, change func() error) error
}

// A Recovery rebuilds a campaign's gate, and reports whether the ledger is older than the gate. recovery.Machine implements it.
type Recovery interface {
	Newest(ctx context.Context, id firstcome.CampaignID) error
	Created(ctx context.Context, id firstcome.CampaignID) (bool, error)
	Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, order recovery.Order) (recovery.Rebuilt, error)
	Reconcile(ctx context.Context, actor string, id firstcome.CampaignID) (recovery.Reconciled, error)
	Estimate(ctx context.Context, id firstcome.CampaignID) (recovery.Estimate, error)
}

// Claims issues coupons directly. issue.Answerer implements it.
type Claims interface {
	Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
}

// An Operator carries out operators' orders. Each method takes the actor's name, for the audit log.
//
// The errors are those of the ledger's method. If a remote gate decides, there are two more. gate.ErrUnfinished means that the change is in the
// ledger and will reach the gate. firstcome.ErrPending means that an earlier change must reach the gate first, so nothing was changed.
type Operator struct {
	ledger  Ledger
	issuer  Issuer
	claims  Claims
	changer *gate.Changer // nil if the ledger decides
	gate    gate.Counters
	rebuild Recovery

	// Logs, if not nil, gives a log to the line of each campaign that gets a pace.
	Logs Logs
}

// New returns the Operator of a node whose ledger decides.
func New(l Ledger, i Issuer, c Claims) *Operator { return &Operator{ledger: l, issuer: i, claims: c} }

// NewRemote returns the Operator of a node whose remote gate decides.
func NewRemote(l Ledger, i Issuer, c Claims, to *gate.Changer, g gate.Counters, r Recovery) *Operator {
	return &Operator{ledger: l, issuer: i, claims: c, changer: to, gate: g, rebuild: r}
}

// change changes a campaign. number makes the change in the ledger: see gate.Changer.Do. Every change goes through here.
func (o *Operator) change(ctx context.Context, id firstcome.CampaignID, number func() (version int64, err error)) error {
	return o.issuer.Change(id, func() error {
		if o.changer == nil {
			_, err := number()
			return err
		}
		if err := o.newest(ctx, id); err != nil {
			return err
		}
		return o.changer.Do(ctx, id, number)
	})
}

// changed changes a campaign, and returns its new state.
func (o *Operator) changed(ctx context.Context, id firstcome.CampaignID, number func() (version int64, err error)) (ledger.Status, error) {
	if err := o.change(ctx, id, number); err != nil {
		return ledger.Status{}, err
	}
	return o.ledger.Campaign(ctx, id)
}

// Logs has the logs of lines. kafka.LineLog implements it.
type Logs interface {
	// LogLocation returns where the log of a campaign's line will be.
	LogLocation(ctx context.Context, id firstcome.CampaignID) (firstcome.LineLog, error)
}

// Create creates a campaign. If it has a pace and this node has logs of lines, its line gets a log, whatever terms.Log is. gate.ErrLedgerForgot means
// that the ledger created another campaign under this id before, and has forgotten it.
func (o *Operator) Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) (s ledger.Status, err error) {
	if terms.Log, err = o.logOf(ctx, id, firstcome.Terms{}, terms); err != nil {
		return s, err
	}
	return o.create(ctx, actor, id, terms)
}

// logOf returns where the line of a campaign will be logged that gets a pace. It returns nil if the line gets no log, or keeps the log that it has.
func (o *Operator) logOf(ctx context.Context, id firstcome.CampaignID, before, after firstcome.Terms) (*firstcome.LineLog, error) {
	if o.Logs == nil || o.changer == nil || before.Pace != nil || before.Log != nil || after.Pace == nil {
		return nil, nil
	}
	if err := after.Check(); err != nil {
		return nil, err
	}
	log, err := o.Logs.LogLocation(ctx, id)
	return &log, err
}

func (o *Operator) create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) (ledger.Status, error) {
	return o.changed(ctx, id, func() (int64, error) {
		if err := o.forgotten(ctx, id); err != nil {
			return 0, err
		}
		return 1, o.ledger.Create(ctx, actor, id, terms)
	})
}

// forgotten returns gate.ErrLedgerForgot if the gate once had a campaign that the ledger does not have, and gate.ErrUnnamed if the gate has lost its name,
// so that the creation could never reach it. It asks the ledger after the gate, because another node may just be creating the campaign. If the gate
// does not answer, the creation itself will return its error.
func (o *Operator) forgotten(ctx context.Context, id firstcome.CampaignID) error {
	if o.rebuild == nil {
		return nil
	}
	switch made, err := o.rebuild.Created(ctx, id); {
	case errors.Is(err, gate.ErrUnnamed):
		return err
	case err != nil || !made:
		return nil
	}
	_, err := o.ledger.Campaign(ctx, id)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return gate.ErrLedgerForgot
	}
	return err
}

// SetTerms changes a campaign's terms by edit, which may be called more than once. If version is not 0, the campaign must have that version. If the
// change gives the campaign a pace and this node has logs of lines, the line gets a log.
func (o *Operator) SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (s ledger.Status, err error) {
	var log *firstcome.LineLog
	if o.Logs != nil {
		if s, err = o.ledger.Campaign(ctx, id); err != nil {
			return s, err
		}
		after := s.Terms
		edit(&after)
		if log, err = o.logOf(ctx, id, s.Terms, after); err != nil {
			return s, err
		}
	}
	return o.changed(ctx, id, func() (int64, error) {
		return o.ledger.SetTerms(ctx, actor, id, version, func(t *firstcome.Terms) {
			if edit(t); t.Pace != nil && t.Log == nil {
				t.Log = log
			}
		})
	})
}

// ChangeState pauses, resumes or closes a campaign. If version is not 0, the campaign must have that version.
func (o *Operator) ChangeState(ctx context.Context, actor string, id firstcome.CampaignID, version int64, to firstcome.ChangeKind) (ledger.Status, error) {
	return o.changed(ctx, id, func() (int64, error) { return o.ledger.ChangeState(ctx, actor, id, version, to) })
}

// ErrNoRemoteGate means that the ledger decides, so there is no gate to rebuild.
var ErrNoRemoteGate = errors.New("the ledger decides the claims of this node's campaigns, so there is no gate to rebuild")

// Rebuild rebuilds a campaign's gate from the ledger: see recovery.Machine.
func (o *Operator) Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, order recovery.Order) (done recovery.Rebuilt, err error) {
	if o.rebuild == nil {
		return done, ErrNoRemoteGate
	}
	err = o.issuer.Change(id, func() error {
		done, err = o.rebuild.Rebuild(ctx, actor, id, order)
		return err
	})
	return done, err
}

// Reconcile copies into a ledger that was restored from a backup what only a campaign's gate has: see recovery.Machine.
func (o *Operator) Reconcile(ctx context.Context, actor string, id firstcome.CampaignID) (done recovery.Reconciled, err error) {
	if o.rebuild == nil {
		return done, ErrNoRemoteGate
	}
	err = o.issuer.Change(id, func() error {
		done, err = o.rebuild.Reconcile(ctx, actor, id)
		return err
	})
	return done, err
}

// Estimate returns the expected result of a reconcile, and changes nothing: see recovery.Machine.
func (o *Operator) Estimate(ctx context.Context, id firstcome.CampaignID) (recovery.Estimate, error) {
	if o.rebuild == nil {
		return recovery.Estimate{}, ErrNoRemoteGate
	}
	return o.rebuild.Estimate(ctx, id)
}

// Issue asks for a coupon for each of users, in order and without another claim in between, bypassing the waiting line: see issue.Answerer. It is a
// claim and not a change, so it ends no lease. firstcome.ErrCodesMissing means that the campaign lacks imported codes.
func (o *Operator) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if err := o.ledger.MayIssue(ctx, id); err != nil { // a pause does not stop it
		return nil, err
	}
	return o.claims.Issue(ctx, order, id, users)
}

// Void voids a coupon. firstcome.ErrNotRecorded means that the number is issued and not in the ledger yet.
func (o *Operator) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (voided firstcome.Coupon, err error) {
	err = o.change(ctx, id, func() (_ int64, err error) {
		voided, err = o.ledger.Void(ctx, actor, id, number, reason)
		return 0, err
	})
	if errors.Is(err, firstcome.ErrNotRecorded) {
		err = o.notRecorded(ctx, id, number)
	}
	return voided, err
}

// notRecorded returns the error of a number that the ledger does not have: the number is on its way, or was never issued.
func (o *Operator) notRecorded(ctx context.Context, id firstcome.CampaignID, number int64) error {
	g, err := o.gate.State(ctx, id)
	switch {
	case err != nil:
		return err
	case number > g.LastNumber:
		return firstcome.ErrNoCoupon
	}
	return firstcome.ErrNotRecorded
}

// newest returns the error of a change if the campaign's ledger is older than its gate, or nil.
func (o *Operator) newest(ctx context.Context, id firstcome.CampaignID) error {
	if o.rebuild == nil {
		return nil
	}
	return o.rebuild.Newest(ctx, id)
}
