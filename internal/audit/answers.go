package audit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A Claim is a claim as seen by its client.
type Claim struct {
	User firstcome.UserID
	// Sent and Received are the times before it was sent and after its answer came, by one monotonic clock for the whole history.
	Sent, Received time.Duration
	Outcome        firstcome.Outcome // 0 if unknown: then it may have been decided at any time since Sent, or not at all
	Number         int64             // like the next fields, zero unless Outcome.HasCoupon
	Code           string
	Recorded       bool
	Ranked
	// Generation and Ticket are the place in the answer, if Outcome is Waiting.
	Generation, Ticket int64
}

// A History is the answers that clients got, and what the server has at the end.
type History struct {
	Claims   []Claim            // in any order
	Coupons  []firstcome.Coupon // all coupons of the campaign in number order, also voided ones
	Quantity int64              // at the end
	// Before is the highest number issued before the first claim was sent. Claims need not explain these coupons.
	Before int64
	// Returned means that stock may have returned during the history, by voids or by a change of the quantity.
	Returned bool
	// Others means that other clients claimed too, whose claims are not in the history.
	Others bool
	// Recorded means that the campaign answers with a coupon only once it is in the ledger.
	Recorded bool
	// Letters are the campaign's dead letters with numbers, also resolved ones, and Lost its lost numbers.
	Letters []Letter
	Lost    []firstcome.Range
	// Followed are places in line, one for each user. For a user who was served there is also a claim whose Outcome is Issued: sent when the claim
	// that joined the line was sent, and received when the user was told of the coupon.
	Followed []Followed
	// Ranks has the rank and the prize of each of Coupons, and Prizes the campaign's prizes. If Ranks is nil, P10 is not checked.
	Ranks  []Ranked
	Prizes []Prize
}

// Answers returns the breaches of P1 to P6, P9 and P10 in a history, in O(n log n).
func Answers(h History) Breaches {
	a := answers{History: h, users: make(map[firstcome.UserID]*asked, len(h.Claims)), soldOut: never}
	a.numbers()
	a.server()
	for n := range h.Claims {
		a.note(&h.Claims[n])
	}
	for n := range h.Claims {
		a.claim(&h.Claims[n])
	}
	a.bookkeeping()
	a.stock()
	a.afterSoldOut()
	inOrder(a.decided(), func(answered, asked decided) {
		a.add("P4", "number %d was answered %v before number %d was asked for", answered.number, asked.sent-answered.received, asked.number)
	})
	a.line()
	a.ranks()
	return a.Breaches
}

// never is later than every time of a history.
const never = time.Duration(math.MaxInt64)

// asked sums up the claims of one user.
type asked struct {
	number   int64         // of the first answer with a coupon
	told     time.Duration // when the first answer with a coupon was received, or never
	issued   *Claim        // the claim that was answered issued
	repeated bool          // some claim was answered already_issued
	waited   bool          // some claim was answered with a place in line
	unknown  time.Duration // when the first claim without an answer was sent, or never
}

// answers is an audit of a history.
type answers struct {
	History
	Breaches
	users   map[firstcome.UserID]*asked
	absent  []firstcome.Range // numbers that are dead letters or lost, sorted
	letters int64             // number of open dead letters, whose stock is taken
	inForce int64             // coupons in force on the server
	soldOut time.Duration     // when the first answer sold_out was received, or never
}

// find returns the index in Coupons of a number's coupon.
func (a *answers) find(number int64) (n int, found bool) {
	n = int(number) - 1 // its index if no lower number is missing
	if n >= 0 && n < len(a.Coupons) && a.Coupons[n].Number == number {
		return n, true
	}
	return slices.BinarySearchFunc(a.Coupons, number, func(c firstcome.Coupon, number int64) int { return cmp.Compare(c.Number, number) })
}

// coupon returns the server's coupon of a number, or nil.
func (a *answers) coupon(number int64) *firstcome.Coupon {
	if n, found := a.find(number); found {
		return &a.Coupons[n]
	}
	return nil
}

// numbers notes the numbers that are not coupons.
func (a *answers) numbers() {
	a.absent = slices.Clone(a.Lost)
	for _, l := range a.Letters {
		a.absent = append(a.absent, firstcome.Range{First: l.Number, Count: 1})
		if l.Open {
			a.letters++
		}
	}
	slices.SortFunc(a.absent, func(x, y firstcome.Range) int { return cmp.Compare(x.First, y.First) })
}

// server checks P3 and P4 among the server's coupons.
func (a *answers) server() {
	holders := make(map[firstcome.UserID]int64, len(a.Coupons))
	last := int64(0)
	for _, c := range a.Coupons {
		switch {
		case c.Number <= last:
			a.add("P4", "the server has number %d twice, or not in number order", c.Number)
		default:
			a.gap(last+1, c.Number)
		}
		last = c.Number
		if !c.VoidedAt.IsZero() {
			continue
		}
		a.inForce++
		if other, ok := holders[c.User]; ok {
			a.add("P3", "the server has the numbers %d and %d in force for the user %q", other, c.Number, c.User)
		}
		holders[c.User] = c.Number
	}
	if a.inForce > a.Quantity {
		a.add("P1", "the server has %d coupons in force, the quantity is %d", a.inForce, a.Quantity)
	}
}

