package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Lines calls each with the campaigns that have users in line: see gate.Line.
func (g *Gate) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	rows, err := g.db.Conclude.QueryContext(ctx, `SELECT id FROM campaigns WHERE `+g.queries.hasLine+` AND gate = ? AND secret = ?`, g.rows.gate, g.rows.fingerprint)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		id, err := sqldb.One[firstcome.CampaignID](take)
		if err == nil {
			each(id)
		}
		return err
	})
	return sqldb.Wrap(err, "read which campaigns have people in line")
}

// Place returns a user's place in line: see gate.Places.
func (g *Gate) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (place firstcome.Place, coupon firstcome.Coupon, err error) {
	err = g.db.Conclude.AtOnce(ctx, func(at *sqldb.Snapshot) error {
		rows, err := at.QueryContext(ctx, g.rows.heldQuery(), string(user), string(id))
		if coupon, err = only(rows, err); !errors.Is(err, firstcome.ErrNoCoupon) {
			return err
		}
		s, now, err := g.rows.see(ctx, at, id)
		if err != nil {
			return err
		}
		var number int64
		if s.line.Waiting > 0 {
			err = at.QueryRowContext(ctx, ticketQuery(g.queries), string(user), string(id), s.line.Generation).Scan(&number)
		}
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case number == 0, s.sendsAway(now) != 0: // the window has passed, and no write has ended the generation yet
			return firstcome.ErrNoTicket
		}
		place = s.seen().Place(s.line, number, s.inForce, now)
		return nil
	})
	return place, coupon, sqldb.Wrap(err, "read a place in the line of %s", id)
}

// LineOf returns a campaign's line: see gate.Places.
func (g *Gate) LineOf(ctx context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.db.Conclude.AtOnce(ctx, func(at *sqldb.Snapshot) error {
		s, now, err := g.rows.see(ctx, at, id)
		if err != nil {
			return err
		}
		state = gate.LineState{Campaign: s.seen(), Line: s.line, InForce: s.inForce, Now: now}
		state.Campaign.Pace = s.Pace
		if why := s.sendsAway(now); why != 0 && !g.rows.remote() { // the window has passed, and no write has ended the generation yet
			state.Past, state.Line = []firstcome.PastLine{s.line.Ended(why.String(), s.endedAt(why, now))}, s.line.Next()
		}
		if state.Joined, err = nextJoined(ctx, at, id, state.Line); err != nil {
			return err
		}
		rows, err := at.QueryContext(ctx, `SELECT `+pastColumns+` FROM past_lines
			WHERE campaign_id = ? ORDER BY generation DESC LIMIT ?`, id, gate.MaxPastLines-len(state.Past))
		past, err := sqldb.AllRows(rows, err, scanPast)
		state.Past = append(state.Past, past...)
		return err
	})
	return state, sqldb.Wrap(err, "read the line of %s", id)
}

// nextJoined returns when the next user in line joined, or the zero time. The ledger does not have the tickets of a line that a remote
// gate keeps.
func nextJoined(ctx context.Context, at *sqldb.Snapshot, id firstcome.CampaignID, l firstcome.Line) (joined time.Time, err error) {
	if l.Waiting == 0 {
		return joined, nil
	}
	err = at.QueryRowContext(ctx, `SELECT joined_at FROM tickets WHERE campaign_id = ? AND generation = ? AND ticket > ? AND ended_at IS NULL
		ORDER BY campaign_id, generation, ticket LIMIT 1`, string(id), l.Generation, l.ServedThrough).Scan(when(&joined))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return joined, err
}

const pastColumns = `generation, last_ticket, served_through, served, waiting, reason, ended_at`

func scanPast(take sqldb.Scan) (p firstcome.PastLine, err error) {
	err = take(&p.Generation, &p.LastTicket, &p.ServedThrough, &p.Served, &p.Waiting, &p.Reason, when(&p.EndedAt))
	return p, err
}
