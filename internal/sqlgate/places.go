package sqlgate

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Lines calls each with the campaigns that have users in line: see gate.Line.
func (g *Gate) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	rows, err := g.db.Conclude.QueryContext(ctx, `SELECT id FROM campaigns WHERE `+g.queries.hasLine+` AND gate = ? AND secret = ?`, g.store.Gate, g.store.Fingerprint)
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
		rows, err := at.QueryContext(ctx, g.store.HeldQuery(), string(user), string(id))
		if coupon, err = campaign.OnlyCoupon(rows, err); !errors.Is(err, firstcome.ErrNoCoupon) {
			return err
		}
		s, now, err := g.store.ReadRow(ctx, at, id)
		if err != nil {
			return err
		}
		var number int64
		if s.Line.Waiting > 0 {
			err = at.QueryRowContext(ctx, ticketQuery(g.queries), string(user), string(id), s.Line.Generation).Scan(&number)
		}
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case number == 0, s.View(now).SendsAway() != 0: // the window has passed, and no write has ended the generation yet
			return firstcome.ErrNoTicket
		}
		place = s.View(now).Place(number)
		return nil
	})
	return place, coupon, sqldb.Wrap(err, "read a place in the line of %s", id)
}

// Stays returns when a user was in line: see gate.Places.
func (g *Gate) Stays(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (stays []gate.Stay, err error) {
	err = g.db.Conclude.AtOnce(ctx, func(at *sqldb.Snapshot) error {
		s, now, err := g.store.ReadRow(ctx, at, id)
		if err != nil {
			return err
		}
		var args []any
		for range 4 {
			args = append(args, string(user), string(id))
		}
		rows, err := at.QueryContext(ctx, staysQuery(g), append(args, string(id), gate.MaxStays)...)
		stays, err = sqldb.AllRows(rows, err, func(take sqldb.Scan) (stay gate.Stay, err error) {
			err = take(&stay.Generation, &stay.Number, sqldb.Time(&stay.JoinedAt), sqldb.Time(&stay.EndedAt), &stay.Ended)
			if ended, over := s.View(now).EndedLine(); stay.Ended == "" && over { // the window has passed, and no write has ended the generation yet
				stay.Ended, stay.EndedAt = ended.Reason, ended.EndedAt
			}
			return stay, err
		})
		slices.Reverse(stays)
		return err
	})
	return stays, sqldb.Wrap(err, "read who was in the line of %s", id)
}

// staysQuery returns the query of Stays. Its arguments are four times user and campaign, then the campaign and the most rows. It finds tickets that
// have not ended or were sent away, those that ended without a coupon of their own, and those of the user's coupons, voided ones too.
func staysQuery(g *Gate) string {
	const columns = `t.campaign_id, t.generation, t.ticket, t.joined_at, t.ended_at, t.outcome`
	const ofCoupons = ` FROM coupons c JOIN tickets t ON t.campaign_id = c.campaign_id AND t.generation = c.generation AND t.ticket = c.ticket WHERE `
	return `SELECT t.generation, t.ticket, t.joined_at, COALESCE(t.ended_at, p.ended_at), COALESCE(t.outcome, p.reason, '') FROM (
		SELECT ` + columns + ` FROM tickets t WHERE t.` + g.queries.waiter + ` = ? AND t.campaign_id = ? AND t.ended_at IS NULL
		UNION ALL SELECT ` + columns + ` FROM tickets t WHERE t.` + g.queries.leaver + ` = ? AND t.campaign_id = ? AND t.outcome IN ('left', 'already_issued')
		UNION ALL SELECT ` + columns + ofCoupons + `c.` + g.store.HolderColumn() + ` = ? AND c.campaign_id = ? AND c.voided_at IS NULL
		UNION ALL SELECT ` + columns + ofCoupons + `c.number IN (` + campaign.VoidsOf + `) AND c.campaign_id = ?
	) t LEFT JOIN past_lines p ON p.campaign_id = t.campaign_id AND p.generation = t.generation AND t.ended_at IS NULL
	ORDER BY t.generation DESC, t.ticket DESC LIMIT ?`
}

// LineOf returns a campaign's line: see gate.Places.
func (g *Gate) LineOf(ctx context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = g.db.Conclude.AtOnce(ctx, func(at *sqldb.Snapshot) error {
		s, now, err := g.store.ReadRow(ctx, at, id)
		if err != nil {
			return err
		}
		state = gate.LineState{View: s.View(now)}
		state.Campaign.Pace = s.Pace
		if ended, over := s.View(now).EndedLine(); over && !g.store.Remote() { // the window has passed, and no write has ended the generation yet
			state.Past, state.Line = []firstcome.PastLine{ended}, s.Line.Next()
		}
		if state.Joined, err = nextJoined(ctx, at, id, state.Line); err != nil {
			return err
		}
		rows, err := at.QueryContext(ctx, `SELECT `+campaign.PastColumns+` FROM past_lines
			WHERE campaign_id = ? ORDER BY generation DESC LIMIT ?`, id, gate.MaxPastLines-len(state.Past))
		past, err := sqldb.AllRows(rows, err, campaign.ScanPast)
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
		ORDER BY campaign_id, generation, ticket LIMIT 1`, string(id), l.Generation, l.ServedThrough).Scan(sqldb.Time(&joined))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return joined, err
}
