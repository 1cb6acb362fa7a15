package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/kafka"
)

// openLog connects to the topic with the logs of waiting lines. It returns nil if --line names none.
func (b *base) openLog(ctx context.Context) (*kafka.LineLog, error) {
	if b.flags.Line == "" {
		return nil, nil
	}
	log, err := kafka.OpenLineLog(ctx, string(b.flags.Line), kafka.LineLogOptions{Lines: b.ledger.Epochs, OnAlarm: b.monitor.LineAlarm, OnFound: b.found("the log of lines")})
	if err != nil {
		return nil, fmt.Errorf("--line: %w", err)
	}
	return log, nil
}
