package ledger

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// firstEpoch is the epoch of a campaign whose gate has never lost anything.
const firstEpoch = 1

// Campaigns makes and changes campaigns, and knows which changes their gates lack.
type Campaigns struct {
	db   *sqldb.DB
	rows *rows
}

// Create makes a campaign, which is its change 1. ErrCampaignExists says that its id is
// taken, a joined FieldError that its terms are not allowed.
func (cs *Campaigns) Create(ctx context.Context, actor string, id firstcome.CampaignID, terms firstcome.Terms) error {
	if err := terms.Check(); err != nil {
		return err
	}
	if cs.rows.gate == "" {
		return ErrUnnamedGate
	}
	payload, err := encodeTerms(terms)
	if err != nil {
		return err
	}
	err = cs.db.Update(ctx, func(t *sqldb.Tx) error {
		var exists bool
		if err := t.Row(`SELECT EXISTS (SELECT 1 FROM campaigns WHERE id = ?)`, id).Scan(&exists); err != nil {
			return err
		}
		if exists {
			return firstcome.ErrCampaignExists
		}
		now, err := cs.db.Now(t)
		if err != nil {
			return err
		}
		_, err = t.Change(`INSERT INTO campaigns
			(id, quantity, opens_at, closes_at, version, terms_version, applied, gate, epoch, ceiling, secret, decided_at, created_at, sold_out_at, pace, waitlist)
			VALUES (?, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, quantityColumn(terms.Quantity), micros(terms.OpensAt), micros(terms.ClosesAt),
			cs.rows.appliedAt(1), cs.rows.gate, firstEpoch, cs.rows.grant(&stock{Campaign: firstcome.Campaign{Terms: terms}}), cs.rows.fingerprint, now.UnixMicro(), now.UnixMicro(),
			micros(cs.rows.soldOutAt(stock{}, terms, now)), paceColumn(terms.Pace), terms.Waitlist)
		if err != nil {
			return err
		}
		if err := insertChange(t, id, 1, firstcome.ChangeTerms, payload, now); err != nil {
			return err
		}
		return addLog(t, now, actor, "campaign.create", entry{campaign: id, detail: logDetail(firstcome.ChangeTerms, "", payload)})
	})
	return sqldb.Wrap(err, "create the campaign %s", id)
}

// SetTerms changes a campaign's terms by edit, which may run more than once, and returns the
// version that this made, 0 if it changed nothing. If version is not 0 and the campaign has another, it is ErrStale.
// ErrBelowInForce and ErrClosed say that the change is not allowed, ErrPending that
// an earlier one has to reach the gate first.
//
// With a remote gate the change is made when Applied says that the gate has it.
// Until then a lower quantity, and the terms it comes with, are only proposed:
// the gate may refuse it, because it has more in force than the ledger knows.
func (cs *Campaigns) SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (made int64, err error) {
	err = cs.rows.change(ctx, id, func(t *sqldb.Tx, s stock) (err error) {
		made, err = cs.setTerms(t, s, actor, version, edit)
		return err
	})
	return made, sqldb.Wrap(err, "change the terms of %s", id)
}

// setTerms is SetTerms in its transaction; it returns the change's version.
func (cs *Campaigns) setTerms(t *sqldb.Tx, s stock, actor string, version int64, edit func(*firstcome.Terms)) (int64, error) {
	if version != 0 && version != s.Version {
		return 0, firstcome.ErrStale
	}
	if s.over() {
		return 0, firstcome.ErrClosed
	}
	before, err := payloadOf(t, s.ID, s.termsVersion)
	if err != nil {
		return 0, err
	}
	terms, err := decodeTerms(before)
	if err != nil {
		return 0, err
	}
	log := terms.Log
	edit(&terms)
	if log != nil {
		terms.Log = log // it stays
	}
	if err := terms.Check(); err != nil {
		return 0, err
	}
	if terms.Quantity < s.inForce {
		return 0, fmt.Errorf("%w: %d are", firstcome.ErrBelowInForce, s.inForce)
	}
	payload, err := encodeTerms(terms)
	if err != nil {
		return 0, err
	}
	if payload == before {
		return 0, nil
	}
	s.quarantineReturned(terms, cs.rows.decidesAt(s))
	raised := s
	raised.Quantity = max(s.Quantity, terms.Quantity)
	made, err := cs.rows.addChange(t, raised, firstcome.ChangeTerms, payload)
	if err != nil {
		return 0, err
	}
	if proposed := cs.rows.remote() && terms.Quantity < s.Quantity; !proposed {
		if err := putTerms(t, s.ID, terms, made.Version, cs.rows.soldOutAt(s, terms, made.At)); err != nil {
			return 0, err
		}
	}
	after := s
	after.Terms = terms
	if err := cs.rows.changeLine(t, s, after, made.At); err != nil {
		return 0, err
	}
	return made.Version, addLog(t, made.At, actor, "campaign.update", entry{campaign: s.ID, detail: logDetail(firstcome.ChangeTerms, before, payload)})
}

// A Switch is a change of a campaign without terms.
type Switch string

// The switches.
const (
	Pause  Switch = "pause"  // claims get paused
	Resume Switch = "resume" // ends a pause
	Close  Switch = "close"  // for good
)

// Switch pauses, resumes or closes a campaign, and returns the version that this made. Doing so again changes nothing
// and returns 0. A closed campaign can only be closed: anything else is ErrClosed. ErrPending says that an earlier
// change has to reach the gate first. A campaign whose gate is another Redis, perhaps gone for good, can be closed
// too: that Redis hears of it if it comes back. If from is not 0, the campaign has to have this version, or it is
// ErrStale.
func (cs *Campaigns) Switch(ctx context.Context, actor string, id firstcome.CampaignID, from int64, to Switch) (version int64, err error) {
	change := cs.rows.change
	if to == Close {
		change = cs.rows.changeAnywhere
	}
	err = change(ctx, id, func(t *sqldb.Tx, s stock) error {
		version = 0
		if from != 0 && from != s.Version {
			return firstcome.ErrStale
		}
		if s.over() && to != Close {
			return firstcome.ErrClosed
		}
		paused, closed := to == Pause || to == Close && s.Paused, s.Closed || to == Close
		if paused == s.Paused && closed == s.Closed {
			return nil
		}
		made, err := cs.rows.addChange(t, s, firstcome.ChangeKind(to), nothing)
		if err != nil {
			return err
		}
		version = made.Version
		if closed && !s.Closed {
			s.ClosedAt = made.At
		}
		_, err = t.Change(`UPDATE campaigns SET paused = ?, closed = ?, closed_at = ? WHERE id = ?`, paused, closed, micros(s.ClosedAt), string(id))
		if err != nil {
			return err
		}
		after := s
		after.Paused, after.Closed = paused, closed
		if err := cs.rows.changeLine(t, s, after, made.At); err != nil {
			return err
		}
		return addLog(t, made.At, actor, "campaign."+string(to), entry{campaign: id, detail: logDetail(firstcome.ChangeKind(to), "", nothing)})
	})
	return version, sqldb.Wrap(err, "%s the campaign %s", to, id)
}

// change has the writer do a change of a campaign of this node's gate, which is in the state s. It
// returns when the change is done or refused, and not because ctx ended: whoever
// encloses it in Issuer.Change must not let leases be granted again before a change
// that may yet come.
func (r *rows) change(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s stock) error) error {
	return r.changeAnywhere(ctx, id, func(t *sqldb.Tx, s stock) error {
		if s.away != nil {
			return s.away
		}
		return do(t, s)
	})
}

// changeAnywhere is change also where another Redis is the campaign's gate.
func (r *rows) changeAnywhere(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s stock) error) error {
	return r.db.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error {
		s, err := r.rowToChange(t, id)
		switch {
		case err != nil:
			return err
		case s.pending():
			return fmt.Errorf("%w: it has %d of %d", firstcome.ErrPending, s.applied, s.Version)
		}
		return do(t, s)
	})
}

// locked is change also while the gate lacks changes.
func (r *rows) locked(ctx context.Context, id firstcome.CampaignID, do func(t *sqldb.Tx, s stock) error) error {
	return r.db.Update(context.WithoutCancel(ctx), func(t *sqldb.Tx) error {
		s, err := r.rowToChange(t, id)
		if err == nil {
			err = s.away
		}
		if err != nil {
			return err
		}
		return do(t, s)
	})
}
