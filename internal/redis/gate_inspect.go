package redis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
)

// Coupons calls each with the coupon in force of every holder, in no order, until it
// returns an error. It reads page by page while claims go on: what is issued or voided
// meanwhile may be there or not, and a coupon may come twice. None has a Code.
func (g *Gate) Coupons(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = g.eachHolder(ctx, k, each)
	}
	return wrap(err, "read the holders of %s", id)
}

// eachHolder is Coupons.
func (g *Gate) eachHolder(ctx context.Context, k *keys, each func(firstcome.Coupon) error) error {
	return g.eachField(ctx, k.holders, func(user, entry string) error {
		c, err := readEntry(k.id, firstcome.UserID(user), entry)
		if err != nil {
			return err
		}
		return each(c)
	})
}

// eachField calls each with every field of a hash and its value, in no order, until it returns an error.
func (g *Gate) eachField(ctx context.Context, key string, each func(field, value string) error) error {
	for cursor := uint64(0); ; {
		page, err := g.page(ctx, key, cursor)
		if err != nil {
			return err
		}
		for n := 0; n+1 < len(page.Elements); n += 2 {
			if err := each(page.Elements[n], page.Elements[n+1]); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// Masters returns the runs of the servers that decide, for who may only read. It is an error if one of them does not say.
func (g *Gate) Masters(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	runs := map[string]bool{}
	for _, node := range g.client.Nodes() {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			return nil, wrap(classify(err), "ask which runs of its servers there are")
		}
		if info := parseInfo(text); info["role"] == "master" {
			runs[runOf(info)] = true
		}
	}
	return runs, nil
}

// DecidedBy returns the run of the server that decided last of a campaign, and whether a rebuild froze it since. Of a campaign that is not there it
// is empty.
func (g *Gate) DecidedBy(ctx context.Context, id firstcome.CampaignID) (run string, frozen bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return "", false, err
	}
	fields, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field("run", "frozen").Build()).AsStrSlice()
	if err != nil {
		return "", false, wrap(classify(err), "look who decided %s", id)
	}
	return fields[0], fields[1] != "", nil
}

// inspectEntries is how many entries one command returns: some 10,000 coupons of a
// busy campaign.
const inspectEntries = 100

// Unrecorded calls each with every coupon of the journal, which is on its way to the
// ledger or has just arrived, in the order of issue, until it returns an error. It
// takes nothing away from recorders. An entry that cannot be read is passed over: a
// recorder makes a dead letter of it, or leaves it to a newer one.
func (g *Gate) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = eachEntry(g.stream(ctx, k.journal), inspectEntries, func(e rueidis.XRangeEntry) error {
			says, err := item{id: e.ID, fields: e.FieldValues}.read(id, g.options.Secret)
			if err != nil {
				return nil
			}
			for _, c := range says.coupons {
				if err := each(c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return wrap(err, "read the journal of %s", id)
}

// A pager reads so many entries of a stream, from an id on, as XRANGE takes it.
type pager func(from string, count int64) ([]rueidis.XRangeEntry, error)

// eachEntry calls each with every entry of a stream, in its order, until it returns an error. It reads so many at a time.
func eachEntry(read pager, page int64, each func(rueidis.XRangeEntry) error) error {
	for from := "-"; ; {
		entries, err := read(from, page)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
			from = "(" + e.ID
		}
		if int64(len(entries)) < page {
			return nil
		}
	}
}

// stream returns what reads the stream at a key.
func (g *Gate) stream(ctx context.Context, key string) pager {
	return func(from string, count int64) ([]rueidis.XRangeEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		entries, err := g.client.Do(ctx, g.client.B().Xrange().Key(key).Start(from).End("+").Count(count).Build()).AsXRange()
		return entries, classify(err)
	}
}
