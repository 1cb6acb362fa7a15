package sim

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// quarantined is what a change gave back and nobody may be given yet, because nodes may still repeat what the gate refused before: the
// stock counts as in force, and a window that was widened is as narrow as it was.
type quarantined struct {
	stock               int64
	until               time.Time // by the clock, not by the gate's time, which may stand still
	wasOpens, wasCloses time.Time // the window before it was widened; zero if it was not
	wasSoldOut          bool      // claims heard sold_out as the first of it came back
}

// release ends a quarantine that is over. If the clock went back, the quarantine begins again.
func (c *quarantined) release(clock time.Time, quarantine time.Duration) {
	if latest := clock.Add(quarantine); c.until.After(latest) {
		c.until = latest
	}
	if !clock.Before(c.until) {
		*c = quarantined{until: c.until}
	}
}

// begin quarantines stock that returns now. It does not extend a running quarantine, because no lease was granted since that began.
func (c *quarantined) begin(clock time.Time, quarantine time.Duration) {
	if !clock.Before(c.until) {
		c.until = clock.Add(quarantine)
	}
}

// quarantine keeps back what comes back now, before it is counted.
func (c *course) quarantine(clock time.Time, quarantine time.Duration) {
	if !clock.Before(c.until) {
		c.wasSoldOut = c.isSoldOut()
	}
	c.begin(clock, quarantine)
}

// narrow returns a campaign as claims see it.
func (c *quarantined) narrow(seen firstcome.Campaign) firstcome.Campaign {
	if c.wasOpens.After(seen.OpensAt) {
		seen.OpensAt = c.wasOpens
	}
	if !c.wasCloses.IsZero() && (seen.ClosesAt.IsZero() || c.wasCloses.Before(seen.ClosesAt)) {
		seen.ClosesAt = c.wasCloses
	}
	return seen
}

// Apply implements gate.Applier: it applies change v after v-1, once.
func (g *Gate) Apply(_ context.Context, change firstcome.Change) (refused bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, err := g.whole(change.Campaign)
	if g.logs[change.Campaign] == nil && change.Version == 1 {
		g.logs[change.Campaign] = &[]happening{}
		c, err = &course{run: g.run.ID, epoch: change.Epoch, holders: map[firstcome.UserID]firstcome.Coupon{}, refused: map[int64]bool{}, log: g.logs[change.Campaign], began: 1, queue: newQueue()}, nil
		c.ID, g.campaigns[change.Campaign] = change.Campaign, c
		c.Quantity = change.Terms.Quantity // a new campaign gives nothing back
	}
	if err == firstcome.ErrNoCampaign {
		err = gate.ErrLost
	}
	if err == nil {
		err = g.verified(c)
	}
	switch {
	case err != nil:
		return false, err
	case change.Version <= c.Version:
		return c.refused[change.Version], nil
	case change.Version > c.Version+1:
		return false, gate.ErrGap
	}
	c.Version = change.Version
	if change.Kind == firstcome.ChangeTerms && change.Terms.Quantity < c.inForce() {
		c.refused[c.Version] = true
	} else {
		c.ceiling = max(c.ceiling, change.Ceiling)
		clock, now := g.now(c)
		c.release(clock, g.Quarantine)
		ended := c.sendAway(now, false)
		c.apply(change, clock, now, g.Quarantine)
		c.seen = now
		c.SoldOutAt = c.SoldOut(c.inForce(), now)
		if change.Kind != firstcome.ChangeVoid {
			ended = append(ended, c.sendAway(now, true)...)
		}
		if len(ended) > 0 {
			g.append(record.Batch{Campaign: c.ID, Epoch: c.epoch, Line: c.report(ended)})
		}
	}
	c.did(happening{applied: c.Version})
	return c.refused[c.Version], nil
}

// apply makes a change. Stock that it returns is quarantined before it is counted.
func (c *course) apply(change firstcome.Change, clock, now time.Time, quarantine time.Duration) {
	switch change.Kind {
	case firstcome.ChangeTerms:
		c.widen(change, clock, now, quarantine)
		if change.Terms.Quantity > c.Quantity || c.isSoldOut() && change.Terms.Waitlist && c.termsVersion > 0 {
			c.quarantine(clock, quarantine)
		}
		c.stock = max(0, c.stock+change.Terms.Quantity-c.Quantity) // a lower quantity is taken from what is quarantined first
		if c.Log != nil {
			change.Terms.Log = c.Log // from where the epoch begins
		}
		c.Terms, c.termsVersion = change.Terms, change.Version
		c.lined = c.lined || c.Pace != nil
	case firstcome.ChangePause, firstcome.ChangeResume:
		c.Paused = change.Kind == firstcome.ChangePause
	case firstcome.ChangeClose:
		c.Closed, c.ClosedAt = true, now
	case firstcome.ChangeVoid:
		if held := c.holders[change.User]; held.Number == change.Number {
			c.quarantine(clock, quarantine)
			c.stock++
			delete(c.holders, change.User)
			c.did(happening{voided: held})
		}
	}
}

// widen keeps the window as it was, if the new one opens earlier or opens again what has closed.
func (c *course) widen(change firstcome.Change, clock, now time.Time, quarantine time.Duration) {
	was, to := c.narrow(c.Campaign), change.Terms
	earlier := now.Before(was.OpensAt) && to.OpensAt.Before(was.OpensAt)
	again := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt) && (to.ClosesAt.IsZero() || to.ClosesAt.After(was.ClosesAt))
	if earlier || again {
		c.quarantine(clock, quarantine)
		c.wasOpens, c.wasCloses = was.OpensAt, was.ClosesAt
	}
}
