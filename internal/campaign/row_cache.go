package campaign

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// maxRows bounds how many campaigns have their rows in memory: about 3 MB.
const maxRows = 10_000

// A rowCache holds what transactions know of campaigns. It implements sqldb.Local.
type rowCache struct {
	queries *queries
	news    *News
	touched map[firstcome.CampaignID]bool  // campaigns with new facts
	changed map[firstcome.CampaignID]inRow // campaigns whose rows this transaction will write: see PutRow
	// rows are the campaigns' rows as this transaction leaves them. On SQLite they also come from earlier
	// transactions: no other process writes them, so each is read once.
	rows map[firstcome.CampaignID]Row
}

func newRowCache(q *queries, n *News) *rowCache {
	return &rowCache{
		queries: q, news: n,
		touched: map[firstcome.CampaignID]bool{},
		changed: map[firstcome.CampaignID]inRow{},
		rows:    map[firstcome.CampaignID]Row{},
	}
}

// cacheOf returns the cache of a transaction.
func cacheOf(t *sqldb.Tx) *rowCache { return t.Local.(*rowCache) }

// CachedRow returns a campaign's row as Store.Row or PutRow left it in the transaction.
func CachedRow(t *sqldb.Tx, id firstcome.CampaignID) Row { return cacheOf(t).rows[id] }

// Forget has the next Store.Row of a campaign read its row from the database.
func Forget(t *sqldb.Tx, id firstcome.CampaignID) { delete(cacheOf(t).rows, id) }

// An inRow holds the values that a campaign's row has in the database until WriteRows.
type inRow struct {
	lastNumber int64
	line       firstcome.Line
}

// PutRow remembers a row that the transaction changed. before is the row as remembered so far. A rollback drops both. The caller
// must call WriteRows before the transaction ends.
func PutRow(t *sqldb.Tx, before, s Row) {
	m := cacheOf(t)
	m.rows[s.ID] = s
	if _, changed := m.changed[s.ID]; !changed {
		m.changed[s.ID] = inRow{before.LastNumber, before.Line}
	}
}

// WriteRows writes the counters of the campaigns that PutRow remembered in the transaction. It is called once in a transaction.
func WriteRows(t *sqldb.Tx) error { return cacheOf(t).queries.update(t) }

// HasFacts notes that the transaction adds facts of a campaign, so that readers who wait for them wake when it is committed.
func HasFacts(t *sqldb.Tx, id firstcome.CampaignID) { cacheOf(t).touched[id] = true }

func (m *rowCache) Begin() {
	clear(m.touched)
	clear(m.changed)
	if len(m.rows) > maxRows {
		clear(m.rows)
	}
}

func (m *rowCache) Committed() { m.news.announce(m.touched) }

// Undone forgets the rows that the transaction changed in memory.
func (m *rowCache) Undone() {
	for id := range m.changed {
		delete(m.rows, id)
	}
}

func (m *rowCache) Forget() { clear(m.rows) }

func (m *rowCache) Remembers(campaign string) bool {
	_, remembered := m.rows[firstcome.CampaignID(campaign)]
	return remembered
}

func (m *rowCache) Drop(campaign string) { delete(m.rows, firstcome.CampaignID(campaign)) }
