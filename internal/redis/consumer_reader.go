package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
)

// A reader reads the entries of one campaign's journal as one consumer of the recorders' group: first those that
// this consumer left unfinished, then those that another consumer has not claimed again for too long, then new ones. So an entry
// is with one recorder at a time, and with a dead recorder for Idle at most. The worker that has the campaign guards it.
type reader struct {
	conn     *conn
	options  *ConsumerOptions
	consumer string
	journal  string // its key

	unfinished bool             // entries that were given to this consumer may be unfinished
	aside      string           // the entry after which they are read, see setAside; empty if from the first on
	looked     time.Time        // when entries of other recorders were last looked for
	perEntry   int              // coupons of an entry, about
	gone       record.HoleError // what is missing in the journal, until it has been reported
}

// read returns entries to work on: what this consumer left unfinished, else what others
// did, else new ones. A group that is gone is recreated from the beginning of the stream.
func (r *reader) read(ctx context.Context) ([]item, error) {
	items, err := r.readOnce(ctx)
	var e *Error
	if !errors.As(err, &e) || e.Code != codeNoGroup {
		return items, err
	}
	r.gone = "the recorders' group was gone: it is recreated from the beginning of the journal"
	made := r.conn.client.Do(ctx, r.conn.client.B().XgroupCreate().Key(r.journal).Group(group).Id("0").Mkstream().Build()).Error()
	if made != nil && !rueidis.IsRedisBusyGroup(made) {
		return nil, classify(made)
	}
	return r.readOnce(ctx)
}

func (r *reader) readOnce(ctx context.Context) ([]item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if r.unfinished {
		items, err := r.readGroup(ctx, cmp.Or(r.aside, "0"))
		if err != nil || len(items) > 0 {
			return items, err
		}
		r.unfinished, r.aside = false, ""
	}
	if time.Since(r.looked) > r.options.Idle/2 {
		items, err := r.takeOver(ctx)
		if err != nil || len(items) > 0 {
			return items, err
		}
		r.looked = time.Now()
	}
	return r.readNew(ctx)
}

// readNew reads new entries until their coupons are about a batch. It reads some entries at a time, because only an
// entry that was read says how many coupons it has: two thousand entries may have two thousand coupons, or a million.
func (r *reader) readNew(ctx context.Context) (items []item, err error) {
	coupons := 0
	for rest := r.count(); rest > 0 && coupons < r.options.Coupons; rest -= pageEntries {
		page, err := r.readGroup(ctx, ">")
		if err != nil {
			return nil, err // what was read comes again
		}
		for _, e := range page {
			coupons += e.claims()
		}
		if items = append(items, page...); int64(len(page)) < min(rest, pageEntries) {
			break
		}
	}
	return items, nil
}

// count returns how many entries to read for about one batch.
func (r *reader) count() int64 {
	return int64(min(maxEntries, max(1, r.options.Coupons/r.perEntry)))
}

// readGroup reads some new entries (from >) or this consumer's unfinished ones (from 0).
func (r *reader) readGroup(ctx context.Context, from string) ([]item, error) {
	answer := r.conn.client.Do(ctx, r.conn.client.B().Xreadgroup().Group(group, r.consumer).Count(min(pageEntries, r.count())).
		Streams().Key(r.journal).Id(from).Build())
	streams, err := answer.AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err)
	}
	return r.present(ctx, streams[r.journal])
}

// takeOver makes entries this consumer's that have been with another for too long, and
// returns what this consumer has then. It asks for their ids only: in the place of an entry that was
// deleted, Redis 6.2 would answer nothing, not even its id.
func (r *reader) takeOver(ctx context.Context) ([]item, error) {
	answer, err := r.conn.client.Do(ctx, r.conn.client.B().Xautoclaim().Key(r.journal).Group(group).Consumer(r.consumer).
		MinIdleTime(strconv.FormatInt(r.options.Idle.Milliseconds(), 10)).Start("0-0").Count(r.count()).Justid().Build()).ToArray()
	if err != nil {
		return nil, classify(err)
	}
	if len(answer) < 2 {
		return nil, errors.New("the answer to XAUTOCLAIM cannot be read")
	}
	if len(answer) > 2 { // from Redis 7 on: entries that were deleted while a consumer had them
		if gone, err := answer[2].AsStrSlice(); err == nil && len(gone) > 0 {
			r.gone = errDeleted
		}
	}
	taken, err := answer[1].AsStrSlice()
	if err != nil || len(taken) == 0 {
		return nil, classify(err)
	}
	r.unfinished, r.aside = true, "" // until they are read
	return r.readGroup(ctx, "0")
}

// present returns the entries that still exist, and acknowledges the others.
func (r *reader) present(ctx context.Context, entries []rueidis.XRangeEntry) ([]item, error) {
	var items []item
	var gone []string
	for _, e := range entries {
		if e.FieldValues == nil {
			gone = append(gone, e.ID)
			continue
		}
		items = append(items, item{e.ID, e.FieldValues})
	}
	if len(gone) == 0 {
		return items, nil
	}
	r.gone = errDeleted
	err := r.conn.client.Do(ctx, r.conn.client.B().Xack().Key(r.journal).Group(group).Id(gone...).Build()).Error()
	return items, classify(err)
}

// errNewer says that a journal has entries that this firstcome cannot read, and that are no garbage.
var errNewer = fmt.Errorf("%w: the journal has entries of a newer firstcome, which are left to its recorders: see that one runs", firstcome.ErrGateMismatch)

// setAside returns the entries that are not of a newer firstcome. The others stay in the journal: once
// this recorder has had them for Idle, a recorder of the newer firstcome takes them over. Until that has
// surely happened, this recorder takes over nothing, because it would get the same entries again.
func (r *reader) setAside(items []item) []item {
	if !slices.ContainsFunc(items, item.newer) {
		return items
	}
	last := items[len(items)-1].id
	rest := slices.DeleteFunc(items, item.newer)
	r.looked = time.Now().Add(2 * r.options.Idle)
	if len(rest) == 0 && r.unfinished {
		r.aside = last // otherwise it would read the same entries repeatedly
	}
	return rest
}
