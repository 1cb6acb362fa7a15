package redis

import (
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

// many stands in a message for more unrecorded numbers than it holds.
const many = "*"

// Settle notes how far a campaign is in the ledger, and publishes it. What is
// older than what the gate knows changes nothing.
func (g *Gate) Settle(ctx context.Context, id firstcome.CampaignID, settled flow.Settled) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = g.settleEntries(ctx, k, settled, nil)
	}
	if err != nil {
		return fmt.Errorf("settle %s through %d: %w", id, settled.Through, err)
	}
	return nil
}

// settleEntries does the same, and is done with entries of the journal. What the
// gate lacks before is read from the ledger and noted first.
func (g *Gate) settleEntries(ctx context.Context, k *keys, settled flow.Settled, entries []string) error {
	known, err := g.settleOnce(ctx, k, settled, entries)
	for err == nil && known < settled.Since {
		if known, err = g.catchUp(ctx, k, known); err == nil && known >= settled.Since {
			known, err = g.settleOnce(ctx, k, settled, entries)
		}
	}
	return err
}

// errSince says that what changed of a campaign's dead letters cannot be had.
var errSince = errors.New("what changed of its dead letters cannot be read from the ledger")

// catchUp notes what changed since an order that the gate has, or the first of it, and
// returns the order that it has then.
func (g *Gate) catchUp(ctx context.Context, k *keys, order int64) (known int64, err error) {
	if g.options.SettledSince == nil {
		return order, fmt.Errorf("%w: nobody was named who has it", errSince)
	}
	missed, err := g.options.SettledSince(ctx, k.id, order)
	if err == nil && (missed.Since > order || missed.Order <= order) {
		err = fmt.Errorf("it has nothing between %d and %d", order, missed.Order)
	}
	if err != nil {
		return order, fmt.Errorf("%w: %w", errSince, err)
	}
	return g.settleOnce(ctx, k, missed, nil)
}

// settleOnce runs the script and returns the order that the gate has then. If that is
// below settled.Since, nothing was done.
func (g *Gate) settleOnce(ctx context.Context, k *keys, settled flow.Settled, entries []string) (known int64, err error) {
	args := make([]string, 0, 10+len(settled.Unrecorded)+len(settled.Recorded)+len(settled.Twice)+len(entries))
	args = append(args, group, g.settledChannel(), k.tag)
	for _, n := range slices.Concat([]int64{
		settled.Through, settled.Epoch, settled.Order, settled.Since, int64(len(settled.Unrecorded)), int64(len(settled.Recorded)), int64(len(settled.Twice)),
	}, settled.Unrecorded, settled.Recorded, settled.Twice) {
		args = append(args, strconv.FormatInt(n, 10))
	}
	word, parts, err := g.run(ctx, g.settle, k, append(args, entries...)...)
	if err == nil && len(parts) != 1 {
		err = fmt.Errorf("the settle script answered %q and %d parts", word, len(parts))
	}
	if err != nil {
		return 0, err
	}
	return whole(parts[0])
}

// SettledThrough returns how far a campaign is in the ledger: see flow.RemoteGate.
func (g *Gate) SettledThrough(ctx context.Context, id firstcome.CampaignID, numbers []int64) (flow.Settled, error) {
	settled, err := g.settledThrough(ctx, id, numbers)
	if err != nil {
		return flow.Settled{}, fmt.Errorf("read how far %s is settled: %w", id, err)
	}
	return settled, nil
}

// askChunk bounds the numbers that one command looks for.
const askChunk = 1000

// settledThrough looks for the numbers after it read the number through which all are
// settled: so none is taken as recorded before it is known not to be. Nor because Redis
// lost what it knew in between, as a replica may when it takes over: so it reads that once more.
func (g *Gate) settledThrough(ctx context.Context, id firstcome.CampaignID, numbers []int64) (flow.Settled, error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return flow.Settled{}, err
	}
	settled, err := g.fields(ctx, k, "settled", "settled_epoch", "letters_order")
	if err != nil {
		return flow.Settled{}, err
	}
	s := flow.Settled{Through: settled[0], Epoch: settled[1], Order: settled[2], Since: settled[2]}
	if s.Order == 0 {
		return s, nil
	}
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return n > s.Through })
	for part := range slices.Chunk(numbers, askChunk) {
		members := make([]string, len(part))
		for n, number := range part {
			members[n] = strconv.FormatInt(number, 10)
		}
		are, err := g.client.Do(ctx, g.client.B().Smismember().Key(k.unrecorded).Member(members...).Build()).AsIntSlice()
		if err != nil {
			return flow.Settled{}, classify(err)
		}
		for n, is := range are {
			if is == 1 {
				s.Unrecorded = append(s.Unrecorded, part[n])
			}
		}
	}
	again, err := g.fields(ctx, k, "settled", "letters_order")
	if err == nil && (again[0] < s.Through || again[1] < s.Order) {
		err = errBack
	}
	if err != nil {
		return flow.Settled{}, err
	}
	return s, nil
}

// Has tells of coupons whether each surely is the one of its number in the ledger: see flow.RemoteGate.
func (g *Gate) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	k, err := g.keysOf(ctx, id)
	for part := range slices.Chunk(coupons, askChunk) {
		if err == nil {
			has, err = g.hasSome(ctx, k, part, has)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ask whose %d coupons of %s are: %w", len(coupons), id, err)
	}
	return has, nil
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

// errBack says that Redis forgot something: it was restarted, or is another one.
var errBack = errors.New("Redis went back while it was read")

// WatchSettled calls each with what recorders settle: see flow.RemoteGate.
func (g *Gate) WatchSettled(ctx context.Context, ready func(), each func(firstcome.CampaignID, flow.Settled)) error {
	err := g.subscribe(ctx, g.settledChannel(), ready, func(message string) {
		tag, settled, err := readSettled(message)
		if k := g.tagged(tag); err == nil && k != nil { // else nobody here waits for it, or it is of a copy of this ledger
			each(k.id, settled)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch what is settled: %w", err)
}

// readSettled reads a message: the campaign's tag, the number through which all are
// settled, the epoch of that, the order, and the numbers that are unrecorded or that they are many.
func readSettled(message string) (tag string, s flow.Settled, err error) {
	words := strings.Fields(message)
	if len(words) < 4 {
		return "", s, fmt.Errorf("the message %q is not about a campaign", message)
	}
	all := words[len(words)-1] != many
	if !all {
		words = words[:len(words)-1]
	}
	numbers := make([]int64, len(words)-1)
	for n, word := range words[1:] {
		if numbers[n], err = strconv.ParseInt(word, 10, 64); err != nil {
			return "", s, err
		}
	}
	s.Through, s.Epoch, s.Order = numbers[0], numbers[1], numbers[2]
	if !all {
		s.Since = s.Order
	} else if len(numbers) > 3 {
		s.Unrecorded = numbers[3:]
		slices.Sort(s.Unrecorded)
	}
	return words[0], s, nil
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
