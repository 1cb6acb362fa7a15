package issue

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
)

// drain sends the waiting claims to the gate, one batch at a time, until no claim waits.
func (i *Issuer) drain(q *queue) {
	defer i.working.Done()
	for {
		q.gather()
		batch, changes, learn := q.take(i.options.Batch)
		if len(batch) == 0 {
			i.forgetUnknown(q)
			return
		}
		i.decide(q, i.answerRepeats(q, batch), changes, learn)
		i.stats.waiting.Add(int64(-len(batch)))
		q.reuse(batch)
	}
}

// forgetUnknown forgets a queue whose campaign the gate does not have, so that invented ids take no memory.
func (i *Issuer) forgetUnknown(q *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		i.queues.CompareAndDelete(q.id, q)
	}
}

// answerRepeats answers the claims of a batch whose answer became known while they waited. It returns the others, in order.
func (i *Issuer) answerRepeats(q *queue, batch []*claim) []*claim {
	rest := batch[:0]
	for _, c := range batch {
		if c.direct == nil { // a direct issue is not bound by the refusals of claims
			if d, ok := i.repeat(q, c.user); ok {
				c.answer(d, nil)
				continue
			}
		}
		rest = append(rest, c)
	}
	return rest
}

// decide sends a batch to the gate and answers its claims.
func (i *Issuer) decide(q *queue, batch []*claim, changes uint64, learn bool) {
	if len(batch) == 0 {
		return
	}
	users := make([]firstcome.UserID, len(batch)) // a new slice, because the gate may use it past the deadline
	for n, c := range batch {
		users[n] = c.user
	}
	sent := i.now()
	decisions, err := i.ask(q.id, users, batch[0].direct)
	i.stats.batches.Add(1)
	if i.options.OnBatch != nil {
		i.options.OnBatch(len(batch), i.now()-sent, err)
	}
	known := !errors.Is(err, firstcome.ErrNoCampaign)
	q.known(known)
	if batch[0].direct != nil {
		q.forget() // a repeated not_open is no longer right for these users, who may have coupons even after an error
	}
	if err != nil {
		if known { // "no such campaign" is an answer, and any caller can name one
			i.stats.failed.Add(1)
		}
		for _, c := range batch {
			c.answer(firstcome.Decision{}, err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			// Those who gathered meanwhile go with them, so that no claim waits longer than two time-outs.
			i.stats.waiting.Add(-int64(q.shed(fmt.Errorf("%w: it does not answer", firstcome.ErrGateUnavailable))))
		}
		return
	}
	if learn {
		i.learn(q, decisions, sent, changes)
	}
	if i.options.OnJoin != nil && slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.InLine > 0 }) {
		i.options.OnJoin(q.id)
	}
	var pending []pendingPlace
	for n, c := range batch {
		switch {
		case decisions[n].Outcome == firstcome.Waiting && i.options.Teller != nil && !i.options.Teller.Told(q.id, decisions[n].Place):
			pending = append(pending, pendingPlace{c, decisions[n]})
		case decisions[n].Outcome == 0:
			why := decisions[n].Undecided
			if why == nil {
				why = firstcome.ErrGateFull
			}
			c.answer(firstcome.Decision{}, why)
		default:
			c.answer(decisions[n], nil)
		}
	}
	if len(pending) > 0 {
		i.working.Add(1)
		go i.tellPlaces(q.id, pending)
	}
}

// A pendingPlace is a claim whose place in line must be in the log before its caller is told.
type pendingPlace struct {
	*claim
	decision firstcome.Decision
}

// tellPlaces answers claims once their places are in the log. The next batch goes to the gate at the same time.
func (i *Issuer) tellPlaces(id firstcome.CampaignID, pending []pendingPlace) {
	defer i.working.Done()
	all := make([]line.Telling, len(pending))
	for n, c := range pending {
		all[n] = line.Telling{User: c.user, Place: c.decision.Place}
	}
	err := i.options.Teller.Tell(i.calls.context(), id, all)
	for _, c := range pending {
		if err != nil {
			c.decision = firstcome.Decision{}
		}
		c.answer(c.decision, err)
	}
}

// ask calls the gate, within options.Gate.
func (i *Issuer) ask(id firstcome.CampaignID, users []firstcome.UserID, direct *gate.Order) (decisions []firstcome.Decision, err error) {
	if direct != nil {
		decisions, err = i.gate.Issue(i.calls.context(), *direct, id, users)
	} else {
		decisions, err = i.gate.Claim(i.calls.context(), id, users)
	}
	if err == nil && len(decisions) != len(users) {
		err = fmt.Errorf("the gate gave %d decisions for %d claims", len(decisions), len(users))
	}
	return decisions, err
}

// learn keeps the decisions of a batch that the node may repeat.
func (i *Issuer) learn(q *queue, decisions []firstcome.Decision, sent time.Duration, changes uint64) {
	for n := range decisions {
		if d := &decisions[n]; d.Outcome.HasCoupon() && d.Lease > 0 {
			i.known.put(q, d, sent+d.Lease, changes)
		}
	}
	if refusal := lastRefusal(decisions); refusal != nil && q.learn(*refusal, sent, changes) {
		i.working.Add(1)
		go i.build(q, *refusal, changes)
	}
}

// build builds the holders filter for a refusal.
func (i *Issuer) build(q *queue, refusal firstcome.Decision, changes uint64) {
	defer i.working.Done()
	seed := maphash.MakeSeed()
	var hashes []uint64
	version, err := i.gate.Holders(i.ctx, q.id, func(user firstcome.UserID) {
		hashes = append(hashes, maphash.String(seed, string(user)))
	})
	// Fewer holders than the gate had in force come from a replica that lags. A filter without the missing holders would refuse them.
	if err != nil || version != refusal.Version || int64(len(hashes)) < refusal.InForce {
		q.built(nil, refusal, changes)
		return
	}
	q.built(newFilter(seed, hashes), refusal, changes)
}
