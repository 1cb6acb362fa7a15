package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

const (
	// defaultBacklog is that of the gate.
	defaultBacklog = 1_000_000
	// anyBacklog stands for no limit: more than a gate gives before somebody looks.
	anyBacklog = 1 << 40
	// attemptTime is how long a rebuild may give no sign of life before another node begins one.
	attemptTime = 10 * time.Second
)

// grant returns the highest number that the gate may give of a campaign in the state s: as many beyond the highest in the ledger as
// may be in force besides, and no more than the backlog. It never falls. A coupon that is voided makes room for one more, so each change
// grants anew. So what a gate may have given is known, whatever became of the gate.
func (l *Ledger) grant(s *stock) int64 {
	if !l.remote() {
		return 0
	}
	return max(s.ceiling, max(s.lastNumber, s.drained)+min(l.backlog, s.Quantity-s.inForce))
}

// backlogOf returns the numbers that a gate may give beyond the ledger's highest, given the option.
func backlogOf(option int64) int64 {
	if option < 0 {
		return anyBacklog
	}
	return cmp.Or(min(option, anyBacklog), defaultBacklog)
}

// BeginRebuild claims the campaign's row for a new attempt at a rebuild. Until FinishRebuild only a batch of this attempt adds
// coupons. flow.ErrOutdone says that another attempt is under way, which gave a sign of life within the last ten seconds, or that
// the campaign is not in the given epoch any more, so somebody was faster. Epoch 0 is any: then a campaign that another Redis decided is this
// node's gate's from then on. Else that is firstcome.ErrGateMismatch.
func (l *Ledger) BeginRebuild(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64) (flow.Rebuild, error) {
	r, err := l.begin(ctx, actor, id, func(s stock) (int64, error) {
		switch {
		case s.away != nil && epoch != 0:
			return 0, s.away
		case s.retiredAt.IsZero() && isUnmade(s.applied, s.lastNumber, s.drained):
			return 0, fmt.Errorf("%w: it is being made", firstcome.ErrBusy)
		case s.retiredAt.IsZero() && epoch != 0 && epoch != s.epoch:
			return 0, flow.ErrOutdone
		}
		return s.attempt + 1, nil
	})
	return r, wrap(err, "begin to rebuild the gate of %s", id)
}

// begin claims the campaign's row for an attempt, whose number next returns, or an error.
func (l *Ledger) begin(ctx context.Context, actor string, id firstcome.CampaignID, next func(stock) (attempt int64, err error)) (r flow.Rebuild, err error) {
	err = l.update(ctx, func(t *tx) error {
		s, err := l.rowToChange(t, id)
		if err != nil {
			return err
		}
		if !l.remote() || l.gate == "" {
			return ErrUnnamedGate
		}
		attempt, err := next(s)
		if err == nil {
			err = l.passes(t, id)
		}
		if err != nil {
			return err
		}
		now, err := l.now(t)
		if err != nil {
			return err
		}
		switch {
		case !s.retiredAt.IsZero():
			return flow.ErrRetired
		case !s.rebuildingAt.IsZero() && now.Before(s.rebuildingAt.Add(attemptTime)) && !now.Before(s.rebuildingAt):
			return flow.ErrOutdone
		}
		r = flow.Rebuild{Campaign: id, Marker: s.marker, Attempt: attempt, Epoch: s.epoch, Version: s.Version, Drained: s.drained, Actor: actor, InForce: s.inForce}
		_, err = t.change(`UPDATE campaigns SET attempt = ?, rebuilding_at = ?, gate = ? WHERE id = ?`, r.Attempt, now.UnixMicro(), l.gate, string(id))
		return err
	})
	return r, err
}

// GoesOn is a sign of life of a rebuild. flow.ErrOutdone says that another attempt has begun.
func (l *Ledger) GoesOn(ctx context.Context, r flow.Rebuild) error {
	err := l.update(ctx, func(t *tx) error {
		now, err := l.now(t)
		if err != nil {
			return err
		}
		n, err := t.change(`UPDATE campaigns SET rebuilding_at = ? WHERE id = ? AND attempt = ? AND rebuilding_at IS NOT NULL`,
			now.UnixMicro(), string(r.Campaign), r.Attempt)
		if err == nil && n == 0 {
			err = flow.ErrOutdone
		}
		return err
	})
	return wrap(err, "rebuild the gate of %s", r.Campaign)
}

