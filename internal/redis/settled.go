package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// settleEntries does the same, and is done with entries of the journal.
func (g *Gate) settleEntries(ctx context.Context, id firstcome.CampaignID, settled flow.Settled, entries []string) error {
	args := []string{
		group, g.settledChannel(), string(id),
		strconv.FormatInt(settled.Through, 10), strconv.FormatInt(settled.Epoch, 10), strconv.Itoa(len(settled.Unrecorded)),
	}
	for _, number := range settled.Unrecorded {
		args = append(args, strconv.FormatInt(number, 10))
	}
	return classify(g.settle.Exec(ctx, g.client, keysOf(id), append(args, entries...)).Error())
}

// SettledThrough returns how far a campaign is in the ledger: see flow.RemoteGate.
func (g *Gate) SettledThrough(ctx context.Context, id firstcome.CampaignID) (flow.Settled, error) {
	settled, err := g.settledThrough(ctx, id)
	if err != nil {
		return flow.Settled{}, fmt.Errorf("read how far %s is settled: %w", id, err)
	}
	return settled, nil
}

// settledThrough reads the numbers that are unrecorded after the number through
// which all are settled: so a number is never taken as recorded before it is known not to be.
func (g *Gate) settledThrough(ctx context.Context, id firstcome.CampaignID) (flow.Settled, error) {
	settled, err := g.fields(ctx, id, "settled", "settled_epoch")
	if err != nil {
		return flow.Settled{}, err
	}
	members, err := g.client.Do(ctx, g.client.B().Smembers().Key(unrecordedKey(id)).Build()).AsStrSlice()
	if err != nil {
		return flow.Settled{}, classify(err)
	}
	s := flow.Settled{Through: settled[0], Epoch: settled[1]}
	for _, member := range members {
		number, err := strconv.ParseInt(member, 10, 64)
		if err != nil {
			return s, fmt.Errorf("an unrecorded number is %q", member)
		}
		if number <= s.Through { // a later one is of a settling that came in between
			s.Unrecorded = append(s.Unrecorded, number)
		}
	}
	slices.Sort(s.Unrecorded)
	return s, nil
}

// WatchSettled calls each with what recorders settle: see flow.RemoteGate.
func (g *Gate) WatchSettled(ctx context.Context, ready func(), each func(firstcome.CampaignID, flow.Settled)) error {
	watching, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	long := make(chan firstcome.CampaignID, maxLong)
	reading.Go(func() { g.readLong(watching, long, each) })
	err := g.subscribe(ctx, g.settledChannel(), ready, func(message string) {
		id, settled, err := readSettled(message)
		switch {
		case err == nil:
			each(id, settled)
		case errors.Is(err, errMany):
			select {
			case long <- id:
			default: // who waits reads it soon
			}
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch what is settled: %w", err)
}

// maxLong bounds the messages without their numbers that wait to be read.
const maxLong = 16

// readLong reads what does not fit in a message. It is apart from the subscription,
// whose connection reads no answer while a message waits.
func (g *Gate) readLong(ctx context.Context, long <-chan firstcome.CampaignID, each func(firstcome.CampaignID, flow.Settled)) {
	for {
		select {
		case id := <-long:
			if settled, err := g.settledThrough(ctx, id); err == nil {
				each(id, settled)
			}
		case <-ctx.Done():
			return
		}
	}
}

// errMany says that a message does not have all unrecorded numbers.
var errMany = errors.New("more numbers are unrecorded than the message has")

// readSettled reads a message: the campaign, the number through which all are
// settled, the epoch of that, and the numbers that are unrecorded.
func readSettled(message string) (id firstcome.CampaignID, s flow.Settled, err error) {
	words := strings.Fields(message)
	if len(words) < 3 {
		return "", s, fmt.Errorf("the message %q is not about a campaign", message)
	}
	if id, err = firstcome.ParseCampaignID(words[0]); err != nil {
		return "", s, err
	}
	if words[len(words)-1] == many {
		return id, s, errMany
	}
	if s.Through, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return "", s, err
	}
	if s.Epoch, err = strconv.ParseInt(words[2], 10, 64); err != nil {
		return "", s, err
	}
	for _, word := range words[3:] {
		number, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return "", s, err
		}
		s.Unrecorded = append(s.Unrecorded, number)
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
