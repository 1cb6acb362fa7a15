package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/kafka"
)

// openLog connects to the topic with the logs of waiting lines, if --line names one.
func (r *remoteGate) openLog(ctx context.Context) (err error) {
	if r.flags.Line == "" {
		return nil
	}
	r.lineLog, err = kafka.OpenLineLog(ctx, string(r.flags.Line), kafka.LineLogOptions{Lines: r.ledger.Epochs, OnAlarm: r.monitor.LineAlarm, OnFound: r.foundLog})
	if err != nil {
		return fmt.Errorf("--line: %w", err)
	}
	return nil
}

// foundLog logs warnings about the topic with the logs of waiting lines.
func (r *remoteGate) foundLog(warnings []string) {
	for _, warning := range warnings {
		r.log.Warn("the log of lines: " + warning)
	}
}
