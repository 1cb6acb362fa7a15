package campaign

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// maxStocks bounds how many campaigns have their rows in memory: about 3 MB.
const maxStocks = 10_000

// A memory holds what transactions know of campaigns. It implements sqldb.Local.
type memory struct {
	queries *queries
	news    *News
	touched map[firstcome.CampaignID]bool  // campaigns with new facts
	changed map[firstcome.CampaignID]inRow // campaigns whose rows this transaction will write: see Keep
	// stocks are the campaigns' rows as this transaction leaves them. On SQLite they also come from earlier
	// transactions: no other process writes them, so each is read once.
	stocks map[firstcome.CampaignID]Stock
}

func newMemory(q *queries, n *News) *memory {
	return &memory{
		queries: q, news: n,
		touched: map[firstcome.CampaignID]bool{},
		changed: map[firstcome.CampaignID]inRow{},
		stocks:  map[firstcome.CampaignID]Stock{},
	}
}

// memoryOf returns the memory of a transaction.
func memoryOf(t *sqldb.Tx) *memory { return t.Local.(*memory) }

// Remembered returns a campaign's stock as Rows.Stock or Keep left it in the transaction.
func Remembered(t *sqldb.Tx, id firstcome.CampaignID) Stock { return memoryOf(t).stocks[id] }

// Forget has the next Rows.Stock of a campaign read its row from the database.
func Forget(t *sqldb.Tx, id firstcome.CampaignID) { delete(memoryOf(t).stocks, id) }

// An inRow holds the values that a campaign's row has in the database until WriteRows.
type inRow struct {
	lastNumber int64
	line       firstcome.Line
}

// Keep remembers a stock that the transaction changed. before is the stock as remembered so far. A rollback drops both. The caller
// must call WriteRows before the transaction ends.
func Keep(t *sqldb.Tx, before, s Stock) {
	m := memoryOf(t)
	m.stocks[s.ID] = s
	if _, changed := m.changed[s.ID]; !changed {
		m.changed[s.ID] = inRow{before.LastNumber, before.Line}
	}
}

// WriteRows writes the counters of the campaigns that Keep remembered in the transaction. It is called once in a transaction.
func WriteRows(t *sqldb.Tx) error { return memoryOf(t).queries.update(t) }

// HasFacts notes that the transaction adds facts of a campaign, so that readers who wait for them wake when it is committed.
func HasFacts(t *sqldb.Tx, id firstcome.CampaignID) { memoryOf(t).touched[id] = true }

func (m *memory) Begin() {
	clear(m.touched)
	clear(m.changed)
	if len(m.stocks) > maxStocks {
		clear(m.stocks)
	}
}

func (m *memory) Committed() { m.news.announce(m.touched) }

// Undone forgets the rows that the transaction changed in memory.
func (m *memory) Undone() {
	for id := range m.changed {
		delete(m.stocks, id)
	}
}

func (m *memory) Forget() { clear(m.stocks) }

func (m *memory) Remembers(campaign string) bool {
	_, remembered := m.stocks[firstcome.CampaignID(campaign)]
	return remembered
}

func (m *memory) Drop(campaign string) { delete(m.stocks, firstcome.CampaignID(campaign)) }
