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
	"github.com/firstcome/firstcome/test/services"
)

// entry is how many coupons an entry of the journal has here: a batch of a node
// that 256 connections keep busy.
const entry = 250

// recorder: a Recorder drains a full journal while nobody claims, against plain
// multi-row INSERTs of the same rows into the same table, as many at a time.
func recorder(ctx context.Context, b *bench) error {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		if err := b.recorderOn(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) recorderOn(ctx context.Context, kind services.Kind) error {
	var h hosts
	defer h.close()
	gate, err1 := h.database(ctx, services.Redis)
	if err1 != nil {
		return err1
	}
	url, err := h.database(ctx, kind)
	if err != nil {
		return err
	}
	p, err := b.parts(ctx, gate, url)
	if err != nil {
		return err
	}
	defer p.close()
	db, err := open(url, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	batch := 0.0
	recording := func() (f figure, err error) {
		f, batch, err = b.recordAll(ctx, p, sequential(0))
		return f, err
	}
	raw := func() (figure, error) {
		return b.insertAll(ctx, db, kind, int(math.Round(batch)))
	}
	c, err := b.pair(recording, raw)
	if err != nil {
		return err
	}
	b.printRate(fmt.Sprintf("recorder alone, %s, %.0f rows at a time", kind, batch), c, "rows inserted", wantRecorder)
	return nil
}

// recordAll issues the coupons of a new campaign, and then records them.
func (b *bench) recordAll(ctx context.Context, p *parts, user func(int) string) (f figure, batch float64, err error) {
	b.made++
	id := firstcome.CampaignID("bench-" + strconv.Itoa(b.made))
	if err := p.create(ctx, id); err != nil {
		return f, 0, err
	}
	if err := p.fill(ctx, id, b.claims, user); err != nil {
		return f, 0, err
	}
	took, batch, err := p.record(ctx, id)
	return figure{perSecond: float64(b.claims) / took.Seconds()}, batch, err
}

// fill issues coupons, which stay in the journal.
func (p *parts) fill(ctx context.Context, id firstcome.CampaignID, coupons int, user func(int) string) error {
	for from := 0; from < coupons; from += entry {
		users := make([]firstcome.UserID, min(entry, coupons-from))
		for n := range users {
			users[n] = firstcome.UserID(user(from + n))
		}
		if _, err := p.gate.Claim(ctx, id, users); err != nil {
			return err
		}
	}
	return nil
}

// insertAll inserts coupons of a campaign that nobody else knows, so many at a time.
func (b *bench) insertAll(ctx context.Context, db *sql.DB, kind services.Kind, batch int) (figure, error) {
	b.made++
	campaign, user, at := "bench-"+strconv.Itoa(b.made), sequential(0), time.Now().UnixMicro()
	began := time.Now()
	for from := 0; from < b.claims; from += batch {
		width := min(batch, b.claims-from)
		args := make([]any, 0, 8*width)
		for n := from; n < from+width; n++ {
			args = append(args, campaign, n+1, user(n), "0123456789ABCDEF", 1, at, at, n+1)
		}
		if _, err := db.ExecContext(ctx, insertRows(kind, width), args...); err != nil {
			return figure{}, err
		}
	}
	return figure{perSecond: float64(b.claims) / time.Since(began).Seconds()}, nil
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
