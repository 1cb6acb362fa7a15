package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// Settle removes entries from a campaign's journal that went to the ledger, flags dead letters at
// their holders, and notes how far the campaign is drained. It returns how far the gate knew it to be drained before.
// It may be repeated. The marker is the campaign's (see firstcome.Change); empty: it has none. After a flow.ToldError nothing is done.
func (g *Gate) Settle(ctx context.Context, id firstcome.CampaignID, marker string, drained flow.Drained, entries ...string) (before int64, err error) {
	k := keysOf(id, cmp.Or(marker, unmarked))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	epoch := "" // whoever is no ledger does not say it
	if drained.Epoch > 0 {
		epoch = whole10(drained.Epoch)
	}
	args := make([]string, 0, 8+2*len(drained.Letters)+len(entries))
	args = append(args, group, g.drainedChannel(), k.tag, whole10(drained.Through), epoch, whole10(min(drained.Ceiling, unlimited)), whole10(drained.Told), strconv.Itoa(len(drained.Letters)))
	for _, c := range drained.Letters {
		args = append(args, string(c.User), strconv.FormatInt(c.Number, 10))
	}
	word, parts, err := g.run(ctx, g.settle, k, append(args, entries...)...)
	if err == nil && word == "other" {
		return drained.Through, nil // the entries went with their epoch
	}
	if err == nil && len(parts) != 1 {
		err = fmt.Errorf("the settle script answered %q and %d parts", word, len(parts))
	}
	if err == nil {
		before, err = whole(parts[0])
	}
	if err == nil && word == "untold" {
		err = &flow.ToldError{Through: before}
	}
	return before, wrap(err, "note that %s is drained through %d", k.id, drained.Through)
}

// DrainedThrough returns how far a campaign is drained: see gate.Drains.
func (g *Gate) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return 0, err
	}
	drained, err := g.fields(ctx, k, "drained_through")
	if err != nil {
		return 0, fmt.Errorf("read how far %s is drained: %w", id, err)
	}
	return drained[0], nil
}

// askChunk bounds the coupons that one script is asked about.
const askChunk = 1000

// Has tells whether each coupon is surely in the ledger under its number: see gate.Drains.
func (g *Gate) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	k, err := g.keysOf(ctx, id)
	for part := range slices.Chunk(coupons, askChunk) {
		if err == nil {
			has, err = g.hasSome(ctx, k, part, has)
		}
	}
	return has, wrap(err, "ask whose %d coupons of %s are", len(coupons), id)
}

// hasSome appends what the script says of some coupons.
func (g *Gate) hasSome(ctx context.Context, k *keys, coupons []firstcome.Coupon, has []bool) ([]bool, error) {
	args, entries := make([]string, 1, 1+len(coupons)), make([]byte, 0, entryBytes*len(coupons))
	for _, c := range coupons {
		args, entries = append(args, string(c.User)), appendEntry(entries, c)
	}
	args[0] = string(entries)
	word, parts, err := g.run(ctx, g.has, k, args...)
	if err != nil {
		return nil, err
	}
	var digits string
	if len(parts) == 1 {
		digits, _ = parts[0].ToString()
	}
	if len(digits) != len(coupons) {
		return nil, fmt.Errorf("the has script answered %q and %d parts about %d coupons", word, len(parts), len(coupons))
	}
	for _, digit := range digits {
		has = append(has, digit == '1')
	}
	return has, nil
}

// WatchDrained calls each with how far campaigns are drained: see gate.Drains.
func (g *Gate) WatchDrained(ctx context.Context, ready func(), each func(id firstcome.CampaignID, through int64)) error {
	err := g.subscribe(ctx, g.drainedChannel(), ready, func(message string) {
		tag, number, _ := strings.Cut(message, " ")
		through, err := strconv.ParseInt(number, 10, 64)
		if k := g.tagged(tag); err == nil && k != nil { // else nobody here waits for it, or it is of a copy of this ledger
			each(k.id, through)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch what is drained: %w", err)
}

// subscribe calls each with every message on a channel until ctx ends or the
// connection is lost. ready is called once Redis has confirmed the subscription.
func (g *Gate) subscribe(ctx context.Context, channel string, ready func(), each func(message string)) error {
	told := false
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" && !told {
			told = true
			ready()
		}
	})
	err := g.client.Receive(ctx, g.client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { each(m.Message) })
	if err == nil {
		return errors.New("the subscription was ended")
	}
	return classify(err)
}
