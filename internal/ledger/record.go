package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// fenced refuses new coupons while the gate is rebuilt, unless they belong to that attempt.
func (r *recording) fenced() error {
	if len(r.fresh) == 0 {
		return nil
	}
	return r.fence()
}

// fence returns record.ErrRebuilding if another attempt is rebuilding the gate, and nil otherwise.
func (r *recording) fence() error {
	if r.RebuildingAt.IsZero() || r.Row.Attempt == r.attempt {
		return nil
	}
	return fmt.Errorf("%w: %w: attempt %d", firstcome.ErrGateUnavailable, record.ErrRebuilding, r.Row.Attempt)
}

// A Recorder records the coupons that a remote gate issued, and the dead letters of coupons that the ledger refused.
type Recorder struct {
	db    *sqldb.DB
	store *campaign.Store
}

// Record stores a batch of coupons that a remote gate issued, all or none of them. It returns how far the
// campaign is drained then. Recording a coupon again changes nothing, in any epoch, and even after the coupon was
// voided. A coupon that is a dead letter stays a dead letter, and the result lists it.
//
// Record writes nothing if it returns one of these errors:
//
//   - record.ErrRefused: the ledger will never take this batch. The error names the first refused coupon: it is
//     invalid, differs from the recorded coupon with its number, belongs to a user who holds another coupon,
//     exceeds the quantity or the ceiling, or is of another epoch than the campaign.
//   - firstcome.ErrGateMismatch: another node, or a node of another ledger, must record the batch.
//   - record.ErrRowLocked: another transaction has locked the campaign for longer than five seconds.
//
// After any other error it is unknown what is recorded, and the caller should record the batch again.
func (rc *Recorder) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	var drained record.Result
	given, err := inNumberOrder(b.Campaign, b.Coupons)
	if err == nil {
		runs := 0
		err = rc.db.Repeat(ctx, func(t *sqldb.Tx) (err error) {
			// A user holds another coupon only if a gate has a fault. Then the schema refuses the insert, and the
			// second run looks the users up first.
			runs++
			drained, err = rc.record(t, b, given, runs > 1)
			return rc.ofOne(err)
		})
	}
	if err != nil { // the writer may still be at drained
		return record.Result{}, sqldb.Wrap(err, "record %d coupons of %s", len(b.Coupons), b.Campaign)
	}
	return drained, nil
}

// ofOne turns a lock timeout into record.ErrRowLocked, so that the transaction does not run again. A second wait
// would only keep the recorder from other campaigns.
func (rc *Recorder) ofOne(err error) error {
	if !rc.db.Dialect.RowLocked(err) {
		return err
	}
	return fmt.Errorf("%w: end the transaction that has it (%v)", record.ErrRowLocked, err)
}

// sameCoupon reports whether a and b are the same coupon of a campaign. Neither voids nor epochs matter.
func sameCoupon(a, b firstcome.Coupon) bool {
	return a.Number == b.Number && a.User == b.User && a.Code == b.Code &&
		a.IssuedAt.UnixMicro() == b.IssuedAt.UnixMicro() && a.TermsVersion == b.TermsVersion && a.Generation == b.Generation && a.Ticket == b.Ticket && a.Direct == b.Direct
}

// inNumberOrder returns the coupons in number order, each once. It refuses a coupon that cannot be one of the
// campaign.
func inNumberOrder(id firstcome.CampaignID, coupons []firstcome.Coupon) ([]firstcome.Coupon, error) {
	for _, c := range coupons {
		if err := checkCoupon(id, c); err != nil {
			return nil, err
		}
	}
	byNumber := func(a, b firstcome.Coupon) int { return int(min(max(a.Number-b.Number, -1), 1)) }
	if !slices.IsSortedFunc(coupons, byNumber) {
		coupons = slices.Clone(coupons)
		slices.SortStableFunc(coupons, byNumber)
	}
	each := make([]firstcome.Coupon, 0, len(coupons))
	for n, c := range coupons {
		switch {
		case n == 0 || c.Number != coupons[n-1].Number:
			each = append(each, c)
		case !sameCoupon(c, coupons[n-1]):
			return nil, refuse(c, twiceDifferent)
		}
	}
	return each, nil
}

// codeLength is the length of every coupon's code: see Secret.Code.
const codeLength = 16

