package redis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
)

const (
	// scanPage is how many holders or tickets one command returns, about: some 100 µs of Redis's time.
	scanPage = 1000
	// scanAttempts is how often the holders are read again because a change came in between.
	scanAttempts = 3
)

func (c *conn) page(ctx context.Context, key string, cursor uint64) (rueidis.ScanEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	page, err := c.client.Do(ctx, c.client.B().Hscan().Key(key).Cursor(cursor).Count(scanPage).Build()).AsScanEntry()
	return page, classify(err)
}

// eachField calls each with every field of a hash and its value, in no order, until it returns an error.
func (c *conn) eachField(ctx context.Context, key string, each func(field, value string) error) error {
	for cursor := uint64(0); ; {
		page, err := c.page(ctx, key, cursor)
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

// eachHolder is Coupons.
func (c *conn) eachHolder(ctx context.Context, k *keys, each func(firstcome.Coupon) error) error {
	return c.eachField(ctx, k.holders, func(user, entry string) error {
		c, err := readEntry(k.id, firstcome.UserID(user), entry)
		if err != nil {
			return err
		}
		return each(c)
	})
}

// inspectEntries is how many entries one command returns: some 10,000 coupons of a
// busy campaign.
const inspectEntries = 100

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
func (c *conn) stream(ctx context.Context, key string) pager {
	return func(from string, count int64) ([]rueidis.XRangeEntry, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		entries, err := c.client.Do(ctx, c.client.B().Xrange().Key(key).Start(from).End("+").Count(count).Build()).AsXRange()
		return entries, classify(err)
	}
}
