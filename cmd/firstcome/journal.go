package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A journalName is where coupons wait for the ledger: redis, or the URL of a topic that they pass behind Redis. Empty: redis, unless
// the ledger says otherwise.
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

// url is the topic's, or empty.
func (j journalName) url() string {
	if j == onRedis {
		return ""
	}
	return string(j)
}

// String returns the name as it may be shown.
func (j journalName) String() string {
	if j.url() == "" {
		return onRedis
	}
	return kafka.Shown(string(j))
}

// openJournal connects to the topic that coupons pass, and returns its name; empty: they pass none. All nodes do: whoever rebuilds a gate
// reads it.
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

// foundJournal logs what an operator should know of the topic that coupons pass.
func (r *remoteGate) foundJournal(warnings []string) {
	for _, warning := range warnings {
		r.log.Warn("the journal: " + warning)
	}
}

// relayed returns a gate as recovery needs it: with a topic, what is in that is in the gate's journal, too.
func (r *remoteGate) relayed(gate recovery.Gate) recovery.Gate {
	if r.journal == nil {
		return gate
	}
	return kafka.Relayed{Gate: gate, Journal: r.journal}
}

// lag returns how far the ledger is behind the gate, of each of these campaigns with unrecorded coupons: in its journal, or in the topic.
// flow.ErrUnaged comes with lags.
func (r *remoteGate) lag(ctx context.Context, active []gate.Revision) ([]flow.Lag, error) {
	if r.journal != nil {
		return r.journal.Lag(ctx, active)
	}
	return r.gate.journal.Lag(ctx, active)
}

// records makes what brings coupons to the ledger: a recorder of the journal on Redis, or a relay of that into the topic, and a recorder of
// the topic.
func (r *remoteGate) records() {
	keeper := r.rebuild.Guard(r.ledger.Recorder)
	limits := flow.RecorderLimits{Rows: int(r.flags.RecordRate), Holes: r.gate.journal, OnRecord: r.monitor.Record, OnAlarm: r.alarm}
	if r.waiter != nil {
		limits.OnRecorded = r.waiter.Recorded
	}
	if r.journal == nil {
		r.recorder = flow.NewRecorder(r.gate.source(r), keeper, limits)
		return
	}
	r.relay = flow.NewRecorder(r.gate.source(r), r.journal, flow.RecorderLimits{OnRecord: r.monitor.Relayed, OnAlarm: r.alarm})
	r.recorder = flow.NewRecorder(r.journal, keeper, limits)
}

// passing runs what brings coupons to the ledger by a topic, once Kafka has it and the ledger knows of it: until then a rebuild by a node
// without it would lose what is there.
func (r *remoteGate) passing(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		alarms := flow.Alarms{On: r.alarm}
		for ctx.Err() == nil {
			err := r.notesJournal(ctx)
			if err == nil {
				return run(ctx)
			}
			alarms.Tell("", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		return nil
	}
}

// notesJournal has the ledger know of the topic that coupons pass.
func (r *remoteGate) notesJournal(ctx context.Context) error {
	if err := r.journal.Find(ctx); err != nil {
		return err
	}
	name, id := r.journal.Topic()
	again, err := r.ledger.NoteJournal(ctx, id)
	if again {
		r.alarm("", fmt.Errorf("the topic %s was recreated (its id is %s): coupons that it had and that were not recorded are recorded from the gate's holders", name, id))
	}
	return err
}

// leavesJournal notes that coupons pass no topic any more, if an operator says so.
func (r *remoteGate) leavesJournal(ctx context.Context) error {
	_, err := r.ledger.NoteJournal(ctx, "")
	return err
}

// inspectJournal opens the topic that coupons of a gate pass, to read; nil: they pass none. marker is of any of its campaigns.
func inspectJournal(ctx context.Context, l *ledger.Ledger, gate string, name journalName, marker string) (*kafka.Journal, error) {
	topic, err := l.JournalOf(ctx, gate)
	switch {
	case err != nil || topic == "" && name.url() == "":
		return nil, err
	case name.url() == "":
		return nil, fmt.Errorf("--journal: coupons of %s pass the topic %s: name it, like kafka://HOST:PORT/%s", gate, topic, topic)
	}
	journal, err := kafka.InspectJournal(ctx, name.url(), ledger.JournalName(marker), noSecret())
	if err != nil {
		return nil, fmt.Errorf("--journal: %w", err)
	}
	return journal, nil
}
