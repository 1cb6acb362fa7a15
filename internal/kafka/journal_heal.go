package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// errGone says that nothing is on its way, and numbers are missing.
const errGone = flow.HoleError("neither the gate's journal nor the topic has anything, and not all that was issued is recorded")

// refreshEvery is how often a recorder looks whether the topic was recreated. Its client notices only after ten seconds.
const refreshEvery = 2 * time.Second

// A sight is what a sweep saw of a campaign, and since when.
type sight struct {
	flow.Undrained
	since time.Time
}

// sweep has the gate be told where the ledger has more than it heard of, and looks for numbers that are gone: nothing of them is on its
// way, and the ledger does not have them.
func (c *consumer) sweep(ctx context.Context) error {
	j, seen := c.Journal, map[firstcome.CampaignID]sight{}
	for looked := time.Now(); ; {
		wait(ctx, j.options.Sweep)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(looked) > refreshEvery {
			looked = time.Now()
			_ = j.refresh(ctx)
		}
		if _, id := j.Topic(); id != c.id {
			return errRecreated
		}
		active, err := j.options.Ledger.Active(ctx)
		if err != nil {
			continue // nothing can be recorded now
		}
		behind, err := j.options.Gate.Behind(ctx, active)
		if err != nil {
			continue // the gate says so itself
		}
		seen = c.look(ctx, active, behind, seen)
	}
}

// look is one look of a sweep, given what the one before saw.
func (c *consumer) look(ctx context.Context, active []gate.Revision, behind []flow.Undrained, seen map[firstcome.CampaignID]sight) map[firstcome.CampaignID]sight {
	now := map[firstcome.CampaignID]sight{}
	quiet, known := false, false // nothing is on its way in the topic
	for _, u := range behind {
		at := slices.IndexFunc(active, func(r gate.Revision) bool { return r.Campaign == u.Campaign })
		before, same := seen[u.Campaign]
		if same = same && before.Undrained == u; !same {
			before = sight{u, time.Now()}
		}
		now[u.Campaign] = before
		q := c.queue(u.Campaign)
		switch {
		case !same || u.Entries > 0:
		case u.Epoch < active[at].Epoch: // an older gate is told nothing, and what it gave is lost
		case u.Drained < active[at].Drained:
			c.notes(&q.tell)
			c.ready(u.Campaign)
		case u.Drained < u.Last && time.Since(before.since) > c.options.Patience:
			if !known {
				quiet, known = c.quiet(ctx), true
			}
			if quiet {
				c.notes(&q.gone)
				c.ready(u.Campaign)
			}
		}
	}
	return now
}

// quiet tells whether all records of the topic are committed, so that nothing is on its way there.
func (j *Journal) quiet(ctx context.Context) bool {
	begin, is, err := j.uncommitted(ctx)
	return err == nil && slices.Equal(begin, is.ends)
}

// uncommitted returns, of each partition, the offset behind all that is recorded for sure, and where the topic ends. The ends are read last:
// what is committed meanwhile is below them.
func (j *Journal) uncommitted(ctx context.Context) (begin []int64, is found, err error) {
	if err := j.Find(ctx); err != nil {
		return nil, is, err
	}
	_, id := j.Topic()
	for {
		client := j.producer.Load()
		offsets, err := j.committed(ctx, client, id)
		if err != nil {
			return nil, is, err
		}
		if is, err = j.topic.look(ctx, client); err != nil {
			return nil, is, err
		}
		if is.id != id { // it was recreated
			id = is.id
			continue
		}
		begin = slices.Clone(is.starts)
		for number := range begin {
			at, ok := offsets.Lookup(j.topic.name, int32(number))
			switch {
			case !ok:
			case at.At > is.ends[number]: // who reads on there would skip others
				j.alarms.Tell("", fmt.Errorf("%w: the partition %d of the topic %s ends at offset %d, and all below %d was recorded; it is read again from its start",
					errLost, number, j.topic.name, is.ends[number], at.At))
			case at.At < is.starts[number]:
				j.alarms.Tell("", fmt.Errorf("%w: the partition %d of the topic %s begins at offset %d, and only what is below %d is recorded",
					errLost, number, j.topic.name, is.starts[number], at.At))
			default:
				begin[number] = at.At
			}
		}
		return begin, is, nil
	}
}

// errLost says that records are gone that may not be recorded. What is missing then is recorded from the gate's holders.
var errLost = errors.New("Kafka has lost records of the journal")

// committed returns what the recorders of the topic of an id have committed.
func (j *Journal) committed(ctx context.Context, client *kgo.Client, id string) (kadm.OffsetResponses, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	offsets, err := fetchOffsets(ctx, client, groupOf(j.options.Name, id))
	if err != nil {
		err = j.topic.explain(fmt.Errorf("ask what of the topic %s is recorded: %w", j.topic.name, err))
	}
	return offsets, err
}

// fetchOffsets returns what a group has committed. A cluster whose first group this is needs a moment to make room for them.
func fetchOffsets(ctx context.Context, client *kgo.Client, group string) (offsets kadm.OffsetResponses, err error) {
	for {
		offsets, err = kadm.NewClient(client).FetchOffsets(ctx, group)
		if err == nil {
			err = offsets.Error()
		}
		if err == nil || !kerr.IsRetriable(err) || ctx.Err() != nil {
			return offsets, err
		}
		wait(ctx, metadataAge)
	}
}