// gap reports the numbers from first to before next that are neither dead letters nor lost.
func (a *answers) gap(first, next int64) {
	for _, known := range a.absent {
		if known.Last() < first || first >= next {
			continue
		}
		if known.First > first {
			a.lacks(first, min(known.First, next))
		}
		first = known.Last() + 1
	}
	a.lacks(first, next)
}

func (a *answers) lacks(first, next int64) {
	if first < next {
		a.add("P4", "the server lacks the numbers %d to %d", first, next-1)
	}
}

// note adds a claim to the sum of its user's claims.
func (a *answers) note(c *Claim) {
	user := a.users[c.User]
	if user == nil {
		user = &asked{told: never, unknown: never}
		a.users[c.User] = user
	}
	switch c.Outcome {
	case 0:
		user.unknown = min(user.unknown, c.Sent)
	case firstcome.SoldOut:
		a.soldOut = min(a.soldOut, c.Received)
	case firstcome.Waiting:
		user.waited = true
	case firstcome.AlreadyIssued:
		user.repeated = true
	case firstcome.Issued:
		if user.issued != nil && !a.Returned {
			a.add("P6", "two claims of the user %q were answered issued, with the numbers %d and %d", c.User, user.issued.Number, c.Number)
		}
		user.issued = c
	}
	if c.Outcome.HasCoupon() && c.Received < user.told {
		user.told, user.number = c.Received, c.Number
	}
}

// claim checks one claim against the server's coupons and its user's other claims.
func (a *answers) claim(c *Claim) {
	user := a.users[c.User]
	if !c.Outcome.HasCoupon() {
		if c.Outcome != 0 && user.told < c.Sent && !a.Returned {
			a.add("P6", "the user %q was answered number %d, and asking again %s", c.User, user.number, c.Outcome)
		}
		return
	}
	if c.Number != user.number && !a.Returned {
		a.add("P6", "the user %q was answered the numbers %d and %d", c.User, user.number, c.Number)
	}
	kept := a.coupon(c.Number)
	switch {
	case kept == nil && c.Recorded:
		a.add("P5", "number %d was answered as recorded to the user %q, and the server does not have it", c.Number, c.User)
	case kept == nil:
		a.add("P5", "number %d was answered to the user %q, and the server does not have it", c.Number, c.User)
	case kept.User != c.User:
		a.add("P3", "number %d was answered to the user %q, but on the server it belongs to %q", c.Number, c.User, kept.User)
	case kept.Code != c.Code:
		a.add("P5", "number %d was answered with the code %q, on the server it has %q", c.Number, c.Code, kept.Code)
	case !kept.VoidedAt.IsZero() && !a.Returned:
		a.add("P5", "number %d was answered to the user %q, on the server it is voided", c.Number, c.User)
	}
	if a.Recorded && !c.Recorded {
		a.add("P5", "number %d was answered to the user %q before it was recorded, but the campaign answers only when recorded", c.Number, c.User)
	}
	if c.Outcome == firstcome.Issued && c.Number <= a.Before {
		a.add("P4", "number %d was issued to the user %q, but it had been issued before", c.Number, c.User)
	}
}

// bookkeeping checks that a user claimed every coupon that was issued during the history, and was answered with it, or may have been.
func (a *answers) bookkeeping() {
	if a.Others {
		return
	}
	for _, c := range a.Coupons {
		if c.Number <= a.Before {
			continue
		}
		switch user := a.users[c.User]; {
		case user == nil:
			a.add("books", "the server has number %d for the user %q, who never asked", c.Number, c.User)
		case user.waited: // and may have been served later
		case user.issued == nil && user.unknown == never && user.repeated:
			a.add("books", "the user %q holds number %d, but no claim of theirs can have been issued it", c.User, c.Number)
		case user.issued == nil && user.unknown == never:
			a.add("P6", "the server has number %d for the user %q, who was refused", c.Number, c.User)
		}
	}
}

// stock checks P2. It also checks P1 by the answers alone, so a server cannot hide a breach by forgetting coupons.
func (a *answers) stock() {
	if a.Returned {
		return
	}
	if taken := a.inForce + a.letters; a.soldOut != never && taken < a.Quantity {
		a.add("P2", "claims were refused as sold out, and %d coupons of %d are in force", taken, a.Quantity)
	}
	numbers := map[int64]bool{}
	for n := range a.Claims {
		if c := &a.Claims[n]; c.Outcome.HasCoupon() && a.coupon(c.Number) == nil {
			numbers[c.Number] = true
		}
	}
	if told := a.inForce + int64(len(numbers)); len(numbers) > 0 && told > a.Quantity {
		a.add("P1", "%d coupons are on the server or were answered, the quantity is %d", told, a.Quantity)
	}
}

// afterSoldOut checks that no claim was issued a coupon if it was sent after any claim's answer sold_out.
func (a *answers) afterSoldOut() {
	if a.Returned || a.soldOut == never {
		return
	}
	for _, d := range a.decided() {
		if d.sent > a.soldOut {
			a.add("P4", "number %d was issued to a claim sent %v after the first sold_out was received", d.number, d.sent-a.soldOut)
		}
	}
}
