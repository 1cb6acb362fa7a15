package firstcome

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Unlimited is the quantity of a campaign that never sells out (general
// issuance). On the wire and in the ledger it is null.
const Unlimited int64 = math.MaxInt64

// MaxQuantity is the largest quantity of a campaign that can sell out. It is
// chosen so that numbers keep within 2⁵³, which JavaScript clients read exactly.
const MaxQuantity int64 = 1_000_000_000_000

// An AnswerWhen says when a claim that was issued a coupon is answered.
type AnswerWhen string

// When a claim is answered.
const (
	// Recorded: once the coupon is in the ledger's durable storage. The default.
	Recorded AnswerWhen = "recorded"
	// Decided: once the gate and its journal have it. With a gate that is the
	// ledger itself this is the same instant.
	Decided AnswerWhen = "decided"
)

// Terms are what a campaign promises. They change by numbered changes only, and
// a coupon keeps the terms under which it was issued.
type Terms struct {
	Name     string
	Quantity int64      // coupons that may be in force at once; Unlimited for no bound
	OpensAt  time.Time  // first instant at which a coupon is issued; zero: from the beginning
	ClosesAt time.Time  // first instant at which none is issued any more; zero: never
	Answer   AnswerWhen // when a claim is answered
	Benefit  json.RawMessage
	// Pace is that of the waiting line. Nil: there is none, and every claim is decided at once.
	Pace *Pace
	// Waitlist has those in line stay there when every coupon is in force, so that a coupon that comes back is the next
	// one's. It needs a Pace.
	Waitlist bool
	// Log is where the line is logged, from when it had one on. It stays. Nil: nowhere.
	Log *LineLog
	// A coupon expires at ValidUntil, or ValidFor after its issue; at most one is
	// set, and neither means that it does not expire.
	ValidUntil time.Time
	ValidFor   time.Duration
}

// A FieldError says what is wrong with one field of a campaign's terms.
type FieldError struct {
	Field  string // as HTTP spells it: coupon.valid_for
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Limits of terms.
const (
	MaxName    = 200       // bytes
	MaxReason  = 500       // characters, of the reason for a void
	MaxBenefit = 16 * 1024 // bytes of JSON
	maxValid   = 100 * 365 * 24 * time.Hour
)

// Check returns nil if the terms are allowed, otherwise every FieldError, joined.
func (t Terms) Check() error {
	var errs []error
	refuse := func(field, reason string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(reason, args...)})
	}
	if t.Name == "" || len(t.Name) > MaxName {
		refuse("name", "must have 1 to %d bytes", MaxName)
	}
	if t.Quantity < 0 || t.Quantity > MaxQuantity && t.Quantity != Unlimited {
		refuse("quantity", "must be 0 to %d, or null for no limit", MaxQuantity)
	}
	instant := func(field string, at time.Time) {
		// Gates and columns count from 1970, and after 9999 texts do not sort as instants do.
		if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
			refuse(field, "must be in the years 1970 to 9999 in UTC")
		}
	}
	instant("opens_at", t.OpensAt)
	instant("closes_at", t.ClosesAt)
	instant("coupon.valid_until", t.ValidUntil)
	if !t.OpensAt.IsZero() && !t.ClosesAt.IsZero() && !t.OpensAt.Before(t.ClosesAt) {
		refuse("closes_at", "must be after opens_at")
	}
	if t.Answer != Recorded && t.Answer != Decided {
		refuse("answer", `must be "recorded" or "decided"`)
	}
	if len(t.Benefit) > MaxBenefit {
		refuse("coupon.benefit", "must have at most %d bytes", MaxBenefit)
	}
	if t.ValidFor < 0 || t.ValidFor > maxValid {
		refuse("coupon.valid_for", "must be positive and at most %v", maxValid)
	}
	if t.ValidFor != 0 && !t.ValidUntil.IsZero() {
		refuse("coupon.valid_for", "cannot stand beside coupon.valid_until")
	}
	if t.Pace != nil && (t.Pace.PerSecond < 0 || t.Pace.PerSecond > MaxPace) {
		refuse("pace.per_second", "must be 1 to %d, or left out for as fast as the gate takes them", MaxPace)
	}
	if t.Waitlist && t.Pace == nil {
		refuse("waitlist", "needs a pace: without one nobody waits")
	}
	return errors.Join(errs...)
}

// ExpiresAt returns the instant at which a coupon that was issued under these
// terms at issuedAt expires, and the zero time if it does not.
func (t Terms) ExpiresAt(issuedAt time.Time) time.Time {
	if t.ValidFor > 0 {
		return issuedAt.Add(t.ValidFor)
	}
	return t.ValidUntil
}

