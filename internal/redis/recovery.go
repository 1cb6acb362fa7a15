package redis

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Recovery does at the gate what package recovery orders: it verifies, rebuilds and retires campaigns.
type Recovery struct{ conn *conn }

var _ recovery.Gate = (*Recovery)(nil)

// Inspect returns nil if the gate decides claims of a campaign. gate.ErrUnverified and gate.ErrGone say that it needs a rebuild, recovery.ErrAhead
// that it knows more than the revision has, a gate.StaleEpochError that its epoch has ended.
func (rec *Recovery) Inspect(ctx context.Context, r gate.Revision) error {
	return rec.conn.inspect(ctx, r)
}

// Unrecorded calls each with every coupon of the journal: see Inspector.Unrecorded.
func (rec *Recovery) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	return rec.conn.unrecorded(ctx, id, each)
}

// Freeze stops all decisions and settling of a campaign until Replace, or until a later attempt freezes it. It returns the campaign's last state,
// and removes keys that earlier attempts left. recovery.ErrSuperseded means that a later attempt has frozen the campaign.
func (rec *Recovery) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	f, err := rec.freezeCampaign(ctx, r)
	if err == nil {
		err = rec.removeLoaded(ctx, r)
	}
	return f, wrap(err, "freeze %s", r.Campaign)
}

func (rec *Recovery) freezeCampaign(ctx context.Context, r recovery.Rebuild) (f recovery.Frozen, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := rec.conn.run(ctx, freezeScript, rec.conn.keyring.renew(r.Campaign, r.CampaignUID), "attempt", formatInt(r.Attempt))
	switch {
	case err != nil:
		return f, err
	case a.word == "superseded":
		return f, recovery.ErrSuperseded
	case a.word != "frozen":
		return f, a.unexpected()
	}
	f.RunID, f.Version, f.DecidedAt = a.text("run"), a.integer("version"), a.instant("decided_at")
	f.TermsVersion, f.LastNumber = a.integer("terms_version"), a.integer("last_number")
	f.OpenedAt, f.SoldOutAt, f.ClosedAt = a.instant("opened_at"), a.instant("sold_out_at"), a.instant("closed_at")
	field := a.text("line")
	f.Epoch, f.Drained = a.integer("epoch"), a.integer("drained_through")
	if a.err != nil || field == "" {
		return f, a.err
	}
	switch l, err := readLine(field); {
	case err != nil: // nobody can say who is in line
	case possible(l.Line):
		f.Line = l.Line
	case l.Generation >= 1: // only its people are known
		f.Line.Generation = l.Generation
	}
	return f, nil
}

// frozenJournal returns what reads the journal of a campaign that an attempt has frozen. recovery.ErrSuperseded means that, on
// the server that answers, this attempt has not frozen it.
func (rec *Recovery) frozenJournal(ctx context.Context, k *keys, attempt int64) pager {
	return func(from string, count int64) ([]rueidis.XRangeEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a, err := rec.conn.run(ctx, emptyScript, k, "attempt", formatInt(attempt), "from", from, "count", formatInt(count))
		switch {
		case err != nil:
			return nil, err
		case a.word == "superseded":
			return nil, recovery.ErrSuperseded
		case a.word != "entries":
			return nil, a.unexpected()
		}
		entries := a.value("entries")
		if a.err != nil {
			return nil, a.err
		}
		return entries.AsXRange()
	}
}

// Empty gives a sink all entries in the journal of a campaign that this attempt has frozen. recovery.ErrSuperseded means that this attempt has not
// frozen it: the server is an older copy, or another attempt has begun. Entries of a newer firstcome are an error.
func (rec *Recovery) Empty(ctx context.Context, r recovery.Rebuild, to record.Sink) error {
	k := keysOf(r.Campaign, r.CampaignUID)
	var items []item
	give := func() error {
		for _, part := range shares(rec.conn.Name(), r.Campaign, r.CampaignUID, rec.conn.options.Secret, items, defaultCoupons) {
			part.Attempt = r.Attempt
			if _, err := to(ctx, part.Batch); err != nil {
				return err
			}
		}
		items = items[:0]
		return nil
	}
	err := eachEntry(rec.frozenJournal(ctx, k, r.Attempt), inspectEntries, func(e rueidis.XRangeEntry) error {
		i := item{e.ID, e.FieldValues}
		if i.newer() {
			return errNewer
		}
		if items = append(items, i); len(items) < inspectEntries {
			return nil
		}
		return give()
	})
	if err == nil {
		err = give()
	}
	return wrap(err, "empty the journal of %s", r.Campaign)
}

