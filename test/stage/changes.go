package stage

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// Quarantined is what a change gave back and nobody may be given yet, because nodes may still repeat what the gate refused before: the
// stock counts as in force, and a window that was widened is as narrow as it was.
type Quarantined struct {
	Stock               int64
	Until               time.Time // by the clock, not by the gate's time, which may stand still
	WasOpens, WasCloses time.Time // the window before it was widened; zero if it was not
	WasSoldOut          bool      // claims heard sold_out as the first of it came back
}

// Release ends a quarantine that is over. If the clock went back, the quarantine begins again.
func (c *Quarantined) Release(clock time.Time, quarantine time.Duration) {
	if latest := clock.Add(quarantine); c.Until.After(latest) {
		c.Until = latest
	}
	if !clock.Before(c.Until) {
		*c = Quarantined{Until: c.Until}
	}
}

// begin quarantines stock that returns now. It does not extend a running quarantine, because no lease was granted since that began.
func (c *Quarantined) begin(clock time.Time, quarantine time.Duration) {
	if !clock.Before(c.Until) {
		c.Until = clock.Add(quarantine)
	}
}

// quarantine keeps back what comes back now, before it is counted.
func (c *Course) quarantine(clock time.Time, quarantine time.Duration) {
	if !clock.Before(c.Until) {
		c.WasSoldOut = c.IsSoldOut()
	}
	c.begin(clock, quarantine)
}

// Narrow returns a campaign as claims see it.
func (c *Quarantined) Narrow(seen firstcome.Campaign) firstcome.Campaign {
	if c.WasOpens.After(seen.OpensAt) {
		seen.OpensAt = c.WasOpens
	}
	if !c.WasCloses.IsZero() && (seen.ClosesAt.IsZero() || c.WasCloses.Before(seen.ClosesAt)) {
		seen.ClosesAt = c.WasCloses
	}
	return seen
}

// Change makes a change. Stock that it returns is quarantined before it is counted.
func (c *Course) Change(change firstcome.Change, clock, now time.Time, quarantine time.Duration) {
	switch change.Kind {
	case firstcome.ChangeTerms:
		c.widen(change, clock, now, quarantine)
		if change.Terms.Quantity > c.Quantity || c.IsSoldOut() && change.Terms.Waitlist && c.TermsVersion > 0 {
			c.quarantine(clock, quarantine)
		}
		c.Stock = max(0, c.Stock+change.Terms.Quantity-c.Quantity) // a lower quantity is taken from what is quarantined first
		if c.Log != nil {
			change.Terms.Log = c.Log // from where the epoch begins
		}
		c.Terms, c.TermsVersion, c.Payload = change.Terms, change.Version, change.Payload
		c.Lined = c.Lined || c.Pace != nil
	case firstcome.ChangePause, firstcome.ChangeResume:
		c.Paused = change.Kind == firstcome.ChangePause
	case firstcome.ChangeClose:
		c.Closed, c.ClosedAt = true, now
	case firstcome.ChangeVoid:
		if held := c.Holders[change.User]; held.Number == change.Number {
			c.quarantine(clock, quarantine)
			c.Stock++
			delete(c.Holders, change.User)
			c.Did(Happening{Voided: held})
		}
	}
}

// widen keeps the window as it was, if the new one opens earlier or opens again what has closed.
func (c *Course) widen(change firstcome.Change, clock, now time.Time, quarantine time.Duration) {
	was, to := c.Narrow(c.Campaign), change.Terms
	earlier := now.Before(was.OpensAt) && to.OpensAt.Before(was.OpensAt)
	again := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt) && (to.ClosesAt.IsZero() || to.ClosesAt.After(was.ClosesAt))
	if earlier || again {
		c.quarantine(clock, quarantine)
		c.WasOpens, c.WasCloses = was.OpensAt, was.ClosesAt
	}
}

// Apply applies change v after v-1, once. It returns also what the journal gets.
func (c *Course) Apply(r Rules, at time.Time, change firstcome.Change) (refused bool, b record.Batch, err error) {
	switch {
	case change.Version <= c.Version:
		return c.Refused[change.Version], b, nil
	case change.Version > c.Version+1:
		return false, b, gate.ErrGap
	}
	c.Version = change.Version
	if change.Kind == firstcome.ChangeTerms && (change.Terms.Quantity < c.InForce() || change.Before > 0 && c.Last >= change.Before) {
		c.Refused[c.Version] = true
	} else {
		c.Ceiling = max(c.Ceiling, change.Ceiling)
		clock, now := c.at(r, at)
		ended := c.sendAway(now, false)
		c.Change(change, clock, now, r.Quarantine)
		c.Seen = now
		c.SoldOutAt = c.SoldOut(c.InForce(), now)
		if change.Kind != firstcome.ChangeVoid {
			ended = append(ended, c.sendAway(now, true)...)
		}
		b = c.entry(nil, ended)
	}
	c.Did(Happening{Applied: c.Version})
	return c.Refused[c.Version], b, nil
}
