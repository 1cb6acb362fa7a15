package main

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/wait"
)

// gateKinds has the kinds of gates beside the ledger, by the scheme of their URLs. Each kind has a file of its own, the only one that imports its package.
var gateKinds = map[string]gateKind{"redis": redisKind{}, "rediss": redisKind{}}

// A gateKind connects to gates of one kind.
type gateKind interface {
	// check returns an error if a URL does not name a gate.
	check(url string) error
	// open connects a node to its gate. watch has the campaigns as the node last read them. named has the other gates that the ledger's campaigns name.
	open(ctx context.Context, b *base, watch *recovery.Watch, named []ledger.OtherGate) (servingGate, error)
	// inspect connects to a gate of a ledger, to read only. campaignUID returns the ledger's permanent name for a campaign.
	inspect(ctx context.Context, url string, l *ledger.Ledger, uid uidOf) (inspectedGate, error)
	// examine checks a gate for firstcome doctor.
	examine(ctx context.Context, c *gateFlags) doctor.Findings
}

// A uidOf returns the ledger's permanent name for a campaign: see firstcome.Change.
type uidOf = func(context.Context, firstcome.CampaignID) (string, error)

// gateStart is how long a start waits for a gate that is away or loads its data, and gateRetry how long between two tries at most. It is long enough
// for a gate that starts on the same machine. After that the supervisor of the node starts it again.
const (
	gateStart = time.Minute
	gateRetry = 5 * time.Second
)

// reach opens the gate. If the gate cannot be reached, or loads its data, it tries again for gateStart. Any other error needs an operator.
func (b *base) reach(ctx context.Context, kind gateKind, watch *recovery.Watch, named []ledger.OtherGate) (far servingGate, err error) {
	waits, end := wait.NewBackoff(wait.First, gateRetry), time.Now().Add(gateStart)
	for {
		far, err = kind.open(ctx, b, watch, named)
		if !errors.Is(err, firstcome.ErrBusy) || time.Now().After(end) {
			return far, err
		}
		b.log.Warn("the gate is away or loads its data, so this start waits for it", "err", err, "until", end.UTC().Format(time.RFC3339))
		if stopped := waits.Pause(ctx); stopped != nil {
			return far, errors.Join(err, stopped)
		}
	}
}

// A servingGate is the gate of a node. Each part of the node has a field with the methods that it needs.
type servingGate struct {
	gate.Gate // for the Router
	gateConn
	recovery recovery.Gate
	retires  recovery.Forgetter
	journal  gateJournal
	// source returns a new consumer of the gate's journal, for the active campaigns. relay means that it does not feed the ledger, but a topic.
	source func(active func(context.Context) ([]gate.Revision, error), onAlarm alarm, relay bool) record.Source
}

// A gateConn is the connection to a gate.
type gateConn interface {
	creatingGate
	// Warnings returns warnings about the gate for operators.
	Warnings() []string
	// Ping returns nil if the gate answers.
	Ping(ctx context.Context) error
	Close()
}

// A gateJournal is a gate's journal, for code that reports to the gate how far campaigns are drained.
type gateJournal interface {
	record.Holes
	kafka.Gate
}

// An inspectedGate is a gate that is only read.
type inspectedGate interface {
	auditedGate
	examinedGate
	creatingGate
	Close()
}