// checkCoupon refuses a coupon that no table accepts, so that a recorder does not retry it forever.
func checkCoupon(id firstcome.CampaignID, c firstcome.Coupon) error {
	if c.Number < 1 {
		return refuse(c, belowOne)
	}
	if c.Campaign != id {
		return refuse(c, otherCampaign, c.Campaign)
	}
	if _, err := firstcome.ParseUserID(string(c.User)); err != nil {
		return refuse(c, badUser, err)
	}
	if len(c.Code) != codeLength {
		return refuse(c, badCode, len(c.Code))
	}
	if (c.Generation > 0) != (c.Ticket > 0) || c.Generation < 0 || c.Ticket < 0 {
		return refuse(c, badTicket, c.Generation, c.Ticket)
	}
	if c.Direct && c.Ticket > 0 {
		return refuse(c, directTicket, c.Generation, c.Ticket)
	}
	return nil
}

// A recording is one call of Record, Bury or Replay, within its transaction.
type recording struct {
	*sqldb.Tx
	store        *campaign.Store
	campaign.Row // as it was before the call
	given        []firstcome.Coupon
	report       gate.LineReport
	// epochGiven is the epoch of the given coupons.
	epochGiven int64
	fresh      []firstcome.Coupon // the given coupons that the ledger lacks
	attempt    int64              // see record.Batch
	replay     bool               // this is a replay: the coupon leaves its dead letter
	look       bool               // look the users up before their coupons are inserted
	record.Result
}

// recordingOf locks a batch's campaign. It refuses a batch of another campaign with the same ID: a campaign of
// another ledger, or a campaign that this ledger had before a copy replaced the ledger.
func (rc *Recorder) recordingOf(t *sqldb.Tx, b record.Batch) (*recording, error) {
	s, err := rc.store.RowToChange(t, b.Campaign)
	switch {
	case err != nil && !errors.Is(err, firstcome.ErrNoCampaign):
		return nil, err
	case b.CampaignUID != "" && b.CampaignUID != s.CampaignUID:
		return nil, fmt.Errorf("%w: the batch is of the campaign with the UID %q, the ledger's has %q", firstcome.ErrGateMismatch, b.CampaignUID, s.CampaignUID)
	case err != nil:
		return nil, err
	case s.Away != nil: // this node's journal has no coupons of the campaign
		return nil, s.Away
	case !rc.store.Remote():
		return nil, fmt.Errorf("%w: the ledger decides its claims", firstcome.ErrGateMismatch)
	}
	return &recording{Tx: t, store: rc.store, Row: s, epochGiven: b.Epoch, attempt: b.Attempt, report: b.Line, Result: record.Result{LettersKnownThrough: b.LettersKnownThrough}}, nil
}

// record is the transaction of Record. It checks everything before it writes.
func (rc *Recorder) record(t *sqldb.Tx, b record.Batch, given []firstcome.Coupon, look bool) (record.Result, error) {
	r, err := rc.recordingOf(t, b)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		err = fmt.Errorf("%w: %w", record.ErrRefused, err)
	}
	if err != nil {
		return record.Result{}, err
	}
	r.given, r.look = given, look
	return r.do()
}

func (r *recording) do() (record.Result, error) {
	for _, step := range []func() error{r.compare, r.leaveLetters, r.leaveLost, r.fenced, r.check, r.insert, r.count, r.tell, r.lines} {
		if err := step(); err != nil {
			return record.Result{}, err
		}
	}
	return r.Result, nil
}

