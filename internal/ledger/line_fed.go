package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// Of a line that a feed keeps, the ledger has no tickets. The campaign's row has the generation, the offset of its first ticket and how
// far it is served; leavers has who left.
//
//	(not begun) ── Begin ──▶ served by turns ── sold out or closed ──▶ (not begun), the next generation

var _ gate.Fed = (*Ledger)(nil)

// errNotFed says that a campaign's line is not in a topic.
func errNotFed(id firstcome.CampaignID) error {
	return fmt.Errorf("%w: no topic keeps the line of %s", firstcome.ErrGateMismatch, id)
}

// errMoved says that a campaign's line is in another feed than a node knew.
var errMoved = fmt.Errorf("%w: the campaign's line moves to another partition", firstcome.ErrGateUnavailable)

// Feeds lists the campaigns whose lines feeds keep: see gate.Feeder.
func (l *Ledger) Feeds(ctx context.Context, each func(firstcome.CampaignID, firstcome.Feed)) error {
	rows, err := l.conclude.QueryContext(ctx, `SELECT id, feed_topic, feed_partition FROM campaigns
		WHERE feed_partition IS NOT NULL AND NOT closed AND gate = ? AND secret = ?`, l.gate, l.fingerprint)
	err = eachRow(rows, err, func(take scan) error {
		var id firstcome.CampaignID
		var feed firstcome.Feed
		err := take(&id, &feed.Topic, &feed.Partition)
		if err == nil {
			each(id, feed)
		}
		return err
	})
	return wrap(err, "read which lines are in a topic")
}

// freed is how long a campaign has to be over until another one may have its partition. Nodes whose leases ended at the closing may still
// append to it before.
const freed = time.Minute

// FreePartition returns a partition, of so many of a topic, that no campaign has to itself or is to get. It has those give theirs up that were
// closed or have been over for a minute, unless a change is on its way to the gate, by which they may go on. firstcome.ErrNoPartition says that
// there is none.
func (l *Ledger) FreePartition(ctx context.Context, topic string, partitions int32) (free int32, err error) {
	err = l.update(ctx, func(t *tx) error {
		now, err := l.now(t)
		if err != nil {
			return err
		}
		over := now.Add(-freed).UnixMicro()
		_, err = t.change(`UPDATE campaigns SET feed_partition = NULL
			WHERE feed_topic = ? AND feed_partition IS NOT NULL AND (closed_at <= ? OR closes_at <= ? AND applied = version)`, topic, over, over)
		if err != nil {
			return err
		}
		rows, err := t.query(`SELECT feed_partition FROM campaigns WHERE feed_topic = ? AND feed_partition IS NOT NULL`, topic)
		taken, err := allRows(rows, err, one[int32])
		if err != nil {
			return err
		}
		coming, err := t.comingPartitions("", topic)
		if err != nil {
			return err
		}
		free = 0
		for slices.Contains(taken, free) || slices.Contains(coming, free) {
			free++
		}
		if free >= partitions {
			return firstcome.ErrNoPartition
		}
		return nil
	})
	return free, wrap(err, "find a partition for a line")
}

// holdFeed returns firstcome.ErrFeedTaken if another campaign has a feed to itself.
func (t *tx) holdFeed(id firstcome.CampaignID, feed *firstcome.Feed) error {
	if feed == nil || feed.Partition < 0 {
		return nil
	}
	taken, err := t.exists(`SELECT count(*) FROM campaigns WHERE feed_topic = ? AND feed_partition = ? AND id <> ?`, feed.Topic, feed.Partition, string(id))
	if err != nil {
		return err
	}
	coming, err := t.comingPartitions(id, feed.Topic)
	if err == nil && (taken || slices.Contains(coming, feed.Partition)) {
		err = firstcome.ErrFeedTaken
	}
	return err
}

// comingPartitions returns the partitions of a topic that other campaigns get by changes which are on their way to the gate. They are not in
// the campaigns' rows yet.
func (t *tx) comingPartitions(id firstcome.CampaignID, topic string) (coming []int32, err error) {
	rows, err := t.query(`SELECT h.payload FROM campaigns c JOIN changes h ON h.campaign_id = c.id AND h.version > c.applied
		WHERE c.applied < c.version AND c.feed_topic IS NOT NULL AND c.id <> ? AND h.kind = 'terms'`, string(id))
	err = eachRow(rows, err, func(take scan) error {
		payload, err := one[string](take)
		if err != nil {
			return err
		}
		terms, unreadable := decodeTerms(payload) // of which no gate hears either: see Pending
		if unreadable == nil && terms.Feed != nil && terms.Feed.Topic == topic {
			coming = append(coming, terms.Feed.Partition)
		}
		return nil
	})
	return coming, err
}

