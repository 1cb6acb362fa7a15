// Package operate is the one door for what operators do to campaigns: API and console call it, and nothing else calls the
// ledger's changing methods (test/docs holds every call against that).
//
// A change takes four steps, all of them in Operator.change:
//
//	end the leases → the ledger numbers the change → the gate applies it → grant leases again
//	(flow.Issuer)    (an earlier one first)          (flow.Changer)
//
// Where the ledger decides, the third step is part of the second.
package operate

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Campaigns is the part of a ledger that changes campaigns for an Operator: see ledger.Ledger.
type Campaigns interface {
	Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) error
	SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (made int64, err error)
	Switch(ctx context.Context, actor string, id firstcome.CampaignID, from int64, to ledger.Switch) (version int64, err error)
	Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error)
}

// Letters is the part of a ledger that resolves dead letters for an Operator: see ledger.Ledger.
type Letters interface {
	DeadLetter(ctx context.Context, letter int64) (ledger.DeadLetter, error)
	LettersToResolve(ctx context.Context, of ledger.Letters) (some []ledger.DeadLetter, all int64, err error)
	Replay(ctx context.Context, actor string, letter int64) error
	VoidLetter(ctx context.Context, actor string, letter int64, reason string) error
}

// A Ledger is what an Operator needs of one.
type Ledger interface {
	Campaigns
	Letters
	// Campaign returns a campaign as the ledger has it.
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
}

// An Issuer is what an Operator needs of one: see flow.Issuer.
type Issuer interface {
	Change(id firstcome.CampaignID, change func() error) error
}

// A Recovery rebuilds a campaign's gate, and says where the ledger is older than its gate: see recovery.Machine.
type Recovery interface {
	Newest(ctx context.Context, id firstcome.CampaignID) error
	Created(ctx context.Context, id firstcome.CampaignID) (bool, error)
	Rebuild(ctx context.Context, actor string, id firstcome.CampaignID, order recovery.Order) (recovery.Rebuilt, error)
	Reconcile(ctx context.Context, actor string, id firstcome.CampaignID) (recovery.Reconciled, error)
	Estimate(ctx context.Context, id firstcome.CampaignID) (recovery.Estimate, error)
}

// Claims answer direct issues: see flow.Answerer.
type Claims interface {
	Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)
}

// An Operator does what operators ask for. Each method takes the actor's name, for the audit log.
//
// The errors are those of the ledger's method. If a remote gate decides, flow.ErrUnfinished also says that the change is in the ledger
// and will reach the gate, and firstcome.ErrPending that an earlier one has to reach it first, so that nothing was changed.
type Operator struct {
	ledger  Ledger
	issuer  Issuer
	claims  Claims
	changer *flow.Changer // nil: the ledger decides
	gate    gate.Counters
	rebuild Recovery

	// Logs, if not nil, have the lines of campaigns logged that get a pace.
	Logs Logs
}

// New returns the Operator of a node where the ledger decides.
func New(l Ledger, i Issuer, c Claims) *Operator { return &Operator{ledger: l, issuer: i, claims: c} }

// NewRemote returns the Operator of a node where a remote gate decides.
func NewRemote(l Ledger, i Issuer, c Claims, to *flow.Changer, g gate.Counters, r Recovery) *Operator {
	return &Operator{ledger: l, issuer: i, claims: c, changer: to, gate: g, rebuild: r}
}

// change changes a campaign; number makes the change in the ledger: see flow.Changer.Do. There is no other way.
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

// changed changes a campaign and returns it.
func (o *Operator) changed(ctx context.Context, id firstcome.CampaignID, number func() (version int64, err error)) (ledger.Status, error) {
	if err := o.change(ctx, id, number); err != nil {
		return ledger.Status{}, err
	}
	return o.ledger.Campaign(ctx, id)
}

// Logs are the logs of lines: see kafka.LineLog.
type Logs interface {
	// Place returns where a line is logged that has no log yet.
	Place(ctx context.Context, id firstcome.CampaignID) (firstcome.LineLog, error)
}

// Create makes a campaign. The line of one with a pace is logged, if this node knows a log, whatever the terms say of it.
// gate.ErrForgotten says that the ledger made another campaign under this id, and has forgotten it.
func (o *Operator) Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) (s ledger.Status, err error) {
	if terms.Log, err = o.logOf(ctx, id, firstcome.Terms{}, terms); err != nil {
		return s, err
	}
	return o.create(ctx, actor, id, terms)
}

// logOf returns where the line of a campaign is logged that gets a pace; nil: nowhere, or where it was before.
func (o *Operator) logOf(ctx context.Context, id firstcome.CampaignID, before, after firstcome.Terms) (*firstcome.LineLog, error) {
	if o.Logs == nil || o.changer == nil || before.Pace != nil || before.Log != nil || after.Pace == nil {
		return nil, nil
	}
	if err := after.Check(); err != nil {
		return nil, err
	}
	log, err := o.Logs.Place(ctx, id)
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

// forgotten returns gate.ErrForgotten if the gate had a campaign that the ledger does not know. The ledger is asked after the gate, because
// another node may be making the campaign. A gate that does not answer says so itself, once the campaign is to be made there.
func (o *Operator) forgotten(ctx context.Context, id firstcome.CampaignID) error {
	if o.rebuild == nil {
		return nil
	}
	if made, err := o.rebuild.Created(ctx, id); err != nil || !made {
		return nil
	}
	_, err := o.ledger.Campaign(ctx, id)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return gate.ErrForgotten
	}
	return err
}

// SetTerms changes a campaign's terms by edit, which may run more than once. If version is not 0, the campaign has to have it. The line of a
// campaign that gets a pace by that is logged from then on, if this node knows a log.
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

// Switch pauses, resumes or closes a campaign. If version is not 0, the campaign has to have it.
func (o *Operator) Switch(ctx context.Context, actor string, id firstcome.CampaignID, version int64, to ledger.Switch) (ledger.Status, error) {
	return o.changed(ctx, id, func() (int64, error) { return o.ledger.Switch(ctx, actor, id, version, to) })
}

// ErrNoRemoteGate says that the ledger decides, so there is no gate to rebuild.
var ErrNoRemoteGate = errors.New("the ledger decides the claims of this node's campaigns, so there is no gate to rebuild")

// Rebuild makes a campaign's gate anew from what the ledger has: see recovery.Machine.
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

// Reconcile brings back what a campaign's gate has and a ledger that was restored from a backup has forgotten: see recovery.Machine.
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

// Estimate says what a reconcile would come to, and changes nothing: see recovery.Machine.
func (o *Operator) Estimate(ctx context.Context, id firstcome.CampaignID) (recovery.Estimate, error) {
	if o.rebuild == nil {
		return recovery.Estimate{}, ErrNoRemoteGate
	}
	return o.rebuild.Estimate(ctx, id)
}

// Issue asks for a coupon for each of users, in order and without another claim in between, past the waiting line: see flow.Answerer.
// It is a claim, not a change, so no lease ends.
func (o *Operator) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return o.claims.Issue(ctx, order, id, users)
}

// Void takes a coupon back. firstcome.ErrNotRecorded says that the number is issued and not in the ledger yet.
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

// notRecorded returns the error for a number that the ledger does not have: it is on its way, or was never issued.
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

// newest is the error of whoever would change a campaign of which the ledger is older than the gate, or nil.
func (o *Operator) newest(ctx context.Context, id firstcome.CampaignID) error {
	if o.rebuild == nil {
		return nil
	}
	return o.rebuild.Newest(ctx, id)
}
