//go:build !check

package kafka_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestWhatATopicLacksIsFoundBeforeTheDrop examines topics with one mistake each. The tests have one broker, so each topic has one replica.
func TestWhatATopicLacksIsFoundBeforeTheDrop(t *testing.T) {
	t.Parallel()
	at := services.Kafka.Database(t)
	u, err := url.Parse(at)
	stage.Must(t, err)
	for name, test := range map[string]struct {
		settings map[string]string
		grade    string
		parts    []string
	}{
		"as-it-should-be": {map[string]string{"retention.ms": "-1", "min.insync.replicas": "2"}, "OK", []string{"retention.ms=-1"}},
		"compacted":       {map[string]string{"cleanup.policy": "compact"}, "FAIL", []string{"cleanup.policy=compact", "--add-config cleanup.policy=delete"}},
		"short":           {map[string]string{"retention.ms": "3600000"}, "WARN", []string{"retention.ms=3600000", "--add-config retention.ms=-1"}},
		"small":           {map[string]string{"retention.bytes": "1000000"}, "WARN", []string{"retention.bytes=1000000", "--add-config retention.bytes=-1"}},
		"alone":           {nil, "WARN", []string{"has 1 replicas", "three replicas"}},
		"small-messages":  {map[string]string{"max.message.bytes": "102400"}, "WARN", []string{"max.message.bytes=102400", "--add-config max.message.bytes=1048588"}},
		"one-in-sync":     {map[string]string{"min.insync.replicas": "1"}, "WARN", []string{"min.insync.replicas=1", "--add-config min.insync.replicas=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			topic := u.Path[1:] + "-" + name
			made, err := services.MakeTopic(t.Context(), at, topic, 1, test.settings)
			stage.Must(t, err)
			wantFinding(t, made, kafka.Facts, test.grade, test.parts...)
		})
	}
	month, err := services.MakeTopic(t.Context(), at, u.Path[1:]+"-month", 1, map[string]string{"retention.ms": "2592000000"})
	stage.Must(t, err)
	wantFinding(t, month, kafka.Facts, "OK", "retention.ms=2592000000")
	wantFinding(t, month, kafka.Lines, "WARN", "retention.ms=2592000000", "as long as any campaign lasts")
	wantFinding(t, "kafka://"+u.Host+"/none", kafka.Facts, "FAIL", "UNKNOWN_TOPIC_OR_PARTITION", "kafka-topics.sh --bootstrap-server "+u.Host+" --create --topic none")
	wantFinding(t, "kafka://127.0.0.1:1/none", kafka.Facts, "FAIL", "connection refused", "hosts and ports")
}

// wantFinding examines a topic, and fails without a finding of the grade that has all parts in its text and fix.
func wantFinding(t *testing.T, at string, use kafka.Use, grade string, parts ...string) {
	t.Helper()
	all := kafka.Examine(t.Context(), at, use, "")
	for _, f := range all {
		text, has := f.Found+" "+f.Fix, true
		for _, part := range parts {
			has = has && strings.Contains(text, part)
		}
		if has && string(f.Grade) == grade {
			return
		}
	}
	t.Errorf("%s: no %s says %q: %+v", at, grade, parts, all)
}