// hasFeed tells whether a feed is the campaign's.
func (s *stock) hasFeed(feed *firstcome.Feed) bool {
	return s.Feed == nil && feed == nil || s.Feed != nil && feed != nil && *s.Feed == *feed
}

// Begin notes where a generation begins: see gate.Fed. A gate beside the ledger has the ledger note it first. So a rebuild knows it, also of
// a generation of which no recorder has told yet.
func (l *Ledger) Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (line firstcome.Line, err error) {
	err = l.update(ctx, func(t *tx) error {
		s, err := l.fedInRow(t, id)
		if err != nil {
			return err
		}
		if err := t.settledFeed(s); err != nil {
			return err
		}
		if !s.hasFeed(&feed) { // the offset is one of the former
			return errMoved
		}
		switch {
		case l.remote() && generation > s.line.Generation:
			s.line = firstcome.Line{Generation: generation, Due: s.line.Due}
		case generation != s.line.Generation || s.line.Begun:
			line = s.line
			return nil
		}
		s.line.First, s.line.Begun = first, true
		line = s.line
		delete(t.stocks, id) // the row is another one from now on
		return t.setLine(id, s.line)
	})
	return line, wrap(err, "begin the line of %s", id)
}

// fedInRow is lineInRow of a campaign whose line a feed keeps.
func (l *Ledger) fedInRow(t *tx, id firstcome.CampaignID) (stock, error) {
	s, err := l.lineInRow(t, id)
	if err == nil && s.Feed == nil {
		err = errNotFed(id)
	}
	return s, err
}

// ServeTurn serves a part of a feed: see gate.Fed.
func (l *Ledger) ServeTurn(ctx context.Context, id firstcome.CampaignID, turn gate.Turn) (gate.Turned, error) {
	if l.remote() {
		return gate.Turned{}, fmt.Errorf("%w: %s serves its line", firstcome.ErrGateMismatch, l.gate)
	}
	var turned gate.Turned
	err := l.update(ctx, func(t *tx) (err error) {
		turned, err = l.serveTurn(t, id, turn)
		return err
	})
	if err != nil { // the writer may still be at turned
		return gate.Turned{}, wrap(err, "serve the line of %s", id)
	}
	return turned, nil
}

// serveTurn is ServeTurn within a transaction.
func (l *Ledger) serveTurn(t *tx, id firstcome.CampaignID, turn gate.Turn) (turned gate.Turned, err error) {
	s, err := l.fedInRow(t, id)
	if err != nil {
		return turned, err
	}
	clock := l.clockOf(s)
	before, now := s, s.at(clock)
	why := s.sendsAway(now)
	if !t.endLine(&s, now) && s.line.Begun && turn.Generation == s.line.Generation && turn.From == s.line.Serving() && s.isServed(now) {
		if turned.Coupons, turned.Over, err = l.serveUsers(t, &s, turn.Users, now, clock); err != nil {
			return turned, err
		}
		if why = s.sendsAway(now); why != 0 {
			t.endLine(&s, now)
		}
	}
	if why != 0 {
		turned.Ended = why.String()
	}
	turned.Line, turned.Feed, turned.Again = s.line, s.Feed, l.again(&s, now, clock)
	t.stage(before, s, turned.Coupons, now)
	return turned, t.flush()
}

// serveUsers ends the next tickets, which are the users', until the pace has no more turns.
func (l *Ledger) serveUsers(t *tx, s *stock, users []firstcome.UserID, now, clock time.Time) (coupons []firstcome.Coupon, over int64, err error) {
	holders, err := t.holders([]*claims{{id: s.ID, users: users}})
	if err != nil {
		return nil, 0, err
	}
	away, err := t.leavers(s, users)
	if err != nil {
		return nil, 0, err
	}
	next := s.line.Serving()
	wanted := int64(0)
	seen := map[firstcome.UserID]bool{}
	passed := func(n int) bool {
		user := users[n]
		return user == "" || holders[s.ID][user] != nil || away[user] >= next+int64(n)
	}
	for n, user := range users {
		if !passed(n) && !seen[user] {
			seen[user] = true
			wanted++
		}
	}
	turns, due := s.seen().Pace.Take(s.line.Due, clock, min(s.free(), wanted))
	if turns > 0 || due.Before(s.line.Due) {
		s.line.Due = due
	}
	for n, user := range users {
		switch {
		case passed(n):
			over++
			if user != "" && holders[s.ID][user] != nil {
				s.line.Served++
			}
		case turns == 0:
			return coupons, over, nil
		default:
			turns--
			coupon := l.issue(s, user, now)
			coupon.Generation, coupon.Ticket = s.line.Generation, next+int64(n)
			coupons = append(coupons, coupon)
			holders[s.ID][user] = &coupon
			s.line.Served++
			s.OpenedAt, s.SoldOutAt = s.seen().Opened(now), s.SoldOut(s.inForce, now)
		}
		s.line.ServedThrough++
		s.line.LastTicket++
	}
	return coupons, over, nil
}

