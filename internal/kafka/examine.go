package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/firstcome/firstcome/internal/doctor"
)

const (
	// examineTimeout is the time-out of an examination.
	examineTimeout = 30 * time.Second
	// leastRetention is a week: a reader may be down over a long weekend.
	leastRetention = 7 * 24 * time.Hour
)

// A Use is the purpose of a topic.
type Use string

// The uses.
const (
	Facts Use = "facts"       // other programs read the ledger's facts there
	Waits Use = "the journal" // coupons wait there until they are recorded in the ledger
	Lines Use = "lines"       // logs of waiting lines
)

// Examine checks whether a topic suits its use, and what may be lost there. For a journal, name is JournalOptions.Name. It writes nothing.
func Examine(ctx context.Context, url string, use Use, name string) (result doctor.Findings) {
	what := "the topic of " + string(use)
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	t, err := readURL(url)
	if err != nil {
		result.Add(doctor.Fail, what, "do what the message says", "%v", err)
		return result
	}
	client, err := t.connect(ctx)
	if err != nil {
		result.Add(doctor.Fail, what, cmp.Or(t.advice(err), "do what the message says"), "%v", err)
		return result
	}
	defer client.Close()
	is, err := t.look(ctx, client)
	if err != nil {
		result.Add(doctor.Fail, what, cmp.Or(t.advice(err), "do what the message says"), "%v", err)
		return result
	}
	result.Add(doctor.OK, what, "", "%s at %v, %d partitions, id %s", t.name, t.brokers, len(is.ends), is.id)
	t.examineRights(&result, is)
	if use == Waits {
		t.examineGroup(ctx, client, &result, groupOf(name, is.id))
	}
	return append(result, t.fitness(ctx, client, use, is)...)
}

// examineRights adds the rights on the topic that the user lacks. A broker without access control reports no rights.
func (t *topic) examineRights(result *doctor.Findings, is found) {
	const what = "the topic's rights"
	if len(is.rights) == 0 {
		result.Add(doctor.OK, what, "", "the brokers report none, so every user may do everything")
		return
	}
	for _, right := range []kadm.ACLOperation{kadm.OpDescribe, kadm.OpRead, kadm.OpWrite} {
		if !slices.Contains(is.rights, right) && !slices.Contains(is.rights, kadm.OpAll) {
			result.Add(doctor.Fail, what, t.grantCommand(), "the user lacks the right %v", right)
			return
		}
	}
	result.Add(doctor.OK, what, "", "the user may describe, read and write the topic")
}

// examineGroup adds whether the user may join the recorders' consumer group.
func (t *topic) examineGroup(ctx context.Context, client *kgo.Client, result *doctor.Findings, group string) {
	const what = "the recorders' group"
	_, err := fetchOffsets(ctx, client, group)
	if err == nil {
		err = mayJoin(ctx, client, group)
	}
	if err != nil {
		result.Add(doctor.Fail, what, cmp.Or(t.advice(err), "do what the message says"), "%s: %v", group, err)
		return
	}
	result.Add(doctor.OK, what, "", "%s", group)
}

// mayJoin returns an error if the user may not be a member of a group. It sends the heartbeat of a member that the group does not have, which changes
// nothing.
func mayJoin(ctx context.Context, client *kgo.Client, group string) error {
	ask := kmsg.NewPtrHeartbeatRequest()
	ask.Group, ask.MemberID, ask.Generation = group, "nobody", -1
	answer, err := ask.RequestWith(ctx, client)
	if err == nil && answer.ErrorCode == kerr.GroupAuthorizationFailed.Code {
		err = kerr.GroupAuthorizationFailed
	}
	return err
}

