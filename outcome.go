package firstcome

import (
	"fmt"
	"strings"
	"time"
)

// An Outcome is the result of a claim. The constants are in order of precedence: if several apply, the first is the answer.
type Outcome uint8

// The outcomes.
const (
	// AlreadyIssued means that the user holds a coupon of this campaign, which the decision has.
	AlreadyIssued Outcome = iota + 1
	// Closed means that the claim came at or after the campaign's closing time, or that an operator closed it, perhaps before it opened.
	Closed
	// NotOpen means that the claim came before the campaign opens.
	NotOpen
	// Paused means that an operator paused the campaign.
	Paused
	// SoldOut means that every coupon is in force.
	SoldOut
	// Waiting means that the user has a ticket in the waiting line. The decision has their place.
	Waiting
	// Issued means that this claim was issued the coupon in the decision.
	Issued
)

// outcomes describes each outcome: its word, the HTTP status of a claim that gets it, and of a refusal the reason.
var outcomes = [...]struct {
	word   string
	status int
	reason string
}{
	AlreadyIssued: {"already_issued", 200, ""},
	Closed:        {"closed", 410, "the campaign is closed"},
	NotOpen:       {"not_open", 403, "the campaign has not opened yet"},
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

// String returns the outcome's word, as in HTTP answers and metrics.
func (o Outcome) String() string {
	if o == 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomes[o].word
}

// Status returns the HTTP status of the answer to a claim with this outcome, or 0 if it is not an outcome.
func (o Outcome) Status() int { return outcomes[o].status }

// Reason returns in English why a claim with this outcome is refused. It is empty if the claim is not refused.
func (o Outcome) Reason() string { return outcomes[o].reason }

// ParseOutcome returns the outcome with a word, such as a word in an HTTP answer, or 0 and an error if there is none.
func ParseOutcome(word string) (Outcome, error) {
	for o := AlreadyIssued; o <= Issued; o++ {
		if outcomes[o].word == word {
			return o, nil
		}
	}
	// A clone, so that the word does not escape: a caller with bytes then converts them without an allocation.
	return 0, fmt.Errorf("unknown outcome %q", strings.Clone(word))
}

// HasCoupon reports whether a decision with this outcome has a coupon.
func (o Outcome) HasCoupon() bool { return o == Issued || o == AlreadyIssued }

// Lasts returns how long a refusal holds for all users who have no coupon, from now on and for no longer than most. The campaign opens at opensAt and
// closes at closesAt. A zero time means never. A pause may end at any time, so for Paused it returns 0.
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

// Decide is the rule: it returns the outcome of a claim that reaches the gate of campaign c at the time now, while inForce coupons are in force. The
// user holds one of them (holds), or has a ticket in the line (waits), or neither. Every gate is a translation of it.
//
// A campaign without a pace may still have users in line, if its pace was taken away: then the caller passes it with the Pace 0. inForce counts the
// coupons in force and, for a campaign without a pace, also the quarantined stock.
func Decide(c Campaign, now time.Time, inForce int64, holds, waits bool) Outcome {
	switch {
	case holds:
		return AlreadyIssued
	case c.Closed || !c.ClosesAt.IsZero() && !now.Before(c.ClosesAt):
		return Closed
	case !waits && !c.OpensAt.IsZero() && now.Before(c.OpensAt):
		return NotOpen
	case !waits && c.Paused:
		return Paused
	case inForce >= c.Quantity && (c.Pace == nil || !c.Waitlist):
		return SoldOut
	case waits || c.Pace != nil:
		return Waiting
	}
	return Issued
}

// StateOpen is the state of a campaign while a new user gets a coupon, or joins the line.
const StateOpen = "open"

// StateAt returns the word for what a new user's claim would get at the time now, while inForce coupons are in force: StateOpen, or an outcome's
// word.
func (c Campaign) StateAt(now time.Time, inForce int64) string {
	if o := Decide(c, now, inForce, false, false); o != Issued && o != Waiting {
		return o.String()
	}
	return StateOpen
}

// Direct returns the campaign as it applies to a direct issue: without a line, without an opening and never paused. So [Decide] refuses a direct
// issue only if the user holds a coupon, the campaign is closed, or no stock is left.
func (c Campaign) Direct() Campaign {
	c.Pace, c.OpensAt, c.Paused = nil, time.Time{}, false
	return c
}
