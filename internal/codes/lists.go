package codes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Lists keeps lists of codes that other systems made, in the tables of a ledger.
type Lists struct {
	db    *sqldb.DB
	store *campaign.Store
	box   *Box // nil if this process has no secret
	pages *lru.Cache[pageKey, page]
	reads singleflight.Group // of pages
}

// NewLists returns the lists of a ledger. box is nil if this process has no secret: then it can only count entries.
func NewLists(store *campaign.Store, box *Box) *Lists {
	pages, err := lru.New[pageKey, page](maxPages)
	if err != nil {
		panic(err) // only a size below 1 is an error
	}
	return &Lists{db: store.DB, store: store, box: box, pages: pages}
}

const (
	// entriesPerPage is how many entries a node reads at once: winners come in the order of their ranks.
	entriesPerPage = 256
	// maxPages and pageTime bound the pages of entries in memory: some 10 MB, for as long as a crowd asks.
	maxPages = 200
	pageTime = 10 * time.Second
	// readWait is how long a page may be read.
	readWait = 10 * time.Second
)

// A page has the sealed codes of entriesPerPage entries.
type page struct {
	sealed map[int64][]byte // by entry
	read   time.Time
}

type pageKey struct {
	campaign firstcome.CampaignID
	prize    firstcome.PrizeID
	number   int64
}

// ErrNoEntry means that a coupon's list has no entry for it. A promise is broken then: a campaign with imported codes issues nothing until its lists
// are complete.
var ErrNoEntry = errors.New("the list of imported codes has no entry for the coupon")

// CodeOf returns the code of a recorded coupon that the shop's system knows: the imported one, or the coupon's own code. t are the coupon's terms.
// ErrDamaged and ErrNoEntry say that only an operator can help.
func (cs *Lists) CodeOf(ctx context.Context, c *firstcome.Coupon, t *firstcome.Terms) (string, error) {
	prize, entry := t.Entry(c.Number)
	if entry == 0 {
		return c.Code, nil
	}
	at := At{Campaign: c.Campaign, Prize: prize, Entry: entry}
	key := pageKey{c.Campaign, prize, (entry - 1) / entriesPerPage}
	p, _ := cs.pages.Get(key)
	if p.sealed[entry] == nil || time.Since(p.read) > pageTime { // the page may be older than the entry
		var err error
		if p, err = cs.read(ctx, key); err != nil {
			return "", fmt.Errorf("read an imported code of %s: %w", c.Campaign, err)
		}
	}
	sealed := p.sealed[entry]
	if sealed == nil {
		return "", fmt.Errorf("entry %d of the list %q of %s: %w", entry, prize, c.Campaign, ErrNoEntry)
	}
	code, err := cs.box.Open(at, sealed)
	if err != nil {
		err = fmt.Errorf("entry %d of the list %q of %s: %w", entry, prize, c.Campaign, err)
	}
	return code, err
}

// Entries returns how many entries each list of a campaign has. A list that was never imported is missing.
func (cs *Lists) Entries(ctx context.Context, id firstcome.CampaignID) (map[firstcome.PrizeID]int64, error) {
	lists, err := campaign.CodeLists(func(query string, args ...any) (*sql.Rows, error) {
		return cs.db.Conclude.QueryContext(ctx, query, args...)
	}, id)
	all := map[firstcome.PrizeID]int64{}
	for prize, list := range lists {
		all[prize] = list.Entries
	}
	return all, sqldb.Wrap(err, "read the lists of codes of %s", id)
}

// read reads a page, once for all callers who wait for it.
func (cs *Lists) read(ctx context.Context, key pageKey) (page, error) {
	// The read continues for other callers if this caller's context ends.
	done := cs.reads.DoChan(fmt.Sprint(key), func() (any, error) {
		p, err := cs.readPage(context.WithoutCancel(ctx), key)
		if err == nil {
			cs.pages.Add(key, p)
		}
		return p, err
	})
	select {
	case r := <-done:
		p, _ := r.Val.(page)
		return p, r.Err
	case <-ctx.Done():
		return page{}, ctx.Err()
	}
}

// readPage reads the entries of a page that the list counts.
func (cs *Lists) readPage(ctx context.Context, key pageKey) (page, error) {
	ctx, over := context.WithTimeout(ctx, readWait)
	defer over()
	p := page{sealed: map[int64][]byte{}, read: time.Now()}
	first := key.number*entriesPerPage + 1
	rows, err := cs.db.Conclude.QueryContext(ctx, `SELECT e.entry, e.sealed FROM code_lists l JOIN code_entries e ON e.campaign_id = l.campaign_id AND e.prize_id = l.prize_id
		WHERE l.campaign_id = ? AND l.prize_id = ? AND e.entry >= ? AND e.entry < ? AND e.entry <= l.entries`,
		string(key.campaign), string(key.prize), first, first+entriesPerPage)
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var entry int64
		var sealed []byte
		err := take(&entry, &sealed)
		p.sealed[entry] = sealed
		return err
	})
	return p, err
}

// ByImported returns the campaign and the number that an imported code is of, or ErrNoCoupon if the ledger has no such code. The number may not be
// given yet. t are the terms in force.
func (cs *Lists) ByImported(ctx context.Context, code string) (at At, err error) {
	err = cs.db.Conclude.QueryRowContext(ctx, `SELECT e.campaign_id, e.prize_id, e.entry FROM code_entries e
		JOIN code_lists l ON l.campaign_id = e.campaign_id AND l.prize_id = e.prize_id WHERE e.mac = ? AND e.entry <= l.entries`, cs.box.MAC(code)).
		Scan(&at.Campaign, &at.Prize, &at.Entry)
	if errors.Is(err, sql.ErrNoRows) {
		err = firstcome.ErrNoCoupon
	}
	return at, sqldb.Wrap(err, "look for an imported code")
}
