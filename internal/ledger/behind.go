package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// On SQLite the claims of a campaign do not write its row: where there are many campaigns, that
// was an eighth of what a claim costs (adr 16). The row is written by changes, which first
// bring it up to the coupons, and by the writer a second behind the claims. What was
// issued since, the coupons tell: each above the row's last number is one issue, in force, and one fact.

// The counters of a campaign.
type counters struct {
	inForce    int64
	issued     int64
	lastNumber int64
	position   int64
	decidedAt  time.Time
}

// A lastCoupon is the number of a campaign's last coupon and when it was issued. Where the row is
// written with the coupons both are NULL, as they are where there is no coupon.
type lastCoupon struct{ number, issuedAt sql.NullInt64 }

// catchUp brings the counters, as the row has them, up to the last coupon.
func (n *counters) catchUp(last lastCoupon) {
	more := last.number.Int64 - n.lastNumber
	if more <= 0 {
		return
	}
	n.inForce += more
	n.issued += more
	n.lastNumber += more
	n.position += more
	if at := instant(last.issuedAt); at.After(n.decidedAt) {
		n.decidedAt = at
	}
}

const (
	// rowsAfter is how far a row may be behind the claims: so long that it costs nothing beside
	// the coupons, and so short that who reads the table sees nearly what there is.
	rowsAfter = time.Second
	// rowsAtOnce bounds the rows that a transaction brings up: about a millisecond's.
	rowsAtOnce = 128
)

// A follower has the rows of campaigns follow their coupons.
type follower struct {
	timer *time.Timer
	set   bool                   // the timer is
	due   []firstcome.CampaignID // to be brought up now
}

func newFollower() follower {
	f := follower{timer: time.NewTimer(rowsAfter)}
	f.timer.Stop()
	return f
}

// follow sees to it that the rows which are behind are brought up.
func (w *writer) follow(after time.Duration) {
	if !w.rows.set && w.isBehind() {
		w.rows.set = true
		w.rows.timer.Reset(after)
	}
}

func (w *writer) isBehind() bool { return len(w.rows.due)+len(w.tx.behind) > 0 }

// bringUp brings up a part of the rows that are due, or of those that were behind when the last of
// these were done, and tells whether the ledger could be written. Claims that wait are in the same transaction.
func (w *writer) bringUp() bool {
	if len(w.rows.due) == 0 {
		w.rows.due = slices.Sorted(maps.Keys(w.tx.behind))
		clear(w.tx.behind)
	}
	part := w.rows.due[:min(len(w.rows.due), rowsAtOnce)]
	written := w.bringUpThese(part)
	w.rows.set = false
	if !written {
		w.follow(rowsAfter)
		return false
	}
	w.rows.due = w.rows.due[len(part):] // one that the schema refuses is tried again behind its next claim
	if len(w.rows.due) > 0 {
		w.follow(0)
	} else {
		w.follow(rowsAfter)
	}
	return true
}

// bringUpThese is bringUp for some campaigns. A row that the schema refuses is found by halving, so
// that the others follow.
func (w *writer) bringUpThese(ids []firstcome.CampaignID) bool {
	j := &job{ctx: context.Background(), done: make(chan struct{}), do: func(t *tx) error {
		for _, id := range ids {
			s, err := w.ledger.stock(t, id)
			if errors.Is(err, firstcome.ErrNoCampaign) {
				continue // it was made in a transaction that failed
			}
			if err != nil {
				return err
			}
			t.bringUp(s)
		}
		return nil
	}}
	w.group(j)
	w.before-- // nobody comes again for it
	switch {
	case j.err == nil:
		return true
	case isMachine(j.err):
		return false
	case len(ids) > 1:
		half := len(ids) / 2
		return w.bringUpThese(ids[:half]) && w.bringUpThese(ids[half:])
	}
	if w.ledger.OnCommit != nil {
		w.ledger.OnCommit(1, 0, fmt.Errorf("bring up the row of %s: %w", ids[0], j.err))
	}
	return true
}

// bringUp has the transaction write the campaign's row if it is behind.
func (t *tx) bringUp(s stock) {
	if s.lastNumber > s.rowNumber {
		t.rows[s.ID] = true
	}
}
