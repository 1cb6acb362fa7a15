package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/kafka"
)

// A lineName is where waiting lines are kept: gate, or the URL of a topic in which the lines are also logged. Empty means gate.
type lineName string

// atGate is the lineName of lines without a log.
const atGate = "gate"

func (l *lineName) UnmarshalText(text []byte) error {
	if name := string(text); name != atGate && name != "" {
		if err := kafka.CheckURL(name); err != nil {
			return fmt.Errorf("waiting lines are kept at the gate, or also logged in a Kafka topic. %w", err)
		}
	}
	*l = lineName(text)
	return nil
}

// url returns the topic's URL, or an empty string.
func (l lineName) url() string {
	if l == atGate {
		return ""
	}
	return string(l)
}

// String returns the name without user and password.
func (l lineName) String() string {
	if l.url() == "" {
		return atGate
	}
	return kafka.Shown(string(l))
}

// openLog connects to the topic with the logs of waiting lines, if --line names one.
func (r *remoteGate) openLog(ctx context.Context) (err error) {
	url := r.flags.Line.url()
	if url == "" {
		return nil
	}
	r.lineLog, err = kafka.OpenLineLog(ctx, url, kafka.LineLogOptions{Lines: r.ledger.Epochs, OnAlarm: r.monitor.LineAlarm, OnFound: r.foundLog})
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
