package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
)

// auditTopic reads a topic whole, and holds the campaigns' facts in it against the ledger.
func (c *auditCmd) auditTopic(ctx context.Context, t terminal, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID) error {
	var read atomic.Int64
	done := showProgress(ctx, t, "audit: events of the topic read", func() course { return course{done: read.Load()} })
	defer done()
	url := string(c.Facts)
	var err error
	report.Topic, err = audit.Topic(ctx, audit.TopicSource{
		Noted: func(ctx context.Context, id firstcome.CampaignID) (int64, error) {
			cursor, err := l.CursorOf(ctx, kafka.FollowerOf(kafka.TopicOf(url)), id)
			return cursor.Position, err
		},
		Events: func(ctx context.Context, each func(firstcome.Fact) error) (bool, error) {
			return kafka.ReadAll(ctx, url, l.Identity(), func(f firstcome.Fact) error {
				read.Add(1)
				return each(f)
			})
		},
		Facts: l.Facts,
	}, ids, c.Campaign == "")
	if err != nil {
		return fmt.Errorf("--facts: %w", err)
	}
	for _, one := range report.Topic {
		report.Breaches += one.Breaches.Total
	}
	return nil
}

// auditLines holds the lines in a topic against the ledger.
func (c *auditCmd) auditLines(ctx context.Context, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID) error {
	topic, err := kafka.ReadLines(ctx, c.Line.url())
	if err != nil {
		return fmt.Errorf("--line: %w", err)
	}
	defer topic.Close()
	for _, id := range ids {
		err := l.AtOnce(ctx, func(b *ledger.Books) error {
			one, err := audit.Feed(ctx, audit.FeedSource{
				Source: b.Source(),
				Records: func(ctx context.Context, feed firstcome.Feed, generation, first, end int64, each func(int64, firstcome.UserID)) error {
					return topic.Records(ctx, id, feed, generation, first, end, each)
				},
			}, id)
			if err == nil && one != nil {
				report.Feeds = append(report.Feeds, *one)
				report.Breaches += one.Breaches.Total
			}
			return err
		})
		if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) { // whose row is gone: the audit of the tables says so
			return fmt.Errorf("--line: %w", err)
		}
	}
	return nil
}
