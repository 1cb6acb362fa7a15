package ledger

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A refusal is a reason why the ledger refuses a coupon: a code that stays the same, and the sentence that follows the coupon's number. A dead
// letter keeps the sentence as its cause, and its CauseCode is found by that.
type refusal struct{ code, text string }

var (
	twiceDifferent = refusal{"number_taken", "comes twice, and different"}
	otherCoupon    = refusal{"number_taken", "names another coupon in the ledger: a gate gave it twice"}
	ofOtherEpoch   = refusal{"other_epoch", "is of epoch %d, the campaign is in %d"}
	unknownTerms   = refusal{"unknown_terms", "has the terms of version %d, the campaign is at %d"}
	userHolds      = refusal{"user_holds_another", "is of a user who holds number %d"}
	overQuantity   = refusal{"over_quantity", "is over the quantity of %d"}
	aboveCeiling   = refusal{"above_ceiling", "is above %d, the highest number that the ledger has granted to the gate"}
	belowOne       = refusal{"malformed", "is not from 1 on"}
	otherCampaign  = refusal{"malformed", "is of the campaign %q"}
	badUser        = refusal{"malformed", "has no user: %v"}
	badCode        = refusal{"malformed", "has a code of %d characters"}
	badTicket      = refusal{"malformed", "is of the ticket %d.%d"}
	directTicket   = refusal{"malformed", "is of the ticket %d.%d, and was issued directly"}
)

// The codes of causes that no refusal has.
const (
	unreadableCause = "unreadable" // an entry that cannot be read, so it holds no coupon
	otherCause      = "other"
)

// refuse returns an error that refuses a coupon.
func refuse(c firstcome.Coupon, why refusal, args ...any) error {
	return fmt.Errorf("%w: number %d %s", record.ErrRefused, c.Number, fmt.Sprintf(why.text, args...))
}

// CauseCodes returns every code that a cause of a dead letter may have.
func CauseCodes() []string {
	return []string{
		twiceDifferent.code, ofOtherEpoch.code, unknownTerms.code, userHolds.code, overQuantity.code, aboveCeiling.code, belowOne.code, unreadableCause, otherCause,
	}
}

var verbs = regexp.MustCompile(`%[dqv]`)

// causeCode is the code of a dead letter's cause, as an expression of SQL.
var causeCode = func() string {
	var cases strings.Builder
	cases.WriteString(`CASE WHEN user_id IS NULL THEN '` + unreadableCause + `'`)
	for _, r := range []refusal{twiceDifferent, otherCoupon, ofOtherEpoch, unknownTerms, userHolds, overQuantity, aboveCeiling, belowOne, otherCampaign, badUser, badCode, badTicket, directTicket} {
		fmt.Fprintf(&cases, ` WHEN cause LIKE '%%number %% %s%%' THEN '%s'`, verbs.ReplaceAllString(r.text, "%"), r.code)
	}
	return cases.String() + ` ELSE '` + otherCause + `' END`
}()

// A LetterCause is what the open dead letters of one campaign and cause have in common.
type LetterCause struct {
	Campaign firstcome.CampaignID
	Code     string
	Open     int64
	Through  int64 // the highest id of them
}

// maxCauses bounds the answer of LetterCauses: more than a hundred campaigns with every cause.
const maxCauses = 1000

// LetterCauses returns the campaigns and causes that have open dead letters; of one campaign if it is named.
func (rd *Reads) LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]LetterCause, error) {
	where, args := Letters{Campaign: id}.where()
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT campaign_id, `+causeCode+`, count(*), max(id) FROM dead_letters
		WHERE campaign_id IS NOT NULL AND `+where+` GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?`, append(args, maxCauses)...)
	all, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (c LetterCause, err error) {
		err = take(&c.Campaign, &c.Code, &c.Open, &c.Through)
		return c, err
	})
	return all, sqldb.Wrap(err, "count the dead letters by their causes")
}

// LettersToResolve returns a page of dead letters as DeadLetters does, and how many there are in all, from where writes go.
func (rd *Reads) LettersToResolve(ctx context.Context, p Letters) (some []DeadLetter, all int64, err error) {
	if some, err = deadLetters(ctx, rd.db.Conclude, p); err != nil {
		return nil, 0, err
	}
	where, args := p.where()
	err = rd.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM dead_letters WHERE `+where, args...).Scan(&all)
	return some, max(all, int64(len(some))), sqldb.Wrap(err, "count the dead letters")
}
