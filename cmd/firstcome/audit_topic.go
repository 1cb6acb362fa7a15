package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
)

// auditTopic reads a whole topic, and checks the campaigns' facts in it against the ledger.
func (c *auditCmd) auditTopic(ctx context.Context, t terminal, l *ledger.Ledger, report *auditReport, ids []firstcome.CampaignID) error {
	var read atomic.Int64
	done := showProgress(ctx, t, "audit: events of the topic read", func() course { return course{done: read.Load()} })
	defer done()
	url := string(c.Facts)
	var err error
	report.Topic, err = audit.Topic(ctx, audit.TopicSource{
		Noted: func(ctx context.Context, id firstcome.CampaignID) (int64, error) {
			cursor, err := l.Followers.CursorOf(ctx, kafka.FollowerOf(kafka.TopicOf(url)), id)
			return cursor.Position, err
		},
		Events: func(ctx context.Context, each func(firstcome.Fact) error) (bool, error) {
			return kafka.ReadAll(ctx, url, l.Identity(), func(f firstcome.Fact) error {
				read.Add(1)
				return each(f)
			})
		},
		Facts: l.Reads.Facts,
	}, ids, c.Campaign == "")
	if err != nil {
		return fmt.Errorf("--facts: %w", err)
	}
	for _, one := range report.Topic {
		report.Breaches += one.Breaches.Total
	}
	return nil
}
