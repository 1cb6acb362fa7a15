package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Topic is the model of the topic in which the places of lines are logged, as internal/kafka has one. It has one partition.
type Topic struct {
	mu      sync.Mutex // guards what follows
	made    int        // how often
	first   int64      // the offset of the first record that it still has
	records []line.Record
	away    bool
}

// id returns the topic's id, which another one of the same name does not have. mu is held.
func (t *Topic) id() string { return fmt.Sprint("topic ", t.made) }

// end returns the offset after the last record. mu is held.
func (t *Topic) end() int64 { return t.first + int64(len(t.records)) }

// intact returns nil if the topic answers, and has all of a log up to an end. mu is held.
func (t *Topic) intact(log firstcome.LineLog, end int64) error {
	switch {
	case t.away:
		return firstcome.ErrLineLogAway
	case log.Topic != t.id(), log.First >= 0 && t.first > log.First, t.end() < max(end, log.First):
		return firstcome.ErrLineLogGone
	}
	return nil
}

// Append implements line.Log.
func (t *Topic) Append(_ context.Context, _ firstcome.CampaignID, records []line.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.intact(records[0].LineLog, 0); err != nil {
		return err
	}
	t.records = append(t.records, records...)
	return nil
}

// LogLocation is recovery.LineLogs'.
func (t *Topic) LogLocation(context.Context, firstcome.CampaignID) (firstcome.LineLog, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log := firstcome.LineLog{Topic: t.id(), First: t.end()}
	return log, t.intact(log, 0)
}

// End is recovery.LineLogs'.
func (t *Topic) End(_ context.Context, _ firstcome.CampaignID, log firstcome.LineLog) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end(), t.intact(log, 0)
}

// Read is recovery.LineLogs'.
func (t *Topic) Read(_ context.Context, _ firstcome.CampaignID, log firstcome.LineLog, end int64, each func(offset int64, r line.Record) error) error {
	t.mu.Lock()
	first, records, err := t.first, slices.Clone(t.records), t.intact(log, end)
	t.mu.Unlock()
	for at := max(log.First, first); err == nil && at < end; at++ {
		err = each(at, records[at-first])
	}
	return err
}

// LineHistory implements recovery.Ledger: it stands in the changes.
func (l *Ledger) LineHistory(_ context.Context, id firstcome.CampaignID) (h recovery.LineHistory, err error) {
	err = l.of(id, func(a *account) error {
		h = a.history()
		return nil
	})
	return h, err
}

func (a *account) history() (h recovery.LineHistory) {
	epoch := int64(1)
	for _, d := range a.changes {
		epoch = max(epoch, d.Epoch)
		log := d.Terms.Log
		switch {
		case log == nil || d.refused:
			continue
		case h.Log == nil || d.anew:
			one := *log
			h.Log, h.Epochs = &one, map[int64]int64{epoch: log.First}
			continue
		case d.Epoch == 0 || d.Kind == firstcome.ChangeTerms: // terms only repeat where the line was logged first
			continue
		case !log.Same(*h.Log): // in a reconcile: the ledger has forgotten that the line got a new log
			h.Log, h.Epochs = &firstcome.LineLog{Topic: log.Topic}, map[int64]int64{}
		}
		if log.First >= 0 {
			h.Epochs[d.Epoch] = log.First
		}
	}
	return h
}

// bare reports whether a campaign's line has no log. That is no question, since it never has one then.
func (l *Ledger) bare(id firstcome.CampaignID) (is bool) {
	_ = l.of(id, func(a *account) error {
		is = a.history().Log == nil
		return nil
	})
	return is
}

// seats are people in line, in words.
type seats []recovery.Waiting

// String implements fmt.Stringer.
func (s seats) String() string {
	words := make([]string, len(s))
	for n, one := range s {
		words[n] = fmt.Sprint(one.User, one.Ticket)
	}
	return fmt.Sprint(words)
}
