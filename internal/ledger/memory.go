package ledger

import "github.com/firstcome/firstcome/internal/sqldb"

import "github.com/firstcome/firstcome"

// maxStocks bounds how many campaigns have their rows in memory: about 3 MB.
const maxStocks = 10_000

// A memory holds what transactions know of campaigns. It implements sqldb.Local.
type memory struct {
	queries *queries
	news    *news
	touched map[firstcome.CampaignID]bool // campaigns with new facts

	// Deciding a claim writes nothing. flush writes these, so that the claims of many campaigns are written
	// together.
	coupons []placed
	joins   []ticket                       // new tickets
	ends    []ticket                       // ended tickets: see ticket.outcome
	past    []pastLine                     // ended generations
	dirty   map[firstcome.CampaignID]inRow // campaigns whose counters changed
	// stocks are the campaigns' rows as this transaction leaves them. On SQLite they also come from earlier
	// transactions: no other process writes them, so each is read once.
	stocks map[firstcome.CampaignID]stock
}

// An inRow holds the values that a campaign's row has in the database until flush.
type inRow struct {
	lastNumber int64
	line       firstcome.Line
}

func newMemory(q *queries, n *news) *memory {
	return &memory{
		queries: q, news: n,
		touched: map[firstcome.CampaignID]bool{},
		dirty:   map[firstcome.CampaignID]inRow{},
		stocks:  map[firstcome.CampaignID]stock{},
	}
}

// memoryOf returns the memory of a transaction.
func memoryOf(t *sqldb.Tx) *memory { return t.Local.(*memory) }

func (m *memory) Begin() {
	m.coupons, m.joins, m.ends, m.past = m.coupons[:0], m.joins[:0], m.ends[:0], m.past[:0]
	clear(m.touched)
	clear(m.dirty)
	if len(m.stocks) > maxStocks {
		clear(m.stocks)
	}
}

func (m *memory) Committed() { m.news.announce(m.touched) }

// Undone forgets the rows that the transaction changed in memory.
func (m *memory) Undone() {
	for id := range m.dirty {
		delete(m.stocks, id)
	}
}

func (m *memory) Forget() { clear(m.stocks) }

func (m *memory) Remembers(campaign string) bool {
	_, remembered := m.stocks[firstcome.CampaignID(campaign)]
	return remembered
}

func (m *memory) Drop(campaign string) { delete(m.stocks, firstcome.CampaignID(campaign)) }
