package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Followers keeps the leases and the cursors of followers in the ledger. A follower copies the facts of all campaigns somewhere
// else, such as to a topic: see package follow.
type Followers struct{ db *sqldb.DB }

// Follow gives a follower's lease to an owner, a name that only one node has. follow.ErrFollowed means that another owner has the
// lease. All nodes must ask for leases of the same length.
func (fs *Followers) Follow(ctx context.Context, follower, owner string, lease time.Duration) (follow.Following, error) {
	var f follow.Following
	err := fs.db.Repeat(ctx, func(t *sqldb.Tx) error {
		now, err := fs.db.Now(t)
		if err != nil {
			return err
		}
		f = follow.Following{Follower: follower}
		var had, ends string
		var until time.Time
		err = t.Row(`SELECT attempt, owner, leased_until, target, ends FROM followers WHERE name = ?`+fs.db.Dialect.ForUpdate, follower).
			Scan(&f.Attempt, &had, sqldb.Time(&until), &f.Target, &ends)
		if errors.Is(err, sql.ErrNoRows) {
			f.Attempt = 1
			_, err = t.Change(`INSERT INTO followers (name, attempt, owner, leased_until, target, ends) VALUES (?, 1, ?, ?, '', '[]')`,
				follower, owner, now.Add(lease).UnixMicro())
			return err
		}
		if err != nil {
			return err
		}
		// A lease that ends later than any lease that begins now was given before the clock was set back: it does not count.
		if had != owner && until.After(now) && !until.After(now.Add(lease)) {
			return follow.ErrFollowed
		}
		if err := json.Unmarshal([]byte(ends), &f.Ends); err != nil {
			return fmt.Errorf("read the ends of its partitions: %w", err)
		}
		f.Attempt++
		_, err = t.Change(`UPDATE followers SET attempt = ?, owner = ?, leased_until = ? WHERE name = ?`, f.Attempt, owner, now.Add(lease).UnixMicro(), follower)
		return err
	})
	return f, sqldb.Wrap(err, "follow the facts for %s", follower)
}

// Followed notes a follower's progress and extends its lease to the given time from now. A lease of 0 ends it. f has the current
// target and the current ends of its partitions. follow.ErrFollowed means that another node has the lease; then Followed notes
// nothing. It may be repeated.
func (fs *Followers) Followed(ctx context.Context, f follow.Following, lease time.Duration, cursors []follow.Cursor) error {
	ends, err := json.Marshal(f.Ends)
	if err != nil {
		return err
	}
	err = fs.db.Repeat(ctx, func(t *sqldb.Tx) error {
		now, err := fs.db.Now(t)
		if err != nil {
			return err
		}
		var attempt int64
		err = t.Row(`SELECT attempt FROM followers WHERE name = ?`+fs.db.Dialect.ForUpdate, f.Follower).Scan(&attempt)
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && attempt != f.Attempt:
			return follow.ErrFollowed
		case err != nil:
			return err
		}
		if _, err := t.Change(`UPDATE followers SET leased_until = ?, target = ?, ends = ? WHERE name = ?`,
			now.Add(lease).UnixMicro(), f.Target, string(ends), f.Follower); err != nil {
			return err
		}
		for _, c := range cursors {
			if err := campaign.PutCursor(t, f.Follower, c); err != nil {
				return err
			}
		}
		return nil
	})
	return sqldb.Wrap(err, "note how far %s has come", f.Follower)
}

const cursorsQuery = `SELECT c.id, COALESCE(k.position, 0), c.position, COALESCE(k.state, '') FROM campaigns c
	LEFT JOIN cursors k ON k.follower = ? AND k.campaign_id = c.id WHERE `

func scanCursor(take sqldb.Scan) (c follow.Cursor, err error) {
	err = take(&c.Campaign, &c.Position, &c.Top, &c.State)
	return c, err
}

// Behind returns at most limit of a follower's cursors that are not at the last fact of their campaign, in the order of the
// campaigns' ids. It leaves out cursors that are known to be ahead.
func (fs *Followers) Behind(ctx context.Context, follower string, limit int) ([]follow.Cursor, error) {
	rows, err := fs.db.Conclude.QueryContext(ctx, cursorsQuery+`c.position <> COALESCE(k.position, 0) AND COALESCE(k.state, '') <> 'ahead' ORDER BY c.id LIMIT ?`, follower, limit)
	all, err := sqldb.AllRows(rows, err, scanCursor)
	return all, sqldb.Wrap(err, "read which facts %s lacks", follower)
}

