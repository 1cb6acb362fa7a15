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

// MaxQuantity is the largest quantity of a campaign that can sell out. With it numbers stay below 2⁵³, and JavaScript clients read them exactly.
const MaxQuantity int64 = 1_000_000_000_000

// An AnswerWhen is when a claim that was issued a coupon is answered.
type AnswerWhen string

// When a claim is answered.
const (
	// Recorded means once the coupon is in the ledger's durable storage. It is the default.
	Recorded AnswerWhen = "recorded"
	// Decided means once the gate and its journal have it. If the ledger is the gate, that is the same time.
	Decided AnswerWhen = "decided"
)

// Terms are what a campaign promises. Only numbered changes change them, and a coupon keeps the terms under which it was issued.
type Terms struct {
	Name     string
	Quantity int64      // coupons that may be in force at once; Unlimited for no bound
	OpensAt  time.Time  // the first time at which a coupon is issued; zero means from the beginning
	ClosesAt time.Time  // the first time at which no coupon is issued; zero means never
	Answer   AnswerWhen // when a claim is answered
	Benefit  json.RawMessage
	Prizes   []Prize // by rank, in order; nil if all coupons are good for Benefit
	Skips    []Skip  // set when an epoch ends, and carried on by each change; in order
	// Imported means that the codes of the coupons were made by another system, in a campaign without prizes: see Entry.
	Imported bool
	// Burnt is by how many coupons Quantity is lower than an operator has set it, in a campaign with imported codes: their codes are never given
	// again, so their stock does not come back. It grows with each void, and is carried on by each change.
	Burnt int64
	// Pace is the pace of the waiting line. If it is nil, there is no line, and every claim is decided at once.
	Pace *Pace
	// Waitlist keeps users in line when every coupon is in force, so that a returned coupon goes to the next of them. It needs a Pace.
	Waitlist bool
	// Log is where the line is logged. It is set when the line gets a log, and stays. It is nil if the line has none.
	Log *LineLog
	// A coupon expires at ValidUntil, or ValidFor after its issue; at most one is
	// set, and neither means that it does not expire.
	ValidUntil time.Time
	ValidFor   time.Duration
}

