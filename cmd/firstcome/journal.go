package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome/internal/gate"
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

// openJournal connects to the topic between gate and ledger, and returns its name, or an empty string if there is none. All nodes connect, because a
// node that rebuilds a gate reads the topic.
func (r *remoteGate) openJournal(ctx context.Context) (topic string, err error) {
	url := r.flags.Journal.url()
	if url == "" {
		return "", nil
	}
	r.journal, err = kafka.OpenJournal(ctx, url, kafka.JournalOptions{
		Name: r.ledger.JournalName(), Secret: r.secret, Owns: r.ledger.Owns, Ledger: r.ledger.Recorder, Gate: r.gate.journal, OnAlarm: r.alarm, OnFound: r.foundJournal,
	})
	if err != nil {
		return "", err
	}
	topic, _ = r.journal.Topic()
	return topic, nil
}

// foundJournal logs warnings about the topic between gate and ledger.
func (r *remoteGate) foundJournal(warnings []string) {
	for _, warning := range warnings {
		r.log.Warn("the journal: " + warning)
	}
}

// relayed returns a gate for recovery. If there is a topic, its entries count as part of the gate's journal.
func (r *remoteGate) relayed(gate recovery.Gate) recovery.Gate {
	if r.journal == nil {
		return gate
	}
	return kafka.Relayed{Gate: gate, Journal: r.journal}
}

// lag returns how far the ledger lags behind the gate, for each of these campaigns that has unrecorded coupons in the gate's journal or in the topic.
// With record.ErrUnaged it also returns lags.
func (r *remoteGate) lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error) {
	if r.journal != nil {
		return r.journal.Lag(ctx, active)
	}
	return r.gate.journal.Lag(ctx, active)
}

// records creates the recorder that brings coupons from the journal on Redis to the ledger. With a topic, it creates a relay from the journal on
// Redis to the topic, and a recorder from the topic to the ledger.
func (r *remoteGate) records() {
	keeper := r.rebuild.Guard(r.ledger.Recorder)
	limits := record.Options{Rows: int(r.flags.RecordRate), Holes: r.gate.journal, OnCall: r.monitor.Record, OnAlarm: r.alarm}
	if r.waiter != nil {
		limits.OnRecorded = r.waiter.Recorded
	}
	if r.journal == nil {
		r.recorder = record.NewRecorder(r.gate.source(r), keeper, limits)
		return
	}
	r.relay = record.NewRecorder(r.gate.source(r), r.journal, record.Options{OnCall: r.monitor.Relayed, OnAlarm: r.alarm})
	r.recorder = record.NewRecorder(r.journal, keeper, limits)
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