// CursorOf returns a follower's cursor of a campaign, or firstcome.ErrNoCampaign.
func (fs *Followers) CursorOf(ctx context.Context, follower string, id firstcome.CampaignID) (c follow.Cursor, err error) {
	err = fs.db.Conclude.QueryRowContext(ctx, cursorsQuery+`c.id = ?`, follower, string(id)).Scan(&c.Campaign, &c.Position, &c.Top, &c.State)
	if errors.Is(err, sql.ErrNoRows) {
		err = firstcome.ErrNoCampaign
	}
	return c, sqldb.Wrap(err, "read how far %s has come with %s", follower, id)
}

// A Lag is how far a follower is behind.
type Lag struct {
	Facts int64     // facts that its target lacks
	Since time.Time // when the oldest of these facts happened; zero if there is none
	Ahead int64     // campaigns whose cursors are ahead
}

// laggards bounds the campaigns whose oldest missing fact is read for a Lag.
const laggards = 50

// FollowerLag returns how far a follower is behind. For Since it only reads the first campaigns, by id, that are behind.
func (fs *Followers) FollowerLag(ctx context.Context, follower string) (lag Lag, err error) {
	err = fs.db.Read.AtOnce(ctx, func(s *sqldb.Snapshot) error {
		const behind = `FROM campaigns c LEFT JOIN cursors k ON k.follower = ? AND k.campaign_id = c.id `
		err := s.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN c.position > COALESCE(k.position, 0) THEN c.position - COALESCE(k.position, 0) ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN k.state = 'ahead' THEN 1 ELSE 0 END), 0) `+behind, follower).Scan(&lag.Facts, &lag.Ahead)
		if err != nil || lag.Facts == 0 {
			return err
		}
		rows, err := s.QueryContext(ctx, cursorsQuery+`c.position > COALESCE(k.position, 0) ORDER BY c.id LIMIT ?`, follower, laggards)
		cursors, err := sqldb.AllRows(rows, err, scanCursor)
		if err != nil {
			return err
		}
		for _, c := range cursors {
			err := campaign.Facts(ctx, s, c.Campaign, c.Position, 1, func(f firstcome.Fact) error {
				if at := f.At(); !at.IsZero() && (lag.Since.IsZero() || at.Before(lag.Since)) {
					lag.Since = at
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return lag, sqldb.Wrap(err, "read how far %s is behind", follower)
}

// ErrNoFact means that a campaign has no fact at a position.
var ErrNoFact = errors.New("the campaign has no fact at this position")

// ReplayFacts sets a follower's cursor of a campaign back, so that the follower copies the facts from a position on again, even if
// its target has them. The position may also be the next one after the last fact. ReplayFacts ends the follower's lease, so the node
// that had it reads the cursors again.
func (fs *Followers) ReplayFacts(ctx context.Context, actor, follower string, id firstcome.CampaignID, from int64) error {
	err := fs.db.Repeat(ctx, func(t *sqldb.Tx) error {
		var top int64
		err := t.Row(`SELECT position FROM campaigns WHERE id = ?`, string(id)).Scan(&top)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return firstcome.ErrNoCampaign
		case err == nil && (from < 1 || from > top+1):
			return fmt.Errorf("%w: its positions are 1 to %d", ErrNoFact, top)
		case err != nil:
			return err
		}
		if err := campaign.Interrupt(t, follower, ``); err != nil {
			return err
		}
		if err := campaign.PutCursor(t, follower, follow.Cursor{Campaign: id, Position: from - 1, State: follow.Again}); err != nil {
			return err
		}
		return fs.logReplay(t, actor, follower, from, campaign.Entry{Campaign: id})
	})
	return sqldb.Wrap(err, "replay the facts of %s", id)
}

// ReplayAllFacts sets a follower back to the first fact of every campaign. The follower forgets its target, so the next target may be
// a new one.
func (fs *Followers) ReplayAllFacts(ctx context.Context, actor, follower string) error {
	err := fs.db.Repeat(ctx, func(t *sqldb.Tx) error {
		if err := campaign.Interrupt(t, follower, `, target = '', ends = '[]'`); err != nil {
			return err
		}
		if _, err := t.Change(`UPDATE cursors SET position = 0, state = 'again' WHERE follower = ?`, follower); err != nil {
			return err
		}
		return fs.logReplay(t, actor, follower, 1, campaign.Entry{})
	})
	return sqldb.Wrap(err, "replay the facts of all campaigns")
}

func (fs *Followers) logReplay(t *sqldb.Tx, actor, follower string, from int64, e campaign.Entry) error {
	now, err := fs.db.Now(t)
	if err != nil {
		return err
	}
	return campaign.AddLogJSON(t, now, actor, "facts.replay", map[string]any{"follower": follower, "from": from}, e)
}
