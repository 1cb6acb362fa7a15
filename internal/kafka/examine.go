package kafka

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome/internal/doctor"
)

const (
	// examineTimeout bounds an examination.
	examineTimeout = 30 * time.Second
	// leastRetention is how long a reader may be away on a long weekend.
	leastRetention = 7 * 24 * time.Hour
)

// Examine says whether facts may be published to the topic of a URL, and what its readers may miss. It writes nothing.
func Examine(ctx context.Context, url string) (result doctor.Findings) {
	const what = "the topic of facts"
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
	result.Hold(is.replicas >= 2, doctor.Warn, what, "give the topic three replicas, of which two must have a fact: a broker that is lost takes facts with it, and until it is back nothing is published",
		"the partition with the fewest has %d replicas", is.replicas)
	t.examineRights(&result, is)
	t.examineConfig(ctx, client, &result)
	return result
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

// examineConfig looks at the topic's settings.
func (t *topic) examineConfig(ctx context.Context, client *kgo.Client, result *doctor.Findings) {
	const what = "the topic's settings"
	all, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, t.name)
	var one kadm.ResourceConfig
	if err == nil {
		one, err = all.On(t.name, nil)
	}
	if err == nil {
		err = one.Err
	}
	if err != nil {
		result.Add(doctor.Warn, what, cmp.Or(t.advice(err), "do what the message says"), "they cannot be read: %v", err)
		return
	}
	settings := map[string]string{}
	for _, c := range one.Configs {
		settings[c.Key] = c.MaybeValue()
	}
	result.Hold(settings["cleanup.policy"] == "delete", doctor.Fail, what, "set cleanup.policy=delete: compaction keeps the last fact of each campaign and throws the others away",
		"cleanup.policy=%s", settings["cleanup.policy"])
	retention, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
	keeps := time.Duration(retention) * time.Millisecond
	result.Hold(err == nil && (retention < 0 || keeps >= leastRetention), doctor.Warn, what, "set retention.ms=-1, or as long as a reader may be away: what is thrown away comes again by facts replay only",
		"retention.ms=%s", settings["retention.ms"])
	if bytes, err := strconv.ParseInt(settings["retention.bytes"], 10, 64); err == nil && bytes >= 0 {
		result.Add(doctor.Warn, what, "set retention.bytes=-1: a rush throws away what a reader has not read", "retention.bytes=%d", bytes)
	}
	if in, err := strconv.Atoi(settings["min.insync.replicas"]); err == nil {
		result.Hold(in >= 2, doctor.Warn, what, "set min.insync.replicas=2, with three replicas: else a fact may be on one broker only when it is taken", "min.insync.replicas=%d", in)
	}
}
