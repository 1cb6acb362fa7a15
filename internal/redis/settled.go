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
	if err := g.settleEntries(ctx, id, settled, nil); err != nil {
		return fmt.Errorf("settle %s through %d: %w", id, settled.Through, err)
	}
	return nil
}

// settleEntries does the same, and is done with entries of the journal. What the
// gate lacks before is read from the ledger and noted first.
func (g *Gate) settleEntries(ctx context.Context, id firstcome.CampaignID, settled flow.Settled, entries []string) error {
	known, err := g.settleOnce(ctx, id, settled, entries)
	for err == nil && known < settled.Since {
		if known, err = g.catchUp(ctx, id, known); err == nil && known >= settled.Since {
			known, err = g.settleOnce(ctx, id, settled, entries)
		}
	}
	return err
}

// errSince says that what changed of a campaign's dead letters cannot be had.
var errSince = errors.New("what changed of its dead letters cannot be read from the ledger")

// catchUp notes what changed since an order that the gate has, or the first of it, and
// returns the order that it has then.
func (g *Gate) catchUp(ctx context.Context, id firstcome.CampaignID, order int64) (known int64, err error) {
	if g.options.SettledSince == nil {
		return order, fmt.Errorf("%w: nobody was named who has it", errSince)
	}
	missed, err := g.options.SettledSince(ctx, id, order)
	if err == nil && (missed.Since > order || missed.Order <= order) {
		err = fmt.Errorf("it has nothing between %d and %d", order, missed.Order)
	}
	if err != nil {
		return order, fmt.Errorf("%w: %w", errSince, err)
	}
	return g.settleOnce(ctx, id, missed, nil)
}

// settleOnce runs the script and returns the order that the gate has then. If that is
// below settled.Since, nothing was done.
func (g *Gate) settleOnce(ctx context.Context, id firstcome.CampaignID, settled flow.Settled, entries []string) (known int64, err error) {
	args := make([]string, 0, 9+len(settled.Unrecorded)+len(settled.Recorded)+len(entries))
	args = append(args, group, g.settledChannel(), string(id))
	for _, n := range slices.Concat([]int64{
		settled.Through, settled.Epoch, settled.Order, settled.Since, int64(len(settled.Unrecorded)), int64(len(settled.Recorded)),
	}, settled.Unrecorded, settled.Recorded) {
		args = append(args, strconv.FormatInt(n, 10))
	}
	known, err = g.settle.Exec(ctx, g.client, keysOf(id), append(args, entries...)).AsInt64()
	return known, classify(err)
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
// settled: so none is taken as recorded before it is known not to be.
func (g *Gate) settledThrough(ctx context.Context, id firstcome.CampaignID, numbers []int64) (flow.Settled, error) {
	settled, err := g.fields(ctx, id, "settled", "settled_epoch", "letters_order")
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
		are, err := g.client.Do(ctx, g.client.B().Smismember().Key(unrecordedKey(id)).Member(members...).Build()).AsIntSlice()
		if err != nil {
			return flow.Settled{}, classify(err)
		}
		for n, is := range are {
			if is == 1 {
				s.Unrecorded = append(s.Unrecorded, part[n])
			}
		}
	}
	return s, nil
}

// WatchSettled calls each with what recorders settle: see flow.RemoteGate.
func (g *Gate) WatchSettled(ctx context.Context, ready func(), each func(firstcome.CampaignID, flow.Settled)) error {
	err := g.subscribe(ctx, g.settledChannel(), ready, func(message string) {
		if id, settled, err := readSettled(message); err == nil {
			each(id, settled)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch what is settled: %w", err)
}

// readSettled reads a message: the campaign, the number through which all are
// settled, the epoch of that, the order, and the numbers that are unrecorded or that they are many.
func readSettled(message string) (id firstcome.CampaignID, s flow.Settled, err error) {
	words := strings.Fields(message)
	if len(words) < 4 {
		return "", s, fmt.Errorf("the message %q is not about a campaign", message)
	}
	if id, err = firstcome.ParseCampaignID(words[0]); err != nil {
		return "", s, err
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
	return id, s, nil
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
