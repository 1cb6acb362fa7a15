package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A journalName is where coupons wait for the ledger: redis, or the URL of a topic between Redis and the ledger. Empty means redis, unless the ledger
// knows of a topic.
type journalName string

// onRedis is the journal without a topic.
const onRedis = "redis"

func (j *journalName) UnmarshalText(text []byte) error {
	if name := string(text); name != onRedis && name != "" {
		if err := kafka.CheckURL(name); err != nil {
			return fmt.Errorf("a journal is redis, or a topic of Kafka. %w", err)
		}
	}
	*j = journalName(text)
	return nil
}

// url returns the topic's URL, or an empty string.
func (j journalName) url() string {
	if j == onRedis {
		return ""
	}
	return string(j)
}

// String returns the name without user and password.
func (j journalName) String() string {
	if j.url() == "" {
		return onRedis
	}
	return kafka.Shown(string(j))
}

// openJournal connects to the topic between gate and ledger. It returns nil if there is none. All nodes connect, because a node that rebuilds a gate
// reads the topic.
func (b *base) openJournal(ctx context.Context, gate gateJournal, onAlarm alarm) (*kafka.Journal, error) {
	url := b.flags.Journal.url()
	if url == "" {
		return nil, nil
	}
	return kafka.OpenJournal(ctx, url, kafka.JournalOptions{
		Name: b.ledger.JournalName(), Secret: b.secret, Owns: b.ledger.Owns, Ledger: b.ledger.Recorder, Gate: gate, OnAlarm: onAlarm, OnFound: b.found("the journal"),
	})
}

// found returns a function that logs warnings about a topic.
func (b *base) found(topic string) func(warnings []string) {
	return func(warnings []string) {
		for _, warning := range warnings {
			b.log.Warn(topic + ": " + warning)
		}
	}
}

// relayed returns the gate for recovery. If there is a topic, its entries count as part of the gate's journal.
func (l links) relayed() recovery.Gate {
	if l.journal == nil {
		return l.gate.recovery
	}
	return kafka.Relayed{Gate: l.gate.recovery, Journal: l.journal}
}

// lag returns how far the ledger lags behind the gate, for each of these campaigns that has unrecorded coupons in the gate's journal or in the topic.
// With record.ErrUnaged it also returns lags.
func (r *remoteGate) lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error) {
	if r.journal != nil {
		return r.journal.Lag(ctx, active)
	}
	return r.gate.journal.Lag(ctx, active)
}

// recorders returns the recorder that brings coupons from the journal on Redis to the ledger, and no relay. With a topic, it returns a recorder from the
// topic to the ledger, and a relay from the journal on Redis to the topic. waiter is nil if this node answers no callers.
func (b *base) recorders(l links, keeper record.Keeper, onAlarm alarm, waiter *issue.Waiter) (recorder, relay *record.Recorder) {
	limits := record.Options{Rows: int(b.flags.RecordRate), Holes: l.gate.journal, OnCall: b.monitor.Record, OnAlarm: onAlarm}
	if waiter != nil {
		limits.OnRecorded = waiter.Recorded
	}
	source := l.gate.source(b.ledger.Recorder.Active, onAlarm, l.journal != nil)
	if l.journal == nil {
		return record.NewRecorder(source, keeper, limits), nil
	}
	relay = record.NewRecorder(source, l.journal, record.Options{OnCall: b.monitor.Relayed, OnAlarm: onAlarm})
	return record.NewRecorder(l.journal, keeper, limits), relay
}

// passing returns a function that calls run once Kafka has the topic and the ledger has noted it. Before the ledger has noted it, a rebuild by a node
// without the topic would lose the coupons in the topic.
func (r *remoteGate) passing(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		alarms := record.Alarms{On: r.alarm}
		for ctx.Err() == nil {
			err := r.notesJournal(ctx)
			if err == nil {
				return run(ctx)
			}
			alarms.Raise("", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		return nil
	}
}

// notesJournal notes the topic in the ledger.
func (r *remoteGate) notesJournal(ctx context.Context) error {
	if err := r.journal.Find(ctx); err != nil {
		return err
	}
	name, id := r.journal.Topic()
	again, err := r.ledger.NoteJournal(ctx, id)
	if again {
		r.alarm("", fmt.Errorf("the topic %s was recreated (its id is %s): its unrecorded coupons will be recorded from the gate's holders", name, id))
	}
	return err
}

// leavesJournal notes in the ledger that there is no topic. It runs if an operator set --journal redis.
func (r *remoteGate) leavesJournal(ctx context.Context) error {
	_, err := r.ledger.NoteJournal(ctx, "")
	return err
}

// inspectJournal opens the topic between a gate and the ledger, to read only. It returns nil if there is none. uid is the UID of any campaign of
// the gate.
func inspectJournal(ctx context.Context, l *ledger.Ledger, gate string, name journalName, uid string) (*kafka.Journal, error) {
	topic, err := l.JournalOf(ctx, gate)
	switch {
	case err != nil || topic == "" && name.url() == "":
		return nil, err
	case name.url() == "":
		return nil, fmt.Errorf("--journal: coupons of %s go through the topic %s: name it, like kafka://HOST:PORT/%s", gate, topic, topic)
	}
	journal, err := kafka.InspectJournal(ctx, name.url(), ledger.JournalName(uid), noSecret())
	if err != nil {
		return nil, fmt.Errorf("--journal: %w", err)
	}
	return journal, nil
}
