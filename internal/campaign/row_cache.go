package campaign

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// maxRows bounds how many campaigns have their rows in memory: about 3 MB.
const maxRows = 10_000

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
	m := cacheOf(t)
	if _, changed := m.changed[row]; !changed {
		m.changed[row] = inRow{row.LastNumber, row.Line}
	}
	*row = s
}

// HasFacts notes that the transaction adds facts of a campaign, so that readers who wait for them wake when it is committed.
func HasFacts(t *sqldb.Tx, id firstcome.CampaignID) { cacheOf(t).touched[id] = true }

// Flush writes the counters of the rows that PutRow changed.
func (m *rowCache) Flush(t *sqldb.Tx) error { return byDialect[t.Dialect].update(t, m.changed) }

func (m *rowCache) Committed() {
	m.news.announce(m.touched)
	m.end()
}

// Undone forgets the rows that the transaction changed in memory.
func (m *rowCache) Undone() {
	for s := range m.changed {
		delete(m.rows, s.ID)
	}
	m.end()
}

// end prepares for the next transaction.
func (m *rowCache) end() {
	clear(m.touched)
	clear(m.changed)
	if len(m.rows) > maxRows {
		clear(m.rows)
	}
}

func (m *rowCache) Forget() { clear(m.rows) }

func (m *rowCache) Remembers(campaign string) bool {
	_, remembered := m.rows[firstcome.CampaignID(campaign)]
	return remembered
}

func (m *rowCache) Drop(campaign string) { delete(m.rows, firstcome.CampaignID(campaign)) }