// GiveUpRebuild ends an attempt that failed, so that another may begin at once. The gate stays frozen.
func (l *Ledger) GiveUpRebuild(ctx context.Context, r flow.Rebuild) error {
	err := l.update(ctx, func(t *tx) error {
		_, err := t.change(`UPDATE campaigns SET rebuilding_at = NULL WHERE id = ? AND attempt = ?`, string(r.Campaign), r.Attempt)
		return err
	})
	return wrap(err, "give up to rebuild the gate of %s", r.Campaign)
}

// LastRebuild returns what the last rebuild of a campaign's gate came to. Of a gate that was never rebuilt that is epoch 1, in which
// nothing was lost.
func (l *Ledger) LastRebuild(ctx context.Context, id firstcome.CampaignID) (flow.Rebuilt, error) {
	was := storedRebuild{Epoch: 1}
	var payload string
	err := l.conclude.QueryRowContext(ctx, `SELECT payload FROM changes WHERE campaign_id = ? AND kind = 'rebuild' ORDER BY version DESC LIMIT 1`, string(id)).
		Scan(&payload)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = nil
	case err == nil:
		err = json.Unmarshal([]byte(payload), &was)
	}
	return flow.Rebuilt{Campaign: id, Epoch: was.Epoch, Lost: was.Lost, Carried: was.Carried, LostPlaces: was.LostPlaces}, wrap(err, "read the last rebuild of %s", id)
}