// A FieldError is a mistake in one field of a campaign's terms.
type FieldError struct {
	Field  string // as spelled in HTTP, like coupon.valid_for
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

// Check returns nil if the terms are valid, otherwise every FieldError, joined.
func (t Terms) Check() error { return errors.Join(t.mistakes()...) }

// CheckChange is Check for terms that replace others at the time now; before is the zero Terms for a new campaign. It also refuses a ValidUntil that
// is not after now, unless before has the same.
func (t Terms) CheckChange(before Terms, now time.Time) error {
	errs := t.mistakes()
	if before.Name != "" { // it is no new campaign
		t.importedMistakes(&before, func(field, reason string) { errs = append(errs, &FieldError{field, reason}) })
	}
	if t.HasLapsed(now) && !t.ValidUntil.Equal(before.ValidUntil) {
		errs = append(errs, &FieldError{"coupon.valid_until", "must be in the future, or coupons are already expired when they are issued"})
	}
	return errors.Join(errs...)
}

// HasLapsed reports whether ValidUntil has passed at the time now: coupons issued from then on are already expired.
func (t Terms) HasLapsed(now time.Time) bool {
	return !t.ValidUntil.IsZero() && !now.Before(t.ValidUntil)
}

func (t Terms) mistakes() (errs []error) {
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
		// Gates and columns count from 1970. After the year 9999, texts do not sort in the order of times.
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
	if !t.ValidUntil.IsZero() && !t.OpensAt.Before(t.ValidUntil) {
		refuse("coupon.valid_until", "must be after opens_at, or coupons are already expired when they are issued")
	}
	if t.Answer != Recorded && t.Answer != Decided {
		refuse("answer", `must be "recorded" or "decided"`)
	}
	if len(t.Benefit) > MaxBenefit {
		refuse("coupon.benefit", "must have at most %d bytes", MaxBenefit)
	}
	t.prizeMistakes(refuse)
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
	return errs
}

// ExpiresAt returns when a coupon that was issued under these terms at issuedAt expires, or the zero time if it does not.
func (t Terms) ExpiresAt(issuedAt time.Time) time.Time {
	if t.ValidFor > 0 {
		return issuedAt.Add(t.ValidFor)
	}
	return t.ValidUntil
}

// A Campaign issues at most Quantity coupons, one for each user, in the order of the claims.
type Campaign struct {
	ID CampaignID
	Terms
	Paused bool
	Closed bool // by an operator, permanently
	// Version is the number of the last change. It is 1 after the creation, and grows by one with each change of terms, pause, resume, close and
	// void.
	Version   int64
	CreatedAt time.Time
	Instants
}

// Instants are the times of a campaign's events, by its gate's clock. A zero time means that the event has not happened.
type Instants struct {
	// OpenedAt is the time of the first decision while the campaign was open: within its window, not paused and not closed. It never changes.
	OpenedAt time.Time
	// SoldOutAt is when no stock was left for the first time: the decision that issued the last coupon, or the change that lowered the quantity to
	// the coupons in force. It does not change when stock returns. If a gate lost it and was rebuilt, it is the first time since then.
	SoldOutAt time.Time
	ClosedAt  time.Time // when an operator closed it
}

// Since returns since when a gate's outcome SoldOut or Closed holds: when no stock was left for the first time, or since when new users have been
// refused. It is the zero time if unknown.
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

// SoldOut returns when no stock was left for the first time, if inForce coupons are in force at now.
func (c Campaign) SoldOut(inForce int64, now time.Time) time.Time {
	if c.SoldOutAt.IsZero() && inForce >= c.Quantity {
		return now
	}
	return c.SoldOutAt
}

// Opened returns when the campaign opened, if a claim is decided at now.
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

// A Range is the Count numbers from First on.
type Range struct{ First, Count int64 }

// Last returns the highest number of a range.
func (r Range) Last() int64 { return r.First + r.Count - 1 }

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
	// Generation and Ticket are the place in the waiting line to which it was issued, or 0 if it was issued without a line.
	Generation int64
	Ticket     int64
	// Direct means that an operator or a service issued it directly, perhaps before the opening or during a pause. It has no ticket.
	Direct   bool
	Recorded bool // in the ledger's durable storage
	// Buried means that the coupon became a dead letter, as far as its gate knows. Only the ledger knows what an operator did with it since.
	Buried bool
}

// Masked returns the coupon without the fields that show its user or let others use it. Support sees these only after naming the user or the code.
// The remaining fields distinguish rows.
func (c Coupon) Masked() Coupon {
	first, _ := utf8.DecodeRuneInString(string(c.User))
	c.User = UserID(string(first) + "***")
	c.Code = c.Code[:min(4, len(c.Code))] + "************"
	return c
}

// A Decision is a gate's answer to one claim.
type Decision struct {
	Outcome Outcome
	// Undecided is why the gate did not decide this claim, if Outcome is 0: an ErrBusy, where nil means ErrGateFull.
	Undecided error
	Coupon    Coupon    // zero unless Outcome.HasCoupon
	Place     Place     // zero unless the outcome is Waiting
	At        time.Time // the time of the decision, by the gate's clock
	Version   int64     // the campaign's version under which it was decided
	// TermsVersion is the version of the terms under which it was decided. It is below Version if other changes came later, or if the gate
	// refused later terms. It is zero if a node repeats a coupon.
	TermsVersion int64
	// InForce is how many coupons the gate had in force after the decision. It is zero if a node repeats a coupon.
	InForce int64
	// InLine is how many users wait in the campaign's line after the decision.
	InLine int64
	// Since is when the gate began to refuse so, if the outcome is SoldOut or Closed: see Campaign.Since. It is zero if unknown, such as while
	// returned stock is quarantined.
	Since time.Time
	// OpenedAt is when the campaign opened, by this decision or before it: see Instants. It is zero if it did not, or if a node repeats a coupon.
	OpenedAt time.Time
	// Lease is how long a node may repeat this answer without asking the gate, counted from when it sent the call. It may repeat a refusal to every
	// user who holds no coupon, and a coupon to its user as AlreadyIssued. Zero means that it may not repeat the answer.
	Lease time.Duration
}