// leavers returns through which ticket of the generation each of users left, if they did.
func (t *tx) leavers(s *stock, users []firstcome.UserID) (map[firstcome.UserID]int64, error) {
	left := map[firstcome.UserID]int64{}
	return left, inChunks(users, func(users []firstcome.UserID) error {
		args := []any{string(s.ID), s.line.Generation}
		for _, user := range users {
			args = append(args, string(user))
		}
		rows, err := t.query(repeated(`SELECT user_id, through FROM leavers WHERE campaign_id = ? AND generation = ? AND user_id IN (%s)`, `?`, len(users)), args...)
		return eachRow(rows, err, func(take scan) error {
			var user firstcome.UserID
			var through int64
			err := take(&user, &through)
			left[user] = through
			return err
		})
	})
}

// PlaceOf returns where a ticket of a feed stands: see gate.Fed.
func (l *Ledger) PlaceOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) (place firstcome.Place, coupon firstcome.Coupon, err error) {
	err = l.conclude.atOnce(ctx, func(at *snapshot) error {
		rows, err := at.QueryContext(ctx, l.dialect.couponOf, string(user), string(id))
		if coupon, err = only(rows, err); !errors.Is(err, firstcome.ErrNoCoupon) {
			return err
		}
		s, now, err := l.seeLine(ctx, at, id)
		if err != nil {
			return err
		}
		var through int64
		err = at.QueryRowContext(ctx, `SELECT through FROM leavers WHERE campaign_id = ? AND generation = ? AND user_id = ?`,
			string(id), ticket.Generation, string(user)).Scan(&through)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case s.hasEnded(ticket, now) || ticket.Number <= through:
			return firstcome.ErrNoTicket
		}
		place = s.seen().Place(s.line, ticket.Number, s.inForce, now)
		return nil
	})
	return place, coupon, wrap(err, "read a place in the line of %s", id)
}

// hasEnded tells whether a ticket of a feed has ended by now, unless its user left.
func (s *stock) hasEnded(ticket firstcome.Ticket, now time.Time) bool {
	return s.Feed == nil || !s.line.Begun || ticket.Generation != s.line.Generation || ticket.Number <= s.line.ServedThrough || s.sendsAway(now) != 0
}

// LeaveOf has a user's tickets passed over: see gate.Fed.
func (l *Ledger) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	err := l.repeat(ctx, func(t *tx) error {
		s, err := l.fedInRow(t, id)
		if err != nil {
			return err
		}
		rows, err := t.query(l.dialect.couponOf, string(user), string(id))
		switch _, err := only(rows, err); {
		case err == nil:
			return firstcome.ErrServed
		case !errors.Is(err, firstcome.ErrNoCoupon):
			return err
		}
		if s.hasEnded(through, l.decidesAt(s)) {
			return nil
		}
		return t.keepLeaver(id, user, through)
	})
	return wrap(err, "leave the line of %s", id)
}

// KeepLeaver notes that a user left at a gate beside the ledger: see gate.FedBook.
func (l *Ledger) KeepLeaver(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	err := l.update(ctx, func(t *tx) error {
		s, err := l.fedInRow(t, id)
		if err == nil && !s.rebuildingAt.IsZero() { // the attempt may have read before who left
			err = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, flow.ErrRebuilding)
		}
		if err != nil {
			return err
		}
		return t.keepLeaver(id, user, through)
	})
	return wrap(err, "note who left the line of %s", id)
}

// keepLeaver notes that a user left.
func (t *tx) keepLeaver(id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	raised, err := t.change(`UPDATE leavers SET through = ? WHERE campaign_id = ? AND generation = ? AND user_id = ? AND through < ?`,
		through.Number, string(id), through.Generation, string(user), through.Number)
	if err != nil || raised > 0 {
		return err
	}
	known, err := t.exists(`SELECT count(*) FROM leavers WHERE campaign_id = ? AND generation = ? AND user_id = ?`, string(id), through.Generation, string(user))
	if err != nil || known {
		return err
	}
	_, err = t.change(`INSERT INTO leavers (campaign_id, generation, user_id, through) VALUES (?, ?, ?, ?)`,
		string(id), through.Generation, string(user), through.Number)
	return err
}
