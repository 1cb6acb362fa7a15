package flow

import (
	"context"
	"sync"

	"github.com/firstcome/firstcome"
)

// maxAsks bounds the campaigns of which the gate is asked at once whose the numbers are: each is
// one round trip, and a node of a cluster that hangs should not keep the others from theirs.
const maxAsks = 64

// askAll asks the gate of those who are due, of many campaigns side by side and of one
// campaign of all at once that became due meanwhile.
func (r *Recorded) askAll(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	free := make(chan struct{}, maxAsks)
	for {
		select {
		case <-r.dues:
		case <-ctx.Done():
			return
		}
		for id, due := range r.takeDue() {
			free <- struct{}{}
			asking.Go(func() {
				r.askOne(ctx, id, due)
				<-free
			})
		}
	}
}

func (r *Recorded) takeDue() map[firstcome.CampaignID][]*waiter {
	all := map[firstcome.CampaignID][]*waiter{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.states {
		if due := s.ask(); len(due) > 0 {
			all[id] = due
		} else {
			r.moved(id, s)
		}
	}
	return all
}

// askOne asks the gate whose the numbers are. If it does not say, they are asked for again
// after the next reading.
func (r *Recorded) askOne(ctx context.Context, id firstcome.CampaignID, due []*waiter) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	coupons := make([]firstcome.Coupon, len(due))
	for n, w := range due {
		coupons[n] = w.coupon
	}
	has, err := r.gate.Has(ctx, id, coupons)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failing = err
	}
	s := r.states[id]
	s.told(due, has, err)
	r.moved(id, s)
}