// Refills calls each with what a rebuilt gate of the campaign has to have as holders, at one instant: first the coupons of open dead
// letters, then the coupons in force. A user may come twice: the later one holds. Among them are the coupons that were issued to a ticket
// and are void, with VoidedAt: their users hold none, and were served. The mark says which state of the ledger it was.
func (l *Ledger) Refills(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) (mark flow.Mark, err error) {
	err = l.conclude.atOnce(ctx, func(s *snapshot) error {
		if err := s.QueryRowContext(ctx, markQuery, string(id)).Scan(fieldsOf(&mark)...); err != nil {
			return err
		}
		rows, err := s.QueryContext(ctx, `SELECT payload, resolved_at FROM dead_letters
			WHERE campaign_id = ? AND number IS NOT NULL AND user_id IS NOT NULL AND (resolved_at IS NULL OR resolved_by = 'voided') ORDER BY id`, string(id))
		if err := eachRow(rows, err, func(take scan) error { return refillLetter(take, each) }); err != nil {
			return err
		}
		rows, err = s.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
			WHERE campaign_id = ? AND (voided_at IS NULL OR ticket IS NOT NULL) ORDER BY number`, string(id))
		return scanCoupons(rows, err, each)
	})
	return mark, wrap(err, "read what the gate of %s has to have", id)
}

// refillLetter is Refills of a dead letter that is open, or void.
func refillLetter(take scan, each func(firstcome.Coupon) error) error {
	var payload string
	var voided time.Time
	if err := take(&payload, when(&voided)); err != nil {
		return err
	}
	var stored storedCoupon
	err := json.Unmarshal([]byte(payload), &stored)
	c := stored.coupon()
	c.VoidedAt, c.Buried = voided, voided.IsZero()
	switch {
	case !c.Buried && (err != nil || c.Ticket == 0):
		return nil
	case err != nil:
		return fmt.Errorf("an open dead letter cannot be read: void it, and rebuild again: %w", err)
	}
	return each(c)
}

// markQuery reads the mark of a campaign, which fieldsOf takes.
const markQuery = `SELECT version, position, ` + openLetters + `, generation,
	(SELECT COALESCE(MAX(p.generation), 0) FROM past_lines p WHERE p.campaign_id = campaigns.id AND p.reason <> '` + reasonLost + `') FROM campaigns WHERE id = ?`

func fieldsOf(m *flow.Mark) []any {
	return []any{&m.Version, &m.Position, &m.Letters, &m.Generation, &m.Ended}
}

// openLetters counts the open dead letters of a campaign's row.
const openLetters = `(SELECT count(*) FROM dead_letters d WHERE d.campaign_id = campaigns.id AND d.resolved_at IS NULL)`

// FinishRebuild ends the campaign's epoch: every number that its gate may have given, and that is neither a coupon nor a dead letter,
// is lost. A change that has not reached the gate is done by that, as the gate would have done it. FinishRebuild returns what the gate
// begins the next epoch with. flow.ErrMoved says that the ledger is not in the state any more that was loaded, flow.ErrOutdone that another
// attempt has begun: nothing is done then.
func (l *Ledger) FinishRebuild(ctx context.Context, r flow.Rebuild, loaded flow.Loaded, frozen flow.Frozen) (fill flow.Refill, err error) {
	err = l.locked(ctx, r.Campaign, func(t *tx, s stock) error {
		if s.attempt != r.Attempt || s.rebuildingAt.IsZero() {
			return flow.ErrOutdone
		}
		var now flow.Mark
		err := t.row(markQuery, string(s.ID)).Scan(fieldsOf(&now)...)
		if err == nil && now != loaded.Mark {
			err = flow.ErrMoved
		}
		if err == nil {
			err = l.passes(t, r.Campaign) // nodes may have begun to relay meanwhile
		}
		if err == nil {
			err = l.concludeRebuilt(t, &s)
		}
		if err == nil {
			fill, err = l.nextEpoch(t, s, r.Actor, frozen, loaded.Carried)
		}
		return err
	})
	return fill, wrap(err, "rebuild the gate of %s", r.Campaign)
}

// concludeRebuilt does the change that has not reached the gate, if there is one. Only a lower quantity may be refused.
func (l *Ledger) concludeRebuilt(t *tx, s *stock) error {
	if !s.pending() {
		return nil
	}
	var kind firstcome.ChangeKind
	var payload string
	err := t.row(`SELECT kind, payload FROM changes WHERE campaign_id = ? AND version = ?`, string(s.ID), s.Version).Scan(&kind, &payload)
	if err != nil {
		return err
	}
	refused := false
	if kind == firstcome.ChangeTerms && s.Version > s.termsVersion {
		terms, err := decodeTerms(payload)
		if err != nil {
			return err
		}
		var letters int64
		if err := t.row(`SELECT `+openLetters+` FROM campaigns WHERE id = ?`, string(s.ID)).Scan(&letters); err != nil {
			return err
		}
		refused = terms.Quantity < s.inForce+letters
	}
	if err := t.conclude(*s, s.Version, refused); err != nil {
		return err
	}
	concluded, err := l.rowToChange(t, s.ID)
	*s = concluded
	return err
}

// A storedRebuild is a rebuild as the ledger keeps it among the changes.
type storedRebuild struct {
	Epoch   int64 `json:"epoch"`
	Through int64 `json:"through"` // the number up to which the gate may have given numbers
	Lost    int64 `json:"lost"`
	// People in line who kept their places, and how many did not, at least.
	Carried    int64 `json:"carried,omitempty"`
	LostPlaces int64 `json:"lost_places,omitempty"`
}

// nextEpoch writes the lost numbers, the change, the line and the row.
func (l *Ledger) nextEpoch(t *tx, s stock, actor string, frozen flow.Frozen, carried flow.Carried) (fill flow.Refill, err error) {
	ended := max(s.ceiling, s.lastNumber, s.drained)
	if frozen.Through > 0 {
		ended = max(frozen.Through, s.lastNumber, s.drained)
	}
	lost, err := t.lose(s, ended)
	if err != nil {
		return fill, err
	}
	s.epoch, s.drained, s.ceiling = s.epoch+1, ended, ended
	if s.decidedAt.Before(frozen.DecidedAt) {
		s.decidedAt = frozen.DecidedAt
	}
	if frozen.Line.Later(s.line) {
		s.line = frozen.Line
	}
	s.line.Due = frozen.Line.Due
	rebuilt := storedRebuild{s.epoch, ended, lost, carried.People, max(0, s.line.Waiting-carried.People-carried.Passed)}
	made, err := l.addChange(t, s, firstcome.ChangeRebuild, textOf(rebuilt))
	if err != nil {
		return fill, err
	}
	ceiling := l.grant(&s)
	_, err = t.change(`UPDATE campaigns SET epoch = ?, drained_through = ?, applied = ?, rebuilding_at = NULL WHERE id = ?`,
		s.epoch, ended, made.Version, string(s.ID))
	if err == nil {
		fill.Past, err = t.carryLine(&s, carried, made.At)
	}
	if err == nil {
		err = t.log(made.At, actor, "campaign.rebuild", entry{campaign: s.ID, detail: logDetail(firstcome.ChangeRebuild, "", textOf(rebuilt))})
	}
	if err == nil {
		s.OpenedAt, err = t.firstIssue(s)
	}
	s.Version = made.Version
	fill = flow.Refill{
		Campaign: s.Campaign, TermsVersion: s.termsVersion, Epoch: s.epoch, LastNumber: ended, Ceiling: ceiling,
		Issued: s.issued, DecidedAt: made.At, Line: s.line, Past: fill.Past, Lost: lost, LostPlaces: rebuilt.LostPlaces,
	}
	return fill, err
}

// firstIssue returns when the campaign's first coupon was issued, the zero time if none was.
func (t *tx) firstIssue(s stock) (at time.Time, err error) {
	err = t.row(`SELECT issued_at FROM coupons WHERE campaign_id = ? ORDER BY number LIMIT 1`, string(s.ID)).Scan(when(&at))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// lose writes the numbers up to one that are neither coupons nor dead letters, as lost before the next epoch, and counts them.
func (t *tx) lose(s stock, through int64) (lost int64, err error) {
	args := []any{string(s.ID), s.drained, through}
	rows, err := t.query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
		UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`, append(args, args...)...)
	var gaps [][2]int64 // the first number and how many
	last := s.drained
	gap := func(before int64) {
		if n := before - last - 1; n > 0 {
			gaps = append(gaps, [2]int64{last + 1, n})
			lost += n
		}
		last = before
	}
	err = eachRow(rows, err, func(take scan) error {
		number, err := one[int64](take)
		if err == nil {
			gap(number)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	gap(through + 1)
	for _, g := range gaps {
		if _, err := t.change(`INSERT INTO lost (campaign_id, number, count, epoch) VALUES (?, ?, ?, ?)`, string(s.ID), g[0], g[1], s.epoch+1); err != nil {
			return 0, err
		}
	}
	return lost, nil
}

// leaveLost removes the coupons of an earlier epoch from fresh whose numbers a rebuild said to be lost, and counts them: their gate was
// cut off or frozen when it was rebuilt elsewhere. The ledger never takes them, and they are no dead letters, because their stock is
// not taken.
func (r *recording) leaveLost() error {
	if len(r.fresh) == 0 || r.epochGiven >= r.epoch {
		return nil
	}
	rows, err := r.query(`SELECT number, number + count - 1 FROM lost WHERE campaign_id = ? AND epoch > ? AND number <= ? ORDER BY number`,
		string(r.ID), r.epochGiven, r.fresh[len(r.fresh)-1].Number)
	kept := r.fresh[:0]
	n := 0
	err = eachRow(rows, err, func(take scan) error {
		var first, last int64
		if err := take(&first, &last); err != nil {
			return err
		}
		for ; n < len(r.fresh) && r.fresh[n].Number <= last; n++ {
			if r.fresh[n].Number < first {
				kept = append(kept, r.fresh[n])
				continue
			}
			r.Lost++
		}
		return nil
	})
	r.fresh = append(kept, r.fresh[n:]...)
	return err
}

// fenced refuses new coupons while the gate is rebuilt, but those of that very attempt.
func (r *recording) fenced() error {
	if len(r.fresh) == 0 {
		return nil
	}
	return r.fence()
}

// fence is the error of whoever would add to a campaign whose gate is rebuilt, or nil.
func (r *recording) fence() error {
	if r.rebuildingAt.IsZero() || r.stock.attempt == r.attempt {
		return nil
	}
	return fmt.Errorf("%w: %w: attempt %d", firstcome.ErrBusy, flow.ErrRebuilding, r.stock.attempt)
}
