package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/recovery"
)

// logs are a Topic at the other end of a wire.
type logs struct {
	*Topic
	*wire
}

// unheard returns the error of Kafka's client for a lost call or answer.
func unheard(err error) error {
	if errors.Is(err, errLost) {
		return fmt.Errorf("%w: %w", firstcome.ErrLineLogAway, err)
	}
	return err
}

// Append implements line.Log.
func (l logs) Append(ctx context.Context, id firstcome.CampaignID, records []line.Record) error {
	records = append([]line.Record(nil), records...) // its caller may use it again
	return unheard(order(ctx, l.wire, "the log", show("to append", spellRecords(records)), func() error { return l.Topic.Append(ctx, id, records) }))
}

// Place is recovery.LineLogs'.
func (l logs) LogLocation(ctx context.Context, id firstcome.CampaignID) (firstcome.LineLog, error) {
	log, err := ask(ctx, l.wire, "the log", "where a line is logged from now on", func() (firstcome.LineLog, error) { return l.Topic.LogLocation(ctx, id) })
	return log, unheard(err)
}

// End is recovery.LineLogs'.
func (l logs) End(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog) (int64, error) {
	end, err := ask(ctx, l.wire, "the log", "where it ends", func() (int64, error) { return l.Topic.End(ctx, id, log) })
	return end, unheard(err)
}

// A recordAt is a record of the log, and its offset.
type recordAt struct {
	offset int64
	line.Record
}

// Read is recovery.LineLogs': it reads all at once.
func (l logs) Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(int64, line.Record) error) error {
	all, err := ask(ctx, l.wire, "the log", show("what it has from", log.First, "to", end), func() (all []recordAt, err error) {
		err = l.Topic.Read(ctx, id, log, end, func(offset int64, r line.Record) error {
			all = append(all, recordAt{offset, r})
			return nil
		})
		return all, err
	})
	for n := 0; err == nil && n < len(all); n++ {
		err = each(all[n].offset, all[n].Record)
	}
	return unheard(err)
}

// spellRecords puts records into words: each with its epoch, generation and ticket.
func spellRecords(all []line.Record) string {
	words := make([]string, len(all))
	for n, r := range all {
		words[n] = fmt.Sprintf("%s:%d.%d.%d", r.User, r.Epoch, r.Generation, r.Number)
		if r.Left {
			words[n] += " left"
		}
	}
	return strings.Join(words, ", ")
}

func spellRead(all []recordAt) string {
	words := make([]string, len(all))
	for n, r := range all {
		words[n] = show(r.offset, spellRecords([]line.Record{r.Record}))
	}
	return strings.Join(words, ", ")
}

var _ recovery.LineLogs = logs{}
