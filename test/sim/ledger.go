package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Ledger is the model of a ledger, as internal/ledger is one beside another gate: it keeps what recorders bring, each coupon once, and
// refuses what would break a promise; orders.go numbers what operators want, and ledger_rebuild.go has what a rebuild of the gate does
// to it, and reconcile.go what happens when it is put back. conform.Ledger holds it to what the real ones do.
type Ledger struct {
	Clock func() time.Time
	// Backlog is how many numbers a gate may give beyond the ledger's highest; 0: any.
	Backlog int64

	mu sync.Mutex // guards what follows
	archive
	attempts int64 // the highest number that an attempt ever had

	// onEnd is told of each epoch that ends: the last number known to be given, and the epoch's last number.
	onEnd func(given, through int64)
}

// An account is what the ledger has of a campaign.
type account struct {
	firstcome.Campaign           // its Version is that of the last change
	termsVersion       int64     // of the terms that hold; lower ones are only proposed until the gate has taken them
	applied, drained   int64     // the last change that the gate has; up to which number all have left the journal
	decidedAt          time.Time // the latest instant of a change, or of the gate's
	changes            []deed    // by version, from 1
	coupons            []stored
	facts              []fact
	line               gate.LineState
	gateRow
}

// A stored coupon names the position of the fact that it was issued.
type stored struct {
	firstcome.Coupon
	position int64
}

// A fact says that a coupon was issued or voided.
type fact struct {
	position, number int64
	kind             firstcome.FactKind
}

// A letter is a dead letter. Its number is 0 if there is no coupon in it.
type letter struct {
	number int64
	user   firstcome.UserID
}

// NewLedger returns a ledger without campaigns.
func NewLedger(clock func() time.Time) *Ledger {
	return &Ledger{Clock: clock, archive: archive{map[firstcome.CampaignID]*account{}, map[string]letter{}, map[string]bool{}, map[string]time.Time{}}}
}

// putBack replaces all data by a backup's.
func (l *Ledger) putBack(backup archive) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.archive = backup.copied()
}

// of calls do with a campaign: a transaction that has locked its row.
func (l *Ledger) of(id firstcome.CampaignID, do func(*account) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.campaigns[id]; a != nil {
		return do(a)
	}
	return firstcome.ErrNoCampaign
}

// Record implements record.Keeper.
func (l *Ledger) Record(_ context.Context, b record.Batch) (drained record.Result, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.campaigns[b.Campaign]
	if a == nil {
		return drained, fmt.Errorf("%w: no campaign %s", record.ErrRefused, b.Campaign)
	}
	var fresh []firstcome.Coupon
	for _, c := range b.Coupons {
		known := a.coupon(c.Number)
		twice := slices.IndexFunc(fresh, func(f firstcome.Coupon) bool { return f.Number == c.Number })
		switch {
		case known != nil && same(known.Coupon, c), twice >= 0 && same(fresh[twice], c):
		case known != nil, twice >= 0:
			return drained, fmt.Errorf("%w: number %d is another coupon", record.ErrRefused, c.Number)
		case l.letters[letterOf(c)].number > 0:
			drained.Letters = append(drained.Letters, c)
		case a.isLost(c.Number, b.Epoch): // its gate was cut off when it was rebuilt elsewhere
			drained.Lost++
		default:
			fresh = append(fresh, c)
		}
	}
	if len(fresh) > 0 {
		if err := a.fence(b.Attempt); err != nil {
			return drained, err
		}
	}
	for n, c := range fresh {
		if b.Epoch != a.epoch || malformed(a, c) || a.holder(c.User) || slices.ContainsFunc(fresh[:n], func(f firstcome.Coupon) bool { return f.User == c.User }) {
			return drained, fmt.Errorf("%w: number %d is of another epoch, no coupon, or its user holds one", record.ErrRefused, c.Number)
		}
	}
	if a.inForce()+int64(len(fresh)) > a.Quantity {
		return drained, fmt.Errorf("%w: more than %d", record.ErrRefused, a.Quantity)
	}
	slices.SortFunc(fresh, func(x, y firstcome.Coupon) int { return cmp.Compare(x.Number, y.Number) })
	for _, c := range fresh {
		a.decidedAt = later(a.decidedAt, c.IssuedAt)
		a.coupons = append(a.coupons, stored{c, a.fact(firstcome.CouponIssued, c.Number)})
	}
	if b.Epoch == a.epoch {
		a.reported(b.Line)
	}
	l.tell(a, b.LettersKnownThrough, &drained)
	return drained, nil
}

