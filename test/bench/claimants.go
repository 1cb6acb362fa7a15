package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// inProcess is how many goroutines claim.
const inProcess = 256

// claimants: goroutines of this process claim from the Redis gate through an
// Issuer, as a node's callers do, against one call of the same script a claim
// through the same client.
func claimants(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	url := h.database(ctx, services.Redis)
	key := value(firstcome.NewSecret([]byte(secret)))
	far := value(redis.Open(ctx, redis.Options{URL: url, Secret: key, Backlog: -1}))
	defer far.Close()
	gate := far.Gate
	issuer := issue.NewIssuer(gate, issue.Options{})
	single := func(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error) {
		decisions, err := gate.Claim(ctx, id, []firstcome.UserID{user})
		if err != nil {
			return firstcome.Decision{}, err
		}
		return decisions[0], nil
	}
	// As many more claims as they are faster, so that both take about as long.
	c := b.pair(
		func() figure { return b.claimAll(ctx, gate, issuer.Claim, 4*b.claims) },
		func() figure { return b.claimAll(ctx, gate, single, b.claims) })
	b.printRate(fmt.Sprintf("Redis gate without HTTP, %d claimants", inProcess), c, "a script each", wantClaimants)
}

// claimAll has a new campaign's coupons claimed from goroutines of this process.
func (b *bench) claimAll(ctx context.Context, gate *redis.Gate, claim claimFunc, claims int) figure {
	b.made++
	id := firstcome.CampaignID("bench-" + strconv.Itoa(b.made))
	value(gate.Apply(ctx, firstcome.Change{
		Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: firstcome.Unlimited},
	}))
	var next atomic.Int64
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	user, began := sequential(0), time.Now()
	for range inProcess {
		all.Go(func() {
			for n := next.Add(1); n <= int64(claims) && failed.Load() == nil; n = next.Add(1) {
				d, err := claim(ctx, id, firstcome.UserID(user(int(n))))
				if err == nil && d.Outcome != firstcome.Issued {
					err = fmt.Errorf("a claim was %v", d.Outcome)
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		must(*err)
	}
	return figure{perSecond: float64(claims) / time.Since(began).Seconds()}
}

type claimFunc func(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Decision, error)
