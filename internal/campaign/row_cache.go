package campaign

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// maxCachedRows bounds how many campaigns have their rows in memory: about 3 MB.
const maxCachedRows = 10_000

// A rowCache holds what transactions know of campaigns. It implements sqldb.Local.
type rowCache struct {
	news    *News
	touched map[firstcome.CampaignID]bool // campaigns with new facts
	changed map[*Row]inRow                // the rows that this transaction will write: see PutRow
	// rows are the campaigns' rows as this transaction leaves them. On SQLite they also come from earlier
	// transactions: no other process writes them, so each is read once.
	rows map[firstcome.CampaignID]*Row
}

// NewCache returns the Local of a transaction: rows of campaigns. It tells n the campaigns that have new facts.
func (n *News) NewCache() sqldb.Local {
	return &rowCache{
		news:    n,
		touched: map[firstcome.CampaignID]bool{},
		changed: map[*Row]inRow{},
		rows:    map[firstcome.CampaignID]*Row{},
	}
}

// cacheOf returns the cache of a transaction.
func cacheOf(t *sqldb.Tx) *rowCache { return t.Local.(*rowCache) }

// Forget has the next Store.Row of a campaign read its row from the database.
func Forget(t *sqldb.Tx, id firstcome.CampaignID) { delete(cacheOf(t).rows, id) }

// An inRow holds the values that a campaign's row has in the database until Flush.
type inRow struct {
	lastNumber int64
	line       firstcome.Line
}

// PutRow changes a row that Store.Row returned in the transaction. It is written at the transaction's end, and forgotten by a rollback.
func PutRow(t *sqldb.Tx, row *Row, s Row) {
	c := cacheOf(t)
	if _, changed := c.changed[row]; !changed {
		c.changed[row] = inRow{row.LastNumber, row.Line}
	}
	*row = s
}

// HasFacts notes that the transaction adds facts of a campaign, so that readers who wait for them wake when it is committed.
func HasFacts(t *sqldb.Tx, id firstcome.CampaignID) { cacheOf(t).touched[id] = true }

// Flush writes the counters of the rows that PutRow changed.
func (c *rowCache) Flush(t *sqldb.Tx) error { return byDialect[t.Dialect].update(t, c.changed) }

func (c *rowCache) Committed() {
	c.news.announce(c.touched)
	c.end()
}

// Undone forgets the rows that the transaction changed in memory.
func (c *rowCache) Undone() {
	for s := range c.changed {
		delete(c.rows, s.ID)
	}
	c.end()
}

// end prepares for the next transaction.
func (c *rowCache) end() {
	clear(c.touched)
	clear(c.changed)
	if len(c.rows) > maxCachedRows {
		clear(c.rows)
	}
}

func (c *rowCache) Forget() { clear(c.rows) }

func (c *rowCache) Remembers(campaign string) bool {
	_, remembered := c.rows[firstcome.CampaignID(campaign)]
	return remembered
}

func (c *rowCache) Drop(campaign string) { delete(c.rows, firstcome.CampaignID(campaign)) }
