package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
)

// gateKinds are the kinds of gates beside the ledger, by the scheme of their URLs. No other file of this package names one.
var gateKinds = map[string]gateKind{"redis": redisKind{}, "rediss": redisKind{}}

// A gateKind connects to gates of one kind.
type gateKind interface {
	// check returns why a URL names no gate.
	check(url string) error
	// open connects the remote part of a node to its gate. named are the gates that campaigns of the ledger name.
	open(ctx context.Context, r *remoteGate, named []ledger.OtherGate) (servingGate, error)
	// inspect connects to a gate of a ledger to read; marker returns the ledger's permanent name for a campaign.
	inspect(ctx context.Context, url string, l *ledger.Ledger, marker markerOf) (inspectedGate, error)
	// examine checks a gate for firstcome doctor.
	examine(ctx context.Context, c *gateFlags) doctor.Findings
}

// A markerOf returns the ledger's permanent name for a campaign: see firstcome.Change.
type markerOf = func(context.Context, firstcome.CampaignID) (string, error)

// A servingGate is a gate as a node needs it.
type servingGate interface {
	gate.Gate
	recovery.Gate
	recovery.Forgetter
	flow.Holes
	kafka.Gate
	creatingGate
	// Warnings returns what an operator should know of the gate.
	Warnings() []string
	// Ping returns nil if the gate answers.
	Ping(ctx context.Context) error
	// source returns the gate's journal, as a new consumer of it.
	source(r *remoteGate) flow.Source
	Close()
}

// An inspectedGate is a gate that is read only.
type inspectedGate interface {
	auditedGate
	examinedGate
	creatingGate
	Close()
}

// redisKind is the gate on Redis.
type redisKind struct{}

func (redisKind) check(url string) error { return redis.CheckURL(url) }

func (redisKind) open(ctx context.Context, r *remoteGate, named []ledger.OtherGate) (servingGate, error) {
	s := r.flags
	g, err := redis.Open(ctx, redis.Options{
		URL: s.Gate.url(), Secret: r.secret, KeepUnnamed: len(named) > 0 && !s.NewGate && s.knownAs(named) == "", KnownAs: s.knownAs(named), AnyEviction: s.AnyEviction, Backlog: int64(s.Backlog),
		MaxLine: int64(s.MaxLine), Lined: r.ledger.Lined,
		Ledger: r.ledger.Identity, Marker: r.marker, Missing: r.missing, Epoch: r.epoch,
	})
	if err != nil {
		return nil, err
	}
	return redisGate{g}, nil
}

func (redisKind) inspect(ctx context.Context, url string, l *ledger.Ledger, marker markerOf) (inspectedGate, error) {
	g, err := redis.Inspect(ctx, redis.Options{URL: url, Secret: noSecret(), Ledger: l.Identity, Marker: marker}) // the gate keeps no codes
	if err != nil {
		return nil, err
	}
	return redisGate{g}, nil
}

func (redisKind) examine(ctx context.Context, c *gateFlags) doctor.Findings {
	return redis.Examine(ctx, redis.Options{URL: c.Gate.url(), AnyEviction: c.AnyEviction})
}

// A redisGate is a gate on Redis.
type redisGate struct{ *redis.Gate }

func (g redisGate) source(r *remoteGate) flow.Source {
	return g.Journal(redis.JournalOptions{Active: r.ledger.Active, OnAlarm: r.alarm, Relay: r.journal != nil})
}

func (redisGate) spoiled(err error) bool { return redis.Spoiled(err) }

func (g redisGate) audited() audit.GateSource {
	return audit.GateSource{
		State: func(ctx context.Context, id firstcome.CampaignID) (audit.GateState, error) {
			s, err := g.State(ctx, id)
			if err != nil {
				return audit.GateState{}, unreadable(err)
			}
			return audit.GateState{Version: s.Version, Epoch: s.Epoch, InForce: s.InForce, LastNumber: s.LastNumber, Drained: s.DrainedThrough, Instants: s.Instants}, nil
		},
		Holders: orUnreadable(g.Coupons),
		Journal: orUnreadable(g.Unrecorded),
		Line:    g.auditedLine(),
	}
}

// auditedLine returns the waiting lines of the gate as an audit reads them.
func (g redisGate) auditedLine() audit.GateLine {
	tickets := func(list eachOf[redis.Ticket]) eachOf[audit.GateTicket] {
		return orUnreadable(func(ctx context.Context, id firstcome.CampaignID, each func(audit.GateTicket) error) error {
			return list(ctx, id, func(t redis.Ticket) error { return each(audit.GateTicket(t)) })
		})
	}
	return audit.GateLine{
		Counters: func(ctx context.Context, id firstcome.CampaignID) (v audit.LineView, err error) {
			w, err := g.WrittenLine(ctx, id)
			v.Line, v.Line.Due = w.Line, time.Time{}
			for _, p := range w.Past {
				was := firstcome.Line{Generation: p.Generation, LastTicket: p.LastTicket, ServedThrough: p.ServedThrough, Served: p.Served, Waiting: p.Waiting}
				v.Past = append(v.Past, audit.PastLine{Line: was, Reason: p.Reason, EndedAt: p.EndedAt})
			}
			return v, unreadable(err)
		},
		InLine:  tickets(g.InLine),
		Tickets: tickets(g.Tickets),
	}
}

// An eachOf calls each with every one of a campaign's.
type eachOf[V any] = func(ctx context.Context, id firstcome.CampaignID, each func(V) error) error

// orUnreadable returns a list whose errors are the audit's.
func orUnreadable[V any](list eachOf[V]) eachOf[V] {
	return func(ctx context.Context, id firstcome.CampaignID, each func(V) error) error {
		return unreadable(list(ctx, id, each))
	}
}

// unreadable returns an error in the audit's terms: what somebody else wrote is a breach of its campaign.
func unreadable(err error) error {
	if redis.Spoiled(err) {
		return fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	return err
}