// fitness returns findings about settings of a topic that do not suit its use.
func (t *topic) fitness(ctx context.Context, client *kgo.Client, use Use, is found) (result doctor.Findings) {
	what := "the settings of the topic of " + string(use)
	lost, comes := "a reader has not read", "what is thrown away comes again by facts replay only"
	short, least := doctor.Warn, "for a week at least"
	switch use {
	case Lines:
		lost, comes, short, least = "lines need", "a line that lacks records is lost", doctor.Fail, "as long as any campaign lasts, and for a week at least"
	case Waits:
		lost, comes, short = "nobody has recorded", "what is thrown away there before it is recorded is lost, if Redis loses it, too", doctor.Fail
	}
	result.Hold(is.replicas >= 2, doctor.Warn, what, "give the topic three replicas, of which two must have a record: otherwise a lost broker loses records, and the topic takes none until the broker is back",
		"the partition with the fewest has %d replicas", is.replicas)
	settings, err := t.settings(ctx, client)
	if err != nil {
		result.Add(doctor.Warn, what, cmp.Or(t.advice(err), "do what the message says"), "they cannot be read: %v", err)
		return result
	}
	t.limits(settings)
	result.Hold(t.limit() >= mostBytes, doctor.Warn, what, "let it take a batch of a megabyte: smaller ones are slower, and a message that is too large alone waits until it is taken: "+t.alterCommand("max.message.bytes=1048588"),
		"max.message.bytes=%s, segment.bytes=%s", settings["max.message.bytes"], settings["segment.bytes"])
	result.Hold(settings["cleanup.policy"] == "delete", doctor.Fail, what, "keep every record, for compaction keeps the last one of each campaign and throws the others away: "+t.alterCommand("cleanup.policy=delete"),
		"cleanup.policy=%s", settings["cleanup.policy"])
	retention, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
	keeps := time.Duration(retention) * time.Millisecond
	long, grade := err == nil && (retention < 0 || keeps >= leastRetention), short
	if use == Lines && long {
		long, grade = retention < 0, doctor.Warn
	}
	result.Hold(long, grade, what, "keep records forever, or "+least+", since "+comes+": "+t.alterCommand("retention.ms=-1"),
		"retention.ms=%s", settings["retention.ms"])
	if bytes, err := strconv.ParseInt(settings["retention.bytes"], 10, 64); err == nil && bytes >= 0 {
		result.Add(short, what, "a rush throws away what "+lost+": "+t.alterCommand("retention.bytes=-1"), "retention.bytes=%d", bytes)
	}
	if in, err := strconv.Atoi(settings["min.insync.replicas"]); err == nil {
		result.Hold(in >= 2, doctor.Warn, what, "with three replicas, require two of them to have a record before it is acknowledged, otherwise it may be on one broker only:"+t.alterCommand("min.insync.replicas=2"), "min.insync.replicas=%d", in)
	}
	result.Hold(settings["unclean.leader.election.enable"] != "true", doctor.Warn, what, "do not let a replica that lacks records become leader:"+t.alterCommand("unclean.leader.election.enable=false"),
		"unclean.leader.election.enable=%s", settings["unclean.leader.election.enable"])
	return result
}

// fits returns warnings about a topic, or an error if the topic does not suit its use or the user lacks a right. For a journal, group is the
// recorders' consumer group.
func (t *topic) fits(ctx context.Context, client *kgo.Client, use Use, is found, group string) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all doctor.Findings
	t.examineRights(&all, is)
	if group != "" {
		t.examineGroup(ctx, client, &all, group)
	}
	for _, f := range append(all, t.fitness(ctx, client, use, is)...) {
		switch f.Grade {
		case doctor.Fail:
			err = errors.Join(err, fmt.Errorf("%s, of the topic %s: %s: %s", f.What, t.name, f.Found, f.Fix))
		case doctor.Warn:
			warnings = append(warnings, f.Found+": "+f.Fix)
		}
	}
	return warnings, err
}

// settings returns the topic's settings.
func (t *topic) settings(ctx context.Context, client *kgo.Client) (map[string]string, error) {
	all, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, t.name)
	var one kadm.ResourceConfig
	if err == nil {
		one, err = all.On(t.name, nil)
	}
	if err == nil {
		err = one.Err
	}
	settings := map[string]string{}
	for _, c := range one.Configs {
		settings[c.Key] = c.MaybeValue()
	}
	return settings, err
}
