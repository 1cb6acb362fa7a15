package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// memory: what a holder costs in Redis's memory, with a user id of 8 bytes and the
// instant of issue, once all is recorded; and what the journal has then.
func memory(ctx context.Context, b *bench) error {
	var h hosts
	defer h.close()
	url, err := h.database(ctx, services.Redis)
	if err != nil {
		return err
	}
	p, err := b.parts(ctx, url, "sqlite:"+filepath.Join(b.dir, "memory.db"))
	if err != nil {
		return err
	}
	defer p.close()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	return b.holder(ctx, p, client)
}

func (b *bench) holder(ctx context.Context, p *parts, client rueidis.Client) error {
	const warm, large = firstcome.CampaignID("warm"), firstcome.CampaignID("large")
	settle := func(id firstcome.CampaignID, coupons int) (bytes int64, err error) {
		if err := p.create(ctx, id); err != nil {
			return 0, err
		}
		if err := p.fill(ctx, id, coupons, func(n int) string { return fmt.Sprintf("%08d", n) }); err != nil {
			return 0, err
		}
		if _, _, err := p.record(ctx, id); err != nil {
			return 0, err
		}
		return usedMemory(ctx, client)
	}
	before, err := settle(warm, entry) // connections, scripts, and what else comes once
	if err != nil {
		return err
	}
	after, err := settle(large, b.holders)
	if err != nil {
		return err
	}
	left, err := client.Do(ctx, client.B().Xlen().Key("firstcome:{"+string(large)+"}:journal").Build()).AsInt64()
	if err != nil {
		return err
	}
	b.print(fmt.Sprintf("Redis's memory a holder, of %d with ids of 8 bytes", b.holders),
		fmt.Sprintf("%.1f bytes", float64(after-before)/float64(b.holders)), "", "", wantHolder)
	b.print("… entries in the journal once settled", strconv.FormatInt(left, 10), "", "", wantJournal)
	return nil
}

// usedMemory returns used_memory, once no rewrite of the append-only file is under way.
func usedMemory(ctx context.Context, client rueidis.Client) (int64, error) {
	for {
		text, err := client.Do(ctx, client.B().Info().Build()).ToString()
		if err != nil {
			return 0, err
		}
		info := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[name] = value
		}
		if info["aof_rewrite_in_progress"] == "0" && info["aof_rewrite_scheduled"] == "0" {
			return strconv.ParseInt(info["used_memory"], 10, 64)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
