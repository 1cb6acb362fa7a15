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
func memory(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	url := h.database(ctx, services.Redis)
	p := b.parts(ctx, url, "sqlite:"+filepath.Join(b.dir, "memory.db"))
	defer p.close()
	option := value(rueidis.ParseURL(url))
	option.DisableCache, option.ForceSingleClient = true, true
	client := value(rueidis.NewClient(option))
	defer client.Close()
	b.holder(ctx, p, client)
}

func (b *bench) holder(ctx context.Context, p *parts, client rueidis.Client) {
	const warm, large = firstcome.CampaignID("warm"), firstcome.CampaignID("large")
	fill := func(id firstcome.CampaignID, coupons int) (bytes int64) {
		p.create(ctx, id)
		p.fill(ctx, id, coupons, func(n int) string { return fmt.Sprintf("%08d", n) })
		p.record(ctx, id, nil)
		return usedMemory(ctx, client)
	}
	before := fill(warm, entry) // connections, scripts, and what else comes once
	after := fill(large, b.holders)
	journals := value(client.Do(ctx, client.B().Keys().Pattern("firstcome:{"+string(large)+":*}:journal").Build()).AsStrSlice())
	if len(journals) != 1 {
		must(fmt.Errorf("%s has the journals %q", large, journals))
	}
	left := value(client.Do(ctx, client.B().Xlen().Key(journals[0]).Build()).AsInt64())
	b.print(fmt.Sprintf("Redis's memory a holder, of %d with ids of 8 bytes", b.holders),
		fmt.Sprintf("%.1f bytes", float64(after-before)/float64(b.holders)), "", "", wantHolder)
	b.print("… entries in the journal once drained", strconv.FormatInt(left, 10), "", "", wantJournal)
}

// usedMemory returns used_memory, once no rewrite of the append-only file is under way.
func usedMemory(ctx context.Context, client rueidis.Client) int64 {
	for {
		text := value(client.Do(ctx, client.B().Info().Build()).ToString())
		info := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[name] = value
		}
		if info["aof_rewrite_in_progress"] == "0" && info["aof_rewrite_scheduled"] == "0" {
			return value(strconv.ParseInt(info["used_memory"], 10, 64))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			must(ctx.Err())
		}
	}
}
