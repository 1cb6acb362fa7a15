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

// A refusal is a reason why the ledger refuses a coupon. It has a stable code, and the text that follows the coupon's number. A dead
// letter's cause contains this text. A letter stores only the text, and its code
// is found by that text. So a text that was ever written must stay in the list.
type refusal struct{ code, text string }

var (
	twiceDifferent = refusal{"number_taken", "comes twice, and different"}
	otherCoupon    = refusal{"number_taken", "names another coupon in the ledger: a gate gave it twice"}
	ofOtherEpoch   = refusal{"other_epoch", "is of epoch %d, the campaign is in %d"}
	unknownTerms   = refusal{"unknown_terms", "has the terms of version %d, the campaign is at %d"}
	userHolds      = refusal{"user_holds_another", "is of a user who holds number %d"}
	overQuantity   = refusal{"over_quantity", "is over the quantity of %d"}
	aboveCeiling   = refusal{"above_ceiling", "is above %d, the highest number that the ledger has granted to the gate"}
	noCode         = refusal{"no_code", "has a rank for which no code was imported"}
	belowOne       = refusal{"malformed", "is not from 1 on"}
	otherCampaign  = refusal{"malformed", "is of the campaign %q"}
	badUser        = refusal{"malformed", "has no user: %v"}
	badCode        = refusal{"malformed", "has a code of %d characters"}
	badTicket      = refusal{"malformed", "is of the ticket %d.%d"}
	directTicket   = refusal{"malformed", "is of the ticket %d.%d, and was issued directly"}
)

// The codes of causes that are no refusals.
const (
	unreadableCause = "unreadable" // the entry cannot be read, so its coupon is unknown
	otherCause      = "other"
)

// refuse returns the error for a refused coupon.
func refuse(c firstcome.Coupon, why refusal, args ...any) error {
	return fmt.Errorf("%w: number %d %s", record.ErrRefused, c.Number, fmt.Sprintf(why.text, args...))
}

// CauseCodes returns all codes that a dead letter's cause may have.
func CauseCodes() []string {
	return []string{
		twiceDifferent.code, ofOtherEpoch.code, unknownTerms.code, userHolds.code, overQuantity.code, aboveCeiling.code, noCode.code, belowOne.code, unreadableCause, otherCause,
	}
}

var verbs = regexp.MustCompile(`%[dqv]`)

// causeCode is the SQL expression for the code of a dead letter's cause.
var causeCode = func() string {
	var cases strings.Builder
	cases.WriteString(`CASE WHEN user_id IS NULL THEN '` + unreadableCause + `'`)
	for _, r := range []refusal{twiceDifferent, otherCoupon, ofOtherEpoch, unknownTerms, userHolds, overQuantity, aboveCeiling, noCode, belowOne, otherCampaign, badUser, badCode, badTicket, directTicket} {
		fmt.Fprintf(&cases, ` WHEN cause LIKE '%%number %% %s%%' THEN '%s'`, verbs.ReplaceAllString(r.text, "%"), r.code)
	}
	return cases.String() + ` ELSE '` + otherCause + `' END`
}()

// A LetterCause counts the open dead letters of one campaign and cause.
type LetterCause struct {
	Campaign firstcome.CampaignID
	Code     string
	Open     int64
	Through  int64 // the highest id of these letters
}

// maxCauses bounds the answer of LetterCauses. It is enough for a hundred campaigns with all causes.
const maxCauses = 1000

// LetterCauses returns the campaigns and causes that have open dead letters. If id is not empty, it returns those of this campaign.
func (rd *Reads) LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]LetterCause, error) {
	where, args := Letters{Campaign: id}.where()
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT campaign_id, `+causeCode+`, count(*), max(id) FROM dead_letters
		WHERE campaign_id IS NOT NULL AND `+where+` GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?`, append(args, maxCauses)...)
	all, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (c LetterCause, err error) {
		err = take(&c.Campaign, &c.Code, &c.Open, &c.Through)
		return c, err
	})
	return all, sqldb.Wrap(err, "count the dead letters by cause")
}

// LettersToResolve returns a page of dead letters, as DeadLetters does, and the number of all letters that the page is part of. It
// reads the server that gets the writes.
func (rd *Reads) LettersToResolve(ctx context.Context, p Letters) (some []DeadLetter, all int64, err error) {
	if some, err = deadLetters(ctx, rd.db.Conclude, p); err != nil {
		return nil, 0, err
	}
	where, args := p.where()
	err = rd.db.Conclude.QueryRowContext(ctx, `SELECT count(*) FROM dead_letters WHERE `+where, args...).Scan(&all)
	return some, max(all, int64(len(some))), sqldb.Wrap(err, "count the dead letters")
}
