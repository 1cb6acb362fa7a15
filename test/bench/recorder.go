package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
)

// entry is how many coupons an entry of the journal has here: a batch of a node
// that 256 connections keep busy.
const entry = 250

// recorder: a Recorder drains a full journal while nobody claims, against plain
// multi-row INSERTs of the same rows into the same table, as many at a time.
func recorder(ctx context.Context, b *bench) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		b.recorderOn(ctx, kind)
	}
}

func (b *bench) recorderOn(ctx context.Context, kind services.Kind) {
	var h hosts
	defer h.close()
	gate, url := h.database(ctx, services.Redis), h.database(ctx, kind)
	p := b.parts(ctx, gate, url)
	defer p.close()
	db := value(open(url, 1))
	defer db.Close()
	batch := 0.0
	recording := func() (f figure) {
		f, batch = b.recordAll(ctx, p, nil, sequential(0))
		return f
	}
	raw := func() figure { return b.insertAll(ctx, db, kind, int(math.Round(batch))) }
	c := b.pair(recording, raw)
	b.printRate(fmt.Sprintf("recorder alone, %s, %.0f rows at a time", kind, batch), c, "rows inserted", wantRecorder)
}

// recorderByTopic: what a full journal takes to come to the ledger through a topic, by a relay and a Recorder, against a Recorder that drains
// the journal straight.
func recorderByTopic(ctx context.Context, b *bench) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		b.recorderByTopic(ctx, kind)
	}
}

func (b *bench) recorderByTopic(ctx context.Context, kind services.Kind) {
	var h hosts
	defer h.close()
	topic := h.topic(ctx, "journal", 6)
	p := b.parts(ctx, h.database(ctx, services.Redis), h.database(ctx, kind))
	defer p.close()
	journal := value(kafka.OpenJournal(ctx, topic, kafka.JournalOptions{
		Name: p.ledger.JournalName(), Secret: value(firstcome.NewSecret([]byte(secret))), Owns: p.ledger.Owns, Ledger: p.ledger.Recorder, Gate: p.gate.Journal,
	}))
	defer journal.Close()
	recording := func(by *kafka.Journal) func() figure {
		return func() figure {
			f, _ := b.recordAll(ctx, p, by, sequential(0))
			return f
		}
	}
	c := b.pair(recording(journal), recording(nil))
	b.printRate("recorder by a topic, "+string(kind), c, "straight from Redis", wantRelay)
}

// recordAll issues the coupons of a new campaign, and then records them.
func (b *bench) recordAll(ctx context.Context, p *parts, by *kafka.Journal, user func(int) string) (f figure, batch float64) {
	b.made++
	id := firstcome.CampaignID("bench-" + strconv.Itoa(b.made))
	p.create(ctx, id)
	p.fill(ctx, id, b.claims, user)
	took, batch := p.record(ctx, id, by)
	return figure{perSecond: float64(b.claims) / took.Seconds()}, batch
}

// fill issues coupons, which stay in the journal.
func (p *parts) fill(ctx context.Context, id firstcome.CampaignID, coupons int, user func(int) string) {
	for from := 0; from < coupons; from += entry {
		users := make([]firstcome.UserID, min(entry, coupons-from))
		for n := range users {
			users[n] = firstcome.UserID(user(from + n))
		}
		value(p.gate.Gate.Claim(ctx, id, users))
	}
}

// insertAll inserts coupons of a campaign that nobody else knows, so many at a time.
func (b *bench) insertAll(ctx context.Context, db *sql.DB, kind services.Kind, batch int) figure {
	b.made++
	campaign, user, at := "bench-"+strconv.Itoa(b.made), sequential(0), time.Now().UnixMicro()
	began := time.Now()
	for from := 0; from < b.claims; from += batch {
		width := min(batch, b.claims-from)
		args := make([]any, 0, 8*width)
		for n := from; n < from+width; n++ {
			args = append(args, campaign, n+1, user(n), "0123456789ABCDEF", 1, at, at, n+1)
		}
		value(db.ExecContext(ctx, insertRows(kind, width), args...))
	}
	return figure{perSecond: float64(b.claims) / time.Since(began).Seconds()}
}

// insertRows is the statement that inserts so many coupons.
func insertRows(kind services.Kind, width int) string {
	var text strings.Builder
	text.WriteString(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES `)
	for row := range width {
		values := `(?,?,?,?,?,?,?,?)`
		if kind == services.PostgreSQL {
			n := 8 * row
			values = fmt.Sprintf(`($%d,$%d,$%d,$%d,$%d,$%d,$%d,$%d)`, n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8)
		}
		if row > 0 {
			text.WriteByte(',')
		}
		text.WriteString(values)
	}
	return text.String()
}