// Bury implements record.Keeper.
func (l *Ledger) Bury(_ context.Context, b record.Batch, _ string) (drained record.Result, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.campaigns[b.Campaign]
	if a != nil {
		if err := a.fence(b.Attempt); err != nil {
			return drained, err
		}
	}
	for _, g := range b.Garbage {
		l.bury(g.Source, letter{})
	}
	if a == nil {
		return drained, nil
	}
	for _, c := range b.Coupons {
		known := a.coupon(c.Number)
		if known != nil && same(known.Coupon, c) {
			continue
		}
		if b.Epoch != a.epoch { // its number has its fate already, or is another user's
			l.bury(letterOf(c), letter{})
			continue
		}
		l.bury(letterOf(c), letter{c.Number, c.User})
		drained.Letters, drained.Twice = append(drained.Letters, c), drained.Twice || known != nil
	}
	if b.Epoch == a.epoch {
		a.reported(b.Line)
	}
	l.tell(a, b.LettersKnownThrough, &drained)
	return drained, nil
}

// tell says how far a campaign is drained, and adds the dead letters that were not told before.
func (l *Ledger) tell(a *account, told int64, drained *record.Result) {
	drained.LettersKnownThrough, drained.Through, drained.Grant = told, l.through(a), l.grant(a)
	for of, one := range l.letters {
		c := firstcome.Coupon{Campaign: a.ID, Number: one.number, User: one.user}
		is := func(k firstcome.Coupon) bool { return k.Number == c.Number && k.User == c.User }
		if of == letterOf(c) && c.Number > told && c.Number <= drained.Through && !slices.ContainsFunc(drained.Letters, is) {
			drained.Letters = append(drained.Letters, c)
		}
	}
	slices.SortStableFunc(drained.Letters, func(x, y firstcome.Coupon) int { return cmp.Compare(x.Number, y.Number) })
}

func (l *Ledger) bury(of string, one letter) {
	if _, known := l.letters[of]; !known {
		l.letters[of] = one
	}
}

// letterOf returns what the dead letter of a coupon is of.
func letterOf(c firstcome.Coupon) string {
	return fmt.Sprintf("%s/%d/%s", c.Campaign, c.Number, c.User)
}

// same reports whether these are the same coupon, voided since or not.
func same(a, b firstcome.Coupon) bool {
	a.VoidedAt, a.Recorded = b.VoidedAt, b.Recorded
	return a == b
}

// malformed reports whether a coupon is none of the campaign's.
func malformed(a *account, c firstcome.Coupon) bool {
	_, err := firstcome.ParseUserID(string(c.User))
	return err != nil || c.Number < 1 || len(c.Code) != 16 || c.Campaign != a.ID || (c.Generation > 0) != (c.Ticket > 0) ||
		c.TermsVersion < 1 || c.TermsVersion > a.Version
}

// coupon returns the coupon of a number, nil if there is none.
func (a *account) coupon(number int64) *stored {
	at := slices.IndexFunc(a.coupons, func(c stored) bool { return c.Number == number })
	if at < 0 {
		return nil
	}
	return &a.coupons[at]
}

// holder reports whether a user holds a coupon in force.
func (a *account) holder(user firstcome.UserID) bool {
	return slices.ContainsFunc(a.coupons, func(c stored) bool { return c.User == user && c.VoidedAt.IsZero() })
}

func (a *account) inForce() (n int64) {
	for _, c := range a.coupons {
		if c.VoidedAt.IsZero() {
			n++
		}
	}
	return n
}

// fact adds one and returns its position.
func (a *account) fact(kind firstcome.FactKind, number int64) int64 {
	a.facts = append(a.facts, fact{int64(len(a.facts)) + 1, number, kind})
	return int64(len(a.facts))
}

// reported keeps what a batch says of the line: the latest, and each generation that ended once.
func (a *account) reported(r gate.LineReport) {
	if r.Line.Later(a.line.Line) {
		a.line.Line = r.Line
	}
	for _, p := range r.Past {
		if !slices.ContainsFunc(a.line.Past, func(known firstcome.PastLine) bool { return known.Generation == p.Generation }) {
			a.line.Past = slices.Insert(a.line.Past, 0, p)
		}
	}
}

// through returns up to which number each is a coupon, a dead letter or lost.
func (l *Ledger) through(a *account) int64 {
	for a.coupon(a.drained+1) != nil || l.dead(a.drained+1) || a.isLost(a.drained+1, 0) {
		a.drained++
	}
	return a.drained
}

// Has implements gate.Book.
func (l *Ledger) Has(_ context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	err = l.of(id, func(a *account) error {
		has = make([]bool, len(coupons))
		for n, c := range coupons {
			known := a.coupon(c.Number)
			has[n] = known != nil && known.User == c.User && known.IssuedAt.Equal(c.IssuedAt)
		}
		return nil
	})
	return has, err
}
