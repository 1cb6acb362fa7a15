package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/kafka"
)

// A lineName is where lines are kept: gate, or also logged in the topic of a URL. Empty: gate.
type lineName string

// atGate is a line without a topic.
const atGate = "gate"

func (l *lineName) UnmarshalText(text []byte) error {
	if name := string(text); name != atGate && name != "" {
		if err := kafka.CheckURL(name); err != nil {
			return fmt.Errorf("waiting lines are at the gate, or also logged in a topic of Kafka. %w", err)
		}
	}
	*l = lineName(text)
	return nil
}

// url is the topic's, or empty.
func (l lineName) url() string {
	if l == atGate {
		return ""
	}
	return string(l)
}

// String returns the name as it may be shown.
func (l lineName) String() string {
	if l.url() == "" {
		return atGate
	}
	return kafka.Shown(string(l))
}

// openLog connects to the topic that has the logs of lines, if the node names one.
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

// foundLog logs the warnings about the topic that has the logs of lines.
func (r *remoteGate) foundLog(warnings []string) {
	for _, warning := range warnings {
		r.log.Warn("the log of lines: " + warning)
	}
}