// compare finds the coupons that the ledger lacks. It refuses a coupon whose number the ledger has with
// another coupon.
func (r *recording) compare() error {
	have := map[int64]firstcome.Coupon{}
	for _, run := range runs(r.given) {
		if run[0].Number > r.LastNumber {
			break
		}
		rows, err := r.Query(`SELECT `+campaign.CouponColumns+` FROM coupons WHERE campaign_id = ? AND number >= ? AND number <= ?`,
			string(r.ID), run[0].Number, run[len(run)-1].Number)
		err = campaign.ScanCoupons(rows, err, func(c firstcome.Coupon) error {
			have[c.Number] = c
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, c := range r.given {
		switch known, ok := have[c.Number]; {
		case !ok:
			r.fresh = append(r.fresh, c)
		case !sameCoupon(known, c):
			return refuse(c, otherCoupon)
		}
	}
	return nil
}

// runs returns the parts of coupons whose numbers follow each other.
func runs(coupons []firstcome.Coupon) [][]firstcome.Coupon {
	var all [][]firstcome.Coupon
	from := 0
	for n := range coupons {
		if n+1 == len(coupons) || coupons[n+1].Number != coupons[n].Number+1 {
			all = append(all, coupons[from:n+1])
			from = n + 1
		}
	}
	return all
}

// leaveLetters removes the coupons from fresh that are dead letters, resolved or not. A different coupon with
// the number of a dead letter stays in fresh and is recorded.
func (r *recording) leaveLetters() error {
	if r.replay {
		return nil
	}
	letters, err := r.lettersOf(r.fresh)
	if len(letters) == 0 { // nearly always; letterSource takes longer than anything else here
		return err
	}
	r.fresh = slices.DeleteFunc(r.fresh, func(c firstcome.Coupon) bool {
		is := slices.Contains(letters[c.Number], letterSource(c))
		if is {
			r.Letters = append(r.Letters, c)
		}
		return is
	})
	return err
}

// check refuses the first fresh coupon that would break a promise.
func (r *recording) check() error {
	holders, err := r.holders()
	if err != nil {
		return err
	}
	entries, err := r.entries()
	if err != nil {
		return err
	}
	for n := range r.fresh {
		c := &r.fresh[n]
		other := holders[c.User]
		switch {
		case r.epochGiven != r.Epoch:
			return refuse(*c, ofOtherEpoch, r.epochGiven, r.Epoch)
		case c.TermsVersion < 1 || c.TermsVersion > r.Version:
			return refuse(*c, unknownTerms, c.TermsVersion, r.Version)
		case other != nil:
			return refuse(*c, userHolds, other.Number)
		case r.InForce+int64(n) >= r.Quantity:
			return refuse(*c, overQuantity, r.Quantity)
		case c.Number > r.Ceiling:
			return refuse(*c, aboveCeiling, r.Ceiling)
		case entries != nil && !entries(c.Number):
			return refuse(*c, noCode)
		}
		if r.look {
			holders[c.User] = c
		}
	}
	return nil
}

// entries returns what reports whether the list of imported codes has the entry of a number. It returns nil for a campaign without such codes.
func (r *recording) entries() (func(number int64) bool, error) {
	if !r.Burns || len(r.fresh) == 0 {
		return nil, nil
	}
	terms, _, err := campaign.TermsInForce(r.Tx, r.Row) // prizes stay since the first number, so the coupons' own terms say the same
	if err != nil {
		return nil, err
	}
	has, err := campaign.CodeLists(r.Query, r.ID)
	return func(number int64) bool {
		list, entry := terms.Entry(number)
		return entry <= has[list].Entries
	}, err
}

// holders returns the coupons in force that the users of the fresh coupons hold, if look is set.
func (r *recording) holders() (map[firstcome.UserID]*firstcome.Coupon, error) {
	if !r.look {
		return nil, nil
	}
	users := make([]firstcome.UserID, len(r.fresh))
	for n, c := range r.fresh {
		users[n] = c.User
	}
	holders, err := campaign.Holders(r.Tx, []campaign.Claimants{{Campaign: r.ID, Users: users}})
	return holders[r.ID], err
}

// insert writes the fresh coupons in number order, and the facts about them.
func (r *recording) insert() error {
	now := r.Clock // read after the row was locked, where nodes share the ledger
	var err error
	if now.IsZero() {
		if now, err = r.store.DB.Now(r.Tx); err != nil {
			return err
		}
	}
	coupons := make([]campaign.Placed, len(r.fresh))
	for n, c := range r.fresh {
		coupons[n] = campaign.Placed{Coupon: c, Position: r.Position + int64(n) + 1, RecordedAt: now.UnixMicro()}
	}
	err = campaign.WriteCoupons(r.Tx, coupons)
	if r.look && r.Dialect.Classify(err) == sqldb.Refused {
		return fmt.Errorf("%w: the schema does: %w", record.ErrRefused, err)
	}
	if err != nil {
		return err
	}
	position := r.Position
	for _, numbers := range runs(r.fresh) {
		count := int64(len(numbers))
		if err := campaign.AddIssued(r.Tx, r.ID, position+1, count, numbers[0].Number); err != nil {
			return err
		}
		position += count
	}
	return nil
}
