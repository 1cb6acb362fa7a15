package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
)

// A lineName is where the waiting lines of new campaigns are kept: gate, or the URL of a topic. Empty: gate.
type lineName string

// atGate is a line without a topic.
const atGate = "gate"

func (l *lineName) UnmarshalText(text []byte) error {
	if name := string(text); name != atGate && name != "" {
		if err := kafka.CheckURL(name); err != nil {
			return fmt.Errorf("waiting lines are at the gate, or in a topic of Kafka. %w", err)
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

// A nodeGate is what decides this node's claims and keeps its lines: the ledger, or a gate beside it, perhaps with lines in a topic.
type nodeGate interface {
	gate.Decider
	gate.Coupons
	gate.Line
	gate.Places
	gate.Fed
}

// decider returns the node's.
func (n *node) decider(ctx context.Context) (nodeGate, error) {
	var gate nodeGate = n.ledger
	if n.remote != nil {
		gate = n.remote.router
	}
	url := n.flags.Line.url()
	if url == "" {
		return gate, nil
	}
	var err error
	n.line, err = kafka.OpenLine(ctx, url, kafka.LineOptions{
		Gate: gate, Ledger: n.ledger, Secret: n.secret, MaxLine: int64(n.flags.MaxLine), OnAlarm: n.monitor.LineAlarm, OnFound: n.foundLines,
	})
	if err != nil {
		return nil, fmt.Errorf("--line: %w", err)
	}
	return n.line, nil
}

// foundLines logs what is to be known of the topic that keeps lines.
func (n *node) foundLines(warnings []string) {
	for _, warning := range warnings {
		n.log.Warn("the lines: " + warning)
	}
}

// proofs returns what finds places by their proofs; nil: no topic keeps lines.
func (n *node) proofs() api.Proofs {
	if n.line == nil {
		return nil
	}
	return n.line
}