// A Campaign issues at most Quantity coupons, one a user, in the order of the claims.
type Campaign struct {
	ID CampaignID
	Terms
	Paused bool
	Closed bool // by an operator, for good
	// Version numbers the changes: 1 when created, one more with each change of
	// terms, pause, resume, close and void.
	Version   int64
	CreatedAt time.Time
	Instants
}

// Instants are what a gate keeps of a campaign's course, by its clock. The zero time: it has
// not happened.
type Instants struct {
	// OpenedAt is the first decision while the campaign was open, that is neither before nor
	// behind its window, paused or closed. It stays.
	OpenedAt time.Time
	// SoldOutAt is when nothing was left for the first time: the decision that issued the last coupon, or the change that
	// lowered the quantity to those in force. It stays, also when stock comes back. A gate that lost it and was
	// rebuilt has the first time since then.
	SoldOutAt time.Time
	ClosedAt  time.Time // when an operator closed it
}

// Since returns the instant that a gate's SoldOut or Closed names: when nothing was left for the first time, or
// since when newcomers have been refused. The zero time: it is not known.
func (c Campaign) Since(o Outcome) time.Time {
	switch {
	case o == SoldOut:
		return c.SoldOutAt
	case o != Closed:
		return time.Time{}
	case c.ClosedAt.IsZero() || !c.ClosesAt.IsZero() && c.ClosesAt.Before(c.ClosedAt):
		return c.ClosesAt
	}
	return c.ClosedAt
}

// SoldOut returns when nothing was left for the first time, if inForce are in force at now.
func (c Campaign) SoldOut(inForce int64, now time.Time) time.Time {
	if c.SoldOutAt.IsZero() && inForce >= c.Quantity {
		return now
	}
	return c.SoldOutAt
}

// Opened returns when the campaign opened, if something is decided at now.
func (c Campaign) Opened(now time.Time) time.Time {
	if !c.OpenedAt.IsZero() {
		return c.OpenedAt
	}
	switch anyStock := int64(-1); Decide(c, now, anyStock, false, false) {
	case Waiting, Issued:
		return now
	}
	return c.OpenedAt
}

// A Coupon is the fact that a user was issued a number of a campaign.
type Coupon struct {
	Campaign CampaignID
	Number   int64 // from 1, in the order of the claims; the coupon's identity
	User     UserID
	Code     string // see Secret.Code
	IssuedAt time.Time
	VoidedAt time.Time // zero while the coupon is in force
	// TermsVersion is the version of the campaign whose terms the coupon keeps.
	TermsVersion int64
	// Generation and Ticket are its user's place in the waiting line, which it was issued to. 0: it was issued without a
	// line.
	Generation int64
	Ticket     int64
	// Direct means that an operator or a service issued it directly: perhaps before the opening, or in a pause. It has no ticket.
	Direct   bool
	Recorded bool // in the ledger's durable storage
	// Buried tells that the coupon became a dead letter, as far as its gate knows: what became of that
	// only the ledger knows.
	Buried bool
}

// Masked returns the coupon without what shows whose it is or lets somebody use it: support sees
// these only after naming the user or the code. What is left tells rows apart.
func (c Coupon) Masked() Coupon {
	first, _ := utf8.DecodeRuneInString(string(c.User))
	c.User = UserID(string(first) + "***")
	c.Code = c.Code[:min(4, len(c.Code))] + "************"
	return c
}

// A Decision is a gate's answer to one claim.
type Decision struct {
	Outcome Outcome
	// Undecided is why the gate did not decide this claim, if Outcome is 0: an ErrBusy.
	// Nil means ErrGateFull.
	Undecided error
	Coupon    Coupon    // zero unless Outcome.HasCoupon
	Place     Place     // zero unless the outcome is Waiting
	At        time.Time // the instant of the decision by the gate's clock
	Version   int64     // the campaign's version under which it was decided
	// TermsVersion is the version of the last change of terms that the gate had: whatever a
	// later version was to change, the gate has refused. Zero where a node repeats a coupon.
	TermsVersion int64
	// InForce is how many coupons the gate had in force after the decision. Zero where a
	// node repeats a coupon.
	InForce int64
	// InLine is how many people wait in the campaign's line after the decision.
	InLine int64
	// Since is when the gate began to refuse so, if the outcome is SoldOut or Closed: see
	// Campaign.Since. Zero: the gate does not say, as while stock that came back is quarantined.
	Since time.Time
	// OpenedAt is when the campaign opened, by this decision or before it: see Instants. Zero: it did not, or
	// where a node repeats a coupon.
	OpenedAt time.Time
	// Lease is how long a node may repeat this answer without asking the gate,
	// counted from the instant at which it sent the call: a refusal to every user
	// who holds no coupon, a coupon to its user as AlreadyIssued. Zero: not at all.
	Lease time.Duration
}
