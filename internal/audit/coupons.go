package audit

import (
	"math"
	"sort"
	"time"

	"github.com/firstcome/firstcome"
)

// A row is what is kept of a coupon for the audit of the facts.
type row struct {
	number   int64
	position int64
	terms    int32 // index of its terms in the history; -1: there are none
	state    state
}

// A state is what is known of a coupon: of its row, and of its facts.
type state uint8

const (
	voidedRow state = 1 << iota
	issuedFact
	voidedFact
)

// held is the last coupon of a user.
type held struct {
	number   int64
	voidedAt int64 // microseconds; math.MaxInt64: it is in force
}

// rows are the coupons in number order.
type rows []row

// from returns the index of the first coupon from a number on.
func (r rows) from(number int64) int {
	if n := number - 1; n >= 0 && n < int64(len(r)) && r[n].number == number {
		return int(n) // where it stands if no number is missing
	}
	return sort.Search(len(r), func(i int) bool { return r[i].number >= number })
}

// find returns the coupon of a number, or nil.
func (r rows) find(number int64) *row {
	n := r.from(number)
	if n == len(r) || r[n].number != number {
		return nil
	}
	return &r[n]
}

// couponAudit reads the coupons in number order.
type couponAudit struct {
	*Breaches
	id       firstcome.CampaignID
	secret   *firstcome.Secret
	history  *history
	campaign *Campaign
	logged   bool    // the audit log was read
	direct   numbers // issued directly, by the audit log
	holders  map[firstcome.UserID]held
	rows     rows
	inForce  int64
	last     Coupon
	latest   time.Time // of an issue
	// When the coupons left nothing for the first time, if what is of one microsecond is taken as issued first, and as voided first: see soldOut.
	full   [2]time.Time
	behind [2]int   // changes that were before the last coupon
	voided [2]int64 // voids among them
	// These describe the lowest number that was not issued directly.
	first      time.Time
	opening    time.Time // the first coupon or ticket
	firstTerms int64
	early      bool // a lower number was issued directly
	// again holds, where a remote gate decides, the number that a user had before, by
	// that of the user's next coupon: the clocks of gate and ledger differ, so
	// the facts say whether it was voided by then.
	again map[int64]int64
}

func (a *couponAudit) coupon(c Coupon) {
	a.identity(c.Coupon)
	a.sequence(c.Coupon)
	index, terms := a.history.termsOf(c.TermsVersion)
	if behind, forgot := a.history.forgot(c.TermsVersion); forgot {
		index = behind
	} else {
		a.window(c.Coupon, terms)
	}
	if !a.campaign.Remote {
		a.instants(c, index, terms)
	}
	a.directly(c.Coupon)
	a.oneAUser(c.Coupon)
	a.void(c)
	r := row{number: c.Number, position: c.Position, terms: int32(index)}
	if c.VoidedAt.IsZero() {
		a.inForce++
	} else {
		r.state = voidedRow
	}
	switch {
	case a.first.IsZero() && !c.Direct:
		a.first, a.firstTerms = c.IssuedAt, c.TermsVersion
	case a.first.IsZero():
		a.early = true
	}
	a.rows = append(a.rows, r)
	a.last = c
	if c.IssuedAt.After(a.latest) {
		a.latest = c.IssuedAt
	}
}

// end holds the campaign's row against the coupons.
func (a *couponAudit) end() {
	most := a.campaign.Quantity
	if a.campaign.Row == nil {
		most = firstcome.Unlimited
	}
	if len(a.history.terms) > 0 {
		most = min(most, a.history.terms[a.history.effective].quantity)
	}
	if a.inForce > most {
		a.add("P1", "%d coupons are in force, the quantity is %d", a.inForce, most)
	}
	if a.secret != nil && a.campaign.Secret != "" && a.campaign.Secret != a.secret.Fingerprint() {
		a.add("identity", "the campaign's codes are those of the secret with the fingerprint %s, and this one's is %s", a.campaign.Secret, a.secret.Fingerprint())
	}
	a.holders = nil
}

// decided holds the instants of the campaign's row against those of the coupons and of the line.
func (a *couponAudit) decided(line *lineAudit) {
	latest := a.latest
	if line.latest.After(latest) {
		latest = line.latest
	}
	if a.opening = a.first; !line.joined.IsZero() && (a.opening.IsZero() || line.joined.Before(a.opening)) {
		a.opening = line.joined
	}
	a.history.decided(latest)
	a.course()
}

func (a *couponAudit) identity(c firstcome.Coupon) {
	if c.Campaign != a.id {
		a.add("identity", "number %d is of the campaign %q", c.Number, c.Campaign)
	}
	if _, err := firstcome.ParseUserID(string(c.User)); err != nil {
		a.add("identity", "number %d has the user %q: %v", c.Number, c.User, err)
	}
	switch {
	case !wellFormedCode(c.Code):
		a.add("identity", "number %d has the code %q, which is not 16 characters of Crockford's base 32", c.Number, c.Code)
	case a.secret != nil && c.Code != a.secret.Code(a.id, c.Number):
		a.add("identity", "number %d has a code that the secret does not make", c.Number)
	}
}

