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
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// errGone means that numbers are missing although no entry and no record is on its way.
const errGone = record.HoleError("numbers that were issued are not recorded, although neither the gate's journal nor the topic has more coupons")

// refreshEvery is how often a recorder checks whether the topic was recreated. Its client would notice only after ten seconds.
const refreshEvery = 2 * time.Second

// A sight is a campaign's state as a sweep saw it, and since when it has been the same.
type sight struct {
	record.Undrained
	since time.Time
}

// sweep makes recorders report to the gate if the ledger is drained further than the gate knows. It also looks for lost numbers: they are on their
// way neither in the gate's journal nor in the topic, and the ledger does not have them.
func (c *consumer) sweep(ctx context.Context) error {
	j, seen := c.Journal, map[firstcome.CampaignID]sight{}
	for looked := time.Now(); ; {
		_ = wait.Sleep(ctx, j.options.Sweep)
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
			continue // the ledger does not answer, so no coupon can be recorded now
		}
		behind, err := j.options.Gate.Behind(ctx, active)
		if err != nil {
			continue // the gate's own journal reports that
		}
		seen = c.look(ctx, active, behind, seen)
	}
}

// look is one round of a sweep. seen has the state of the round before.
func (c *consumer) look(ctx context.Context, active []gate.Revision, behind []record.Undrained, seen map[firstcome.CampaignID]sight) map[firstcome.CampaignID]sight {
	now := map[firstcome.CampaignID]sight{}
	quiet, known := false, false // quiet: all records of the topic are committed
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
		case u.Epoch < active[at].Epoch: // a gate in a stale epoch gets no report, and numbers that it issued are lost
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

// quiet reports whether all records of the topic are committed, so that no coupon is on its way there.
func (j *Journal) quiet(ctx context.Context) bool {
	begin, is, err := j.uncommitted(ctx)
	return err == nil && slices.Equal(begin, is.ends)
}

// uncommitted returns, for each partition, the offset after the records that are certainly recorded, and the current ends of the topic. It reads the
// ends last, so that offsets which are committed in between are below them.
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
			case at.At > is.ends[number]: // reading from there would skip records
				j.alarms.Raise("", fmt.Errorf("%w: the partition %d of the topic %s ends at offset %d, although records up to %d were recorded; it is read again from its start",
					errLost, number, j.topic.name, is.ends[number], at.At))
			case at.At < is.starts[number]:
				j.alarms.Raise("", fmt.Errorf("%w: the partition %d of the topic %s begins at offset %d, although only records below %d are recorded",
					errLost, number, j.topic.name, is.starts[number], at.At))
			default:
				begin[number] = at.At
			}
		}
		return begin, is, nil
	}
}

// errLost means that records are gone whose coupons may not be recorded. Missing coupons are then recorded from the gate's holders.
var errLost = errors.New("Kafka has lost records of the journal")

// committed returns the offsets that the recorders of the topic with an id have committed.
func (j *Journal) committed(ctx context.Context, client *kgo.Client, id string) (kadm.OffsetResponses, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	offsets, err := fetchOffsets(ctx, client, groupOf(j.options.Name, id))
	if err != nil {
		err = j.topic.explain(fmt.Errorf("read the committed offsets of the topic %s: %w", j.topic.name, err))
	}
	return offsets, err
}

// fetchOffsets returns the committed offsets of a group. It waits for a new cluster to create its internal topic for offsets.
func fetchOffsets(ctx context.Context, client *kgo.Client, group string) (offsets kadm.OffsetResponses, err error) {
	for {
		offsets, err = kadm.NewClient(client).FetchOffsets(ctx, group)
		if err == nil {
			err = offsets.Error()
		}
		if err == nil || !kerr.IsRetriable(err) || ctx.Err() != nil {
			return offsets, err
		}
		_ = wait.Sleep(ctx, metadataAge)
	}
}
