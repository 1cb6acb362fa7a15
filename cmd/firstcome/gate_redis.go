package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
)

// redisKind is the gate on Redis.
type redisKind struct{}

func (redisKind) check(url string) error { return redis.CheckURL(url) }

func (redisKind) open(ctx context.Context, b *base, watch *recovery.Watch, named []ledger.OtherGate) (servingGate, error) {
	s := b.flags
	g, err := redis.Open(ctx, redis.Options{
		URL: s.Gate.url(), Secret: b.secret, KeepUnnamed: len(named) > 0 && !s.NewGate && s.knownAs(named) == "", KnownAs: s.knownAs(named), AnyEviction: s.AnyEviction, Backlog: int64(s.Backlog),
		MaxLine: int64(s.MaxLine), Lined: b.ledger.Recorder.Lined,
		Ledger: b.ledger.Identity, CampaignUID: b.campaignUID, OnUnknown: b.missing, Noted: watch.Noted,
	})
	if err != nil {
		return servingGate{}, err
	}
	return servingRedis(g), nil
}

// servingRedis returns a gate on Redis as the gate of a node.
func servingRedis(r *redis.Redis) servingGate {
	return servingGate{
		Gate: r.AsGate(), gateConn: r, recovery: r.Recovery, journal: r.Journal,
		retires: struct {
			*redis.Gate
			*redis.Recovery
		}{r.Gate, r.Recovery},
		source: func(active func(context.Context) ([]gate.Revision, error), onAlarm alarm, relay bool) record.Source {
			return r.Journal.Consumer(redis.ConsumerOptions{Active: active, OnAlarm: onAlarm, Relay: relay})
		},
	}
}

func (redisKind) inspect(ctx context.Context, url string, l *ledger.Ledger, uid uidOf) (inspectedGate, error) {
	g, err := redis.Inspect(ctx, redis.Options{URL: url, Secret: noSecret(), Ledger: l.Identity, CampaignUID: uid}) // the gate stores no codes
	if err != nil {
		return nil, err
	}
	return inspectedRedis{g}, nil
}

func (redisKind) examine(ctx context.Context, c *gateFlags) doctor.Findings {
	return redis.Examine(ctx, redis.Options{URL: c.Gate.url(), AnyEviction: c.AnyEviction})
}

// An inspectedRedis is a gate on Redis that is only read.
type inspectedRedis struct{ *redis.Inspector }

func (inspectedRedis) spoiled(err error) bool { return redis.Spoiled(err) }

func (g inspectedRedis) audited() audit.GateSource {
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
		Terms: func(ctx context.Context, id firstcome.CampaignID) (string, error) {
			text, err := g.Terms(ctx, id)
			return text, unreadable(err)
		},
	}
}

// auditedLine returns the gate's waiting lines for an audit.
func (g inspectedRedis) auditedLine() audit.GateLine {
	tickets := func(list eachOf[redis.Ticket]) eachOf[audit.GateTicket] {
		return orUnreadable(func(ctx context.Context, id firstcome.CampaignID, each func(audit.GateTicket) error) error {
			return list(ctx, id, func(t redis.Ticket) error { return each(audit.GateTicket(t)) })
		})
	}
	return audit.GateLine{
		Counters: func(ctx context.Context, id firstcome.CampaignID) (v audit.LineView, err error) {
			v.Line, v.Past, err = g.WrittenLine(ctx, id)
			v.Line.Due = time.Time{}
			return v, unreadable(err)
		},
		InLine:  tickets(g.InLine),
		Tickets: tickets(g.Tickets),
	}
}

// An eachOf calls each with every item of a campaign, such as its tickets.
type eachOf[V any] = func(ctx context.Context, id firstcome.CampaignID, each func(V) error) error

// orUnreadable returns list with its errors converted by unreadable.
func orUnreadable[V any](list eachOf[V]) eachOf[V] {
	return func(ctx context.Context, id firstcome.CampaignID, each func(V) error) error {
		return unreadable(list(ctx, id, each))
	}
}

// unreadable converts an error of the gate for the audit. If it means spoiled data, the audit reports a breach of the campaign.
func unreadable(err error) error {
	if redis.Spoiled(err) {
		return fmt.Errorf("%w: %w", audit.ErrUnreadable, err)
	}
	return err
}