// wellFormedCode tells whether a code has the form of Secret.Code.
func wellFormedCode(code string) bool {
	for i := range len(code) {
		switch c := code[i]; {
		case '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U':
		default:
			return false
		}
	}
	return len(code) == 16
}

// sequence checks P4 between a coupon and the one before it.
func (a *couponAudit) sequence(c firstcome.Coupon) {
	switch before := a.last.Coupon; {
	case c.Number == before.Number:
		a.add("P4", "number %d names two coupons, of the users %q and %q", c.Number, before.User, c.User)
	case c.Number < before.Number:
		a.add("P4", "number %d stands behind number %d", c.Number, before.Number)
	}
	if c.IssuedAt.Before(a.last.IssuedAt) {
		a.add("P4", "number %d was issued at %s, before number %d at %s", c.Number, text(c.IssuedAt), a.last.Number, text(a.last.IssuedAt))
	}
	if c.TermsVersion < a.last.TermsVersion {
		a.add("P4", "number %d has the terms of version %d, older than those of number %d", c.Number, c.TermsVersion, a.last.Number)
	}
}

// window checks that a coupon was issued while its terms were open: both are by the gate's clock. A direct issue may come before the
// opening.
func (a *couponAudit) window(c firstcome.Coupon, terms *termsFrom) {
	if !c.VoidedAt.IsZero() && c.VoidedAt.Before(c.IssuedAt) {
		a.add("P4", "number %d was voided at %s, before it was issued at %s", c.Number, text(c.VoidedAt), text(c.IssuedAt))
	}
	if terms == nil {
		a.add("changes", "number %d has the terms of version %d, which are none", c.Number, c.TermsVersion)
		return
	}
	if !c.Direct && !terms.opensAt.IsZero() && c.IssuedAt.Before(terms.opensAt) {
		a.add("P7", "number %d was issued at %s, before the opening at %s", c.Number, text(c.IssuedAt), text(terms.opensAt))
	}
	if !terms.closesAt.IsZero() && !c.IssuedAt.Before(terms.closesAt) {
		a.add("P7", "number %d was issued at %s, not before the closing at %s", c.Number, text(c.IssuedAt), text(terms.closesAt))
	}
}

// instants holds a coupon that the ledger decided against the changes, which are by the same clock. Of
// what is of the same microsecond either may have been first.
func (a *couponAudit) instants(c Coupon, index int, terms *termsFrom) {
	if !c.RecordedAt.IsZero() && !c.RecordedAt.Equal(c.IssuedAt) {
		a.add("P5", "number %d was issued at %s and recorded at %s, and the ledger does both at once", c.Number, text(c.IssuedAt), text(c.RecordedAt))
	}
	if s := a.history.barred(c.IssuedAt); s != nil && !(c.Direct && s.pause) {
		a.add("P7", "number %d was issued at %s, after %s at %s", c.Number, text(c.IssuedAt), s.why, text(s.from))
	}
	if terms == nil {
		return
	}
	a.fills(c, terms)
	next := a.history.terms[index+1:]
	if c.IssuedAt.Before(terms.at) || len(next) > 0 && c.IssuedAt.After(next[0].at) {
		a.add("P4", "number %d was issued at %s and has the terms of version %d, which were not those of that instant", c.Number, text(c.IssuedAt), terms.version)
	}
}

// directly holds whether a coupon was issued directly against the audit log, where an issue has a line. If another gate decides, the line
// comes after the coupons, so a node that died may have left it out.
func (a *couponAudit) directly(c firstcome.Coupon) {
	switch logged := a.direct.has(c.Number); {
	case !a.logged || logged == c.Direct:
	case logged:
		a.add("log", "number %d was issued directly by the audit log, and the coupon does not say so", c.Number)
	case !a.campaign.Remote:
		a.add("log", "number %d was issued directly, and no line of the audit log says so", c.Number)
	}
}

// oneAUser checks P3: that the user's coupon before was voided by then.
func (a *couponAudit) oneAUser(c firstcome.Coupon) {
	if before, ok := a.holders[c.User]; ok {
		if a.campaign.Remote {
			a.again[c.Number] = before.number
		} else if before.voidedAt > c.IssuedAt.UnixMicro() {
			a.add("P3", "the user %q was issued number %d while number %d was in force", c.User, c.Number, before.number)
		}
	}
	until := int64(math.MaxInt64)
	if !c.VoidedAt.IsZero() {
		until = c.VoidedAt.UnixMicro()
	}
	a.holders[c.User] = held{c.Number, until}
}

// void holds what a coupon says of its void against the changes and the audit log.
func (a *couponAudit) void(c Coupon) {
	if c.VoidedAt.IsZero() {
		if c.Reason != "" {
			a.add("changes", "number %d is in force, and it was voided because of %q", c.Number, c.Reason)
		}
		return
	}
	change := a.history.void(c.Number, c.VoidedAt, c.User)
	if change == nil {
		a.add("changes", "number %d of the user %q was voided at %s, and no change says so", c.Number, c.User, text(c.VoidedAt))
		return
	}
	change.known = true
	if a.logged && change.detail != hash(c.Reason) {
		a.add("log", "number %d was voided because of %q, the audit log says otherwise", c.Number, c.Reason)
	}
}

// text returns an instant as firstcome writes it.
func text(t time.Time) string {
	if t.IsZero() {
		return "no instant"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