// Replace puts what was loaded into the place of the frozen campaign. recovery.ErrSuperseded and recovery.ErrMoved say that nothing was replaced.
func (rec *Recovery) Replace(ctx context.Context, r recovery.Rebuild, f recovery.Frozen, loaded recovery.Loaded, fill recovery.Refill) error {
	k := rec.conn.keyring.renew(r.Campaign, r.CampaignUID)
	args := []string{
		"attempt", formatInt(r.Attempt), "run", f.RunID, "least", formatInt(loaded.Least), "most", formatInt(loaded.Most), "people", formatInt(loaded.People),
		"group", group, "now", formatInt(fill.DecidedAt.UnixMicro()), "",
		"epoch", formatInt(fill.Epoch), "version", formatInt(fill.Version), "terms_version", formatInt(fill.TermsVersion), "terms", fill.Payload, "codes", fill.Codes,
		"quantity", quantityArg(fill.Quantity), "opens_at", micros(fill.OpensAt), "closes_at", micros(fill.ClosesAt),
		"paused", flag(fill.Paused), "closed", flag(fill.Closed), "issued", formatInt(fill.Issued), "last_number", formatInt(fill.LastNumber),
		"drained_through", formatInt(fill.LastNumber), "ceiling", formatInt(min(fill.Ceiling, unlimited)),
		"opened_at", micros(fill.OpenedAt), "sold_out_at", micros(fill.SoldOutAt), "closed_at", micros(fill.ClosedAt),
	}
	args = append(args, lineFields(fill)...)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := rec.conn.note(ctx, k); err != nil && !errors.Is(err, gate.ErrLedgerForgot) { // Redis may have been emptied
		return wrap(err, "switch %s", r.Campaign)
	}
	a, err := rec.conn.runOn(ctx, replaceScript, k, append(k.all(), k.loaded(r.Attempt).all()...), args...)
	if err == nil {
		switch a.word {
		case "replaced":
			return nil
		case "superseded":
			err = recovery.ErrSuperseded
		case "moved":
			err = recovery.ErrMoved
		default:
			err = a.unexpected()
		}
	}
	return wrap(err, "switch %s", r.Campaign)
}

// GateState returns the state of an unverified campaign on the gate.
func (rec *Recovery) GateState(ctx context.Context, r gate.Revision) (s recovery.GateState, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k := rec.conn.keysIn(r)
	s.Witness = rec.conn.remembers.witness(k) // before the gate is asked, which may issue more afterwards
	s.Witness.Add(gate.Witness{Epoch: r.Epoch, Version: r.Applied})
	a, err := rec.conn.run(ctx, gateStateScript, k)
	if err != nil {
		return s, wrap(err, "look at %s", r.Campaign)
	}
	s.Was, s.Is, s.Frozen, s.Attempt, s.Holders = a.text("was"), a.text("is"), a.is("frozen"), a.integer("attempt"), a.integer("holders")
	s.Epoch, s.Version, s.LastNumber, s.DrainedThrough = a.integer("epoch"), a.integer("version"), a.integer("last_number"), a.integer("drained_through")
	s.InForce, s.Quantity, s.OpensAt, s.ClosesAt = a.integer("in_force"), quantityOf(a.integer("quantity")), a.instant("opens_at"), a.instant("closes_at")
	s.Paused, s.Closed, s.Ceiling, s.ClosedAt = a.is("paused"), a.is("closed"), a.integer("ceiling"), a.instant("closed_at")
	if field := a.text("line"); field != "" {
		if l, err := readLine(field); err == nil {
			s.Line, s.Ticket, s.Pace, s.Waitlist, s.Log = true, firstcome.Ticket{Generation: l.Generation, Number: l.LastTicket}, l.pace, l.waitlist, l.log
		}
	}
	s.DecidedAt, s.TermsVersion, s.Payload = a.instant("decided_at"), a.integer("terms_version"), a.text("terms")
	s.Codes = a.text("codes")
	return s, wrap(a.err, "look at %s", r.Campaign)
}

// Held calls each with the coupon in force of every holder of a frozen campaign, in no order, perhaps twice, until it returns an error.
func (rec *Recovery) Held(ctx context.Context, r recovery.Rebuild, each func(firstcome.Coupon) error) error {
	err := rec.conn.eachHolder(ctx, keysOf(r.Campaign, r.CampaignUID), func(c firstcome.Coupon) error {
		c.Code = rec.conn.options.Secret.Code(c.Campaign, c.Number)
		c.Buried = false
		return each(c)
	})
	return wrap(err, "read the holders of %s", r.Campaign)
}

// HoldsEach reports for each of these coupons whether the gate has its user as a holder, with the same coupon.
func (rec *Recovery) HoldsEach(ctx context.Context, r gate.Revision, coupons []firstcome.Coupon) (held []bool, err error) {
	k := rec.conn.keysIn(r)
	for part := range slices.Chunk(coupons, askChunk) {
		users := make([]string, len(part))
		for n, c := range part {
			users[n] = string(c.User)
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		entries, err := rec.conn.client.Do(ctx, rec.conn.client.B().Hmget().Key(k.holders).Field(users...).Build()).AsStrSlice()
		cancel()
		if err != nil {
			return held, wrap(classify(err), "read the holders of %s", r.Campaign)
		}
		for n, c := range part {
			held = append(held, strings.HasPrefix(entries[n], string(appendEntry(nil, c))))
		}
	}
	return held, nil
}

// Verified notes that a campaign was verified in the state s, so that the gate decides its claims again. recovery.ErrMoved means that the
// campaign is in another state now.
func (rec *Recovery) Verified(ctx context.Context, r gate.Revision, s recovery.GateState) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := rec.conn.run(ctx, verifyScript, rec.conn.keysIn(r), "was", s.Was, "is", s.Is, "epoch", formatInt(s.Epoch), "version", formatInt(s.Version),
		"last_number", formatInt(s.LastNumber))
	if err == nil && a.word != "verified" {
		err = recovery.ErrMoved
	}
	return wrap(err, "note that %s is verified", r.Campaign)
}

// Retire deletes a campaign's keys. The ledger must have said first that it answers for the campaign from now on. Retire asks it
// again for the keys: if the ledger was replaced under this node, the remembered keys are those of a campaign for which it does not
// answer. It may be repeated.
func (rec *Recovery) Retire(ctx context.Context, id firstcome.CampaignID) error {
	rec.conn.keyring.Remove(id)
	k, err := rec.conn.keysOf(ctx, id)
	if err == nil {
		_, err = rec.conn.run(ctx, forgetScript, k)
	}
	return wrap(err, "retire %s", id)
}
