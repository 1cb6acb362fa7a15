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
	// examineTimeout bounds an examination.
	examineTimeout = 30 * time.Second
	// leastRetention is how long a reader may be away on a long weekend.
	leastRetention = 7 * 24 * time.Hour
)

// A Use is what a topic is for.
type Use string

// The uses.
const (
	Facts Use = "facts"       // the ledger's facts go there, for others to read
	Waits Use = "the journal" // coupons wait there for the ledger
	Lines Use = "lines"       // people are in line there
)

// Examine says whether a topic is fit for its use, and what may be lost there. Of a journal, name is that of its recorders: see
// JournalOptions. It writes nothing.
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

// examineRights says which rights on the topic the user lacks. A broker without rights of its own tells none.
func (t *topic) examineRights(result *doctor.Findings, is found) {
	const what = "the topic's rights"
	if len(is.rights) == 0 {
		result.Add(doctor.OK, what, "", "the brokers do not tell of any, so everybody may do all")
		return
	}
	for _, right := range []kadm.ACLOperation{kadm.OpDescribe, kadm.OpRead, kadm.OpWrite} {
		if !slices.Contains(is.rights, right) && !slices.Contains(is.rights, kadm.OpAll) {
			result.Add(doctor.Fail, what, t.grants(), "the user lacks the right %v", right)
			return
		}
	}
	result.Add(doctor.OK, what, "", "the user may describe, read and write the topic")
}

// examineGroup says whether the user may be one of the recorders' group.
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

// mayJoin returns an error if the user may not be a member of a group. It asks as one that the group does not have, which changes nothing.
func mayJoin(ctx context.Context, client *kgo.Client, group string) error {
	ask := kmsg.NewPtrHeartbeatRequest()
	ask.Group, ask.MemberID, ask.Generation = group, "nobody", -1
	answer, err := ask.RequestWith(ctx, client)
	if err == nil && answer.ErrorCode == kerr.GroupAuthorizationFailed.Code {
		err = kerr.GroupAuthorizationFailed
	}
	return err
}

// fitness says what of a topic's settings does not fit its use.
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
	result.Hold(is.replicas >= 2, doctor.Warn, what, "give the topic three replicas, of which two must have a record: a broker that is lost takes records with it, and until it is back the topic takes none",
		"the partition with the fewest has %d replicas", is.replicas)
	settings, err := t.settings(ctx, client)
	if err != nil {
		result.Add(doctor.Warn, what, cmp.Or(t.advice(err), "do what the message says"), "they cannot be read: %v", err)
		return result
	}
	result.Hold(settings["cleanup.policy"] == "delete", doctor.Fail, what, "keep every record, for compaction keeps the last one of each campaign and throws the others away: "+t.sets("cleanup.policy=delete"),
		"cleanup.policy=%s", settings["cleanup.policy"])
	retention, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
	keeps := time.Duration(retention) * time.Millisecond
	long, grade := err == nil && (retention < 0 || keeps >= leastRetention), short
	if use == Lines && long {
		long, grade = retention < 0, doctor.Warn
	}
	result.Hold(long, grade, what, "keep records for ever, or "+least+", since "+comes+": "+t.sets("retention.ms=-1"),
		"retention.ms=%s", settings["retention.ms"])
	if bytes, err := strconv.ParseInt(settings["retention.bytes"], 10, 64); err == nil && bytes >= 0 {
		result.Add(short, what, "a rush throws away what "+lost+": "+t.sets("retention.bytes=-1"), "retention.bytes=%d", bytes)
	}
	if in, err := strconv.Atoi(settings["min.insync.replicas"]); err == nil {
		result.Hold(in >= 2, doctor.Warn, what, "with three replicas, have two of them keep a record before it is taken; else it may be on one broker only: "+t.sets("min.insync.replicas=2"), "min.insync.replicas=%d", in)
	}
	result.Hold(settings["unclean.leader.election.enable"] != "true", doctor.Warn, what, "let no replica lead that lacks records: "+t.sets("unclean.leader.election.enable=false"),
		"unclean.leader.election.enable=%s", settings["unclean.leader.election.enable"])
	return result
}

// fits returns what a topic of a use warns of, or an error if it is not fit, or its user may not do what the use needs. Of a journal, group is
// that of its recorders.
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

// settings returns the topic's.
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
