package ledger

import "github.com/firstcome/firstcome/internal/sqldb"

import "github.com/firstcome/firstcome"

// maxStocks bounds how many campaigns have their rows in memory: about 3 MB.
const maxStocks = 10_000

// A memory is what transactions know of campaigns: see local.
type memory struct {
	queries *queries
	news    *news
	touched map[firstcome.CampaignID]bool // campaigns with new facts

	// What flush will write: claims only decide, so that the claims of many
	// campaigns are written together.
	coupons []placed
	joins   []ticket                       // that were given
	ends    []ticket                       // that ended: see ticket.outcome
	past    []pastLine                     // generations that ended
	dirty   map[firstcome.CampaignID]inRow // campaigns whose rows are raised
	// stocks are the campaigns' rows as this transaction leaves them, and on SQLite those of
	// earlier ones: nobody else writes them, so they are read once.
	stocks map[firstcome.CampaignID]stock
}

// An inRow is what the row of a campaign has in the database, until flush.
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

// memoryOf returns what a transaction knows.
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
