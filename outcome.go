package firstcome

import (
	"fmt"
	"strings"
	"time"
)

// An Outcome is what a claim gets. The constants stand in order of precedence:
// where several apply, the first is the answer.
type Outcome uint8

// The outcomes.
const (
	// AlreadyIssued: the user holds a coupon of this campaign; the decision names it.
	AlreadyIssued Outcome = iota + 1
	// NotOpen: the claim came before the campaign opens.
	NotOpen
	// Closed: the claim came at or after the campaign's closing time, or an operator closed it.
	Closed
	// Paused: an operator paused the campaign.
	Paused
	// SoldOut: every coupon is in force.
	SoldOut
	// Waiting: the user has a ticket in the waiting line; the decision names their place.
	Waiting
	// Issued: this claim made the coupon that the decision names.
	Issued
)

// outcomes describes each outcome: its word, the HTTP status of a claim that gets it, and of a refusal the reason.
var outcomes = [...]struct {
	word   string
	status int
	reason string
}{
	AlreadyIssued: {"already_issued", 200, ""},
	NotOpen:       {"not_open", 403, "the campaign has not opened yet"},
	Closed:        {"closed", 410, "the campaign is closed"},
	Paused:        {"paused", 403, "an operator paused the campaign: ask again later"},
	SoldOut:       {"sold_out", 410, "every coupon of the campaign is taken"},
	Waiting:       {"waiting", 202, ""},
	Issued:        {"issued", 201, ""},
}

// Outcomes returns every outcome in order of precedence.
func Outcomes() (all []Outcome) {
	for o := AlreadyIssued; o <= Issued; o++ {
		all = append(all, o)
	}
	return all
}

// String returns the outcome's word, as HTTP answers and metrics spell it.
func (o Outcome) String() string {
	if o == 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomes[o].word
}

// Status returns the HTTP status of the answer to a claim with this outcome, and 0 of what is none.
func (o Outcome) Status() int { return outcomes[o].status }

// Reason says in English why a claim with this outcome is refused. It is empty if the claim is not refused.
func (o Outcome) Reason() string { return outcomes[o].reason }

// ParseOutcome returns the outcome that a word names, such as a word in an HTTP answer, or 0
// and an error if there is none.
func ParseOutcome(word string) (Outcome, error) {
	for o := AlreadyIssued; o <= Issued; o++ {
		if outcomes[o].word == word {
			return o, nil
		}
	}
	// A clone, so that the word does not escape: a caller with bytes then converts them without an allocation.
	return 0, fmt.Errorf("unknown outcome %q", strings.Clone(word))
}

// HasCoupon tells whether a decision with this outcome names a coupon.
func (o Outcome) HasCoupon() bool { return o == Issued || o == AlreadyIssued }

// Lasts returns for how long from now on, and at most most, a refusal holds for all users who have no coupon, of a campaign that opens and
// closes at these instants; at the zero time it does not. A pause may end at any time, so that is 0.
func (o Outcome) Lasts(now, opensAt, closesAt time.Time, most time.Duration) time.Duration {
	switch {
	case o == NotOpen:
		return max(0, min(most, opensAt.Sub(now)))
	case o == SoldOut && !closesAt.IsZero():
		return max(0, min(most, closesAt.Sub(now)))
	case o == SoldOut, o == Closed:
		return most
	}
	return 0
}

// Decide is the rule: it says what a claim gets when it reaches the gate of
// campaign c at the instant now, while inForce coupons are in force. The user holds
// one of them (holds), or has a ticket in the line (waits), or neither. Every gate is a translation of it.
//
// A campaign without a pace that still has people in line is given with the Pace 0. For a campaign with a pace, inForce
// counts the coupons in force; for any other, the quarantined ones too.
func Decide(c Campaign, now time.Time, inForce int64, holds, waits bool) Outcome {
	switch {
	case holds:
		return AlreadyIssued
	case !waits && !c.OpensAt.IsZero() && now.Before(c.OpensAt):
		return NotOpen
	case c.Closed || !c.ClosesAt.IsZero() && !now.Before(c.ClosesAt):
		return Closed
	case !waits && c.Paused:
		return Paused
	case inForce >= c.Quantity && (c.Pace == nil || !c.Waitlist):
		return SoldOut
	case waits || c.Pace != nil:
		return Waiting
	}
	return Issued
}

// StateOpen is a campaign's state while a newcomer gets a coupon, or joins the line.
const StateOpen = "open"

// StateAt returns the word for what a newcomer's claim would get at the instant now, while inForce coupons are in force: StateOpen, or the outcome's.
func (c Campaign) StateAt(now time.Time, inForce int64) string {
	if o := Decide(c, now, inForce, false, false); o != Issued && o != Waiting {
		return o.String()
	}
	return StateOpen
}

// Direct returns the campaign as a direct issue finds it: without a line, without an opening and never paused. So [Decide]
// refuses a direct issue only if the user holds a coupon, the campaign is closed, or no stock is left.
func (c Campaign) Direct() Campaign {
	c.Pace, c.OpensAt, c.Paused = nil, time.Time{}, false
	return c
}
