//go:build !check && (!race || soak)

package kafka_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// says fails unless an error, and doctor's findings for the same URL, have all parts and no password.
func says(t *testing.T, at string, err error, use kafka.Use, parts ...string) {
	t.Helper()
	found := kafka.Examine(t.Context(), at, use, "ours")
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Found+" "+f.Fix)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	for what, said := range map[string]string{"the error": text, "doctor": strings.Join(texts, "\n")} {
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("%s does not say %q: %s", what, part, said)
			}
		}
		if strings.Contains(said, services.Password) || strings.Contains(said, "mistyped") {
			t.Errorf("%s tells a password: %s", what, said)
		}
	}
	if !found.Failed() {
		t.Errorf("doctor finds nothing at %s: %+v", kafka.Shown(at), found)
	}
}

// opened returns the error of opening a Journal, or nil.
func opened(t *testing.T, at string) error {
	t.Helper()
	_, err := openedJournal(t, at)
	return err
}

// openedJournal returns the warnings and the error of opening a Journal.
func openedJournal(t *testing.T, at string) (told stage.Alarms, err error) {
	t.Helper()
	told = make(stage.Alarms, 1)
	j, err := kafka.OpenJournal(t.Context(), at, kafka.JournalOptions{Name: "ours", Secret: stage.Secret(), OnAlarm: told.Raise})
	if err == nil {
		j.Close()
	}
	return told, err
}

// openedLine returns the warnings and the error of opening a LineLog.
func openedLine(t *testing.T, at string) (told stage.Alarms, err error) {
	t.Helper()
	told = make(stage.Alarms, 1)
	l, err := kafka.OpenLineLog(t.Context(), at, kafka.LineLogOptions{OnAlarm: told.Raise})
	if err == nil {
		l.Close()
	}
	return told, err
}

// noLine fails unless opening a LineLog on a topic fails for the same reason as opening a Journal.
func noLine(t *testing.T, at string, parts ...string) {
	t.Helper()
	_, err := openedLine(t, at)
	says(t, at, err, kafka.Lines, parts...)
}

// TestATopicThatIsNoJournalIsRefusedWithTheCommandThatMendsIt covers a missing topic, and topics that would lose coupons.
func TestATopicThatIsNoJournalIsRefusedWithTheCommandThatMendsIt(t *testing.T) {
	t.Parallel()
	at := services.Kafka.Database(t)
	u, err := url.Parse(at)
	stage.Must(t, err)
	const change = "kafka-configs.sh --bootstrap-server "
	for name, test := range map[string]struct {
		settings map[string]string
		says     []string
	}{
		"compacted": {map[string]string{"cleanup.policy": "compact"}, []string{"cleanup.policy=compact", change, "--add-config cleanup.policy=delete"}},
		"short":     {map[string]string{"retention.ms": "3600000"}, []string{"retention.ms=3600000", change, "--add-config retention.ms=-1"}},
		"small":     {map[string]string{"retention.bytes": "1000000"}, []string{"retention.bytes=1000000", change, "--add-config retention.bytes=-1"}},
		"both":      {map[string]string{"cleanup.policy": "compact", "retention.ms": "1"}, []string{"cleanup.policy=compact", "retention.ms=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := services.MakeTopic(t.Context(), at, u.Path[1:]+"-"+name, 1, test.settings)
			stage.Must(t, err)
			says(t, made, opened(t, made), kafka.Waits, test.says...)
			noLine(t, made, test.says...)
		})
	}
	none := "kafka://" + u.Host + "/none"
	says(t, none, opened(t, none), kafka.Waits, "UNKNOWN_TOPIC_OR_PARTITION", "kafka-topics.sh --bootstrap-server "+u.Host+" --create --topic none", "retention.ms=-1")
	noLine(t, none, "UNKNOWN_TOPIC_OR_PARTITION", "kafka-topics.sh")
	gone := "kafka://127.0.0.1:1/none"
	if told, err := openedJournal(t, gone); err != nil || !strings.Contains(stage.Next(t, "an alarm", told).Error(), "connection refused: check hosts and ports") {
		t.Errorf("that nobody answers is no alarm: %v", err)
	}
	if told, err := openedLine(t, gone); err != nil || !strings.Contains(stage.Next(t, "an alarm", told).Error(), "hosts and ports") {
		t.Errorf("that nobody answers is no alarm: %v", err)
	}
	if told, err := openedLine(t, at); err != nil || len(told) > 0 {
		t.Errorf("a topic that only has one replica keeps no lines: %v, %d alarms", err, len(told))
	}
	if err := opened(t, at); err != nil {
		t.Errorf("a topic that only has one replica is refused: %v", err)
	}
}

// TestF64F65AKafkaWithUsersSaysWhatIsWrongAndWhichRightIsMissing has a broker with TLS and log-ins, and URLs with one mistake each. Then it grants a
// user one right after another, until coupons pass and facts are published.
func TestF64F65AKafkaWithUsersSaysWhatIsWrongAndWhichRightIsMissing(t *testing.T) {
	t.Parallel()
	b := services.SecuredKafka(t)
	_, err := services.MakeTopic(t.Context(), b.Server.URL(), "waits", 1, map[string]string{
		"retention.ms": "-1", "max.message.bytes": "10240", "compression.type": "uncompressed",
	})
	stage.Must(t, err)
	stage.Must(t, b.User(t.Context(), "shop"))
	at := b.URL("shop", "waits")
	trusting := at + "?sslrootcert=" + b.Root
	change := func(old, by string) string { return strings.Replace(trusting, old, by, 1) }
	for name, test := range map[string]struct {
		at   string
		says []string
	}{
		"no authority":      {at, []string{"sslrootcert"}},
		"another authority": {change(b.Root, b.Other), []string{"sslrootcert"}},
		"a wrong password":  {change(services.Password, "mistyped"), []string{"SASL_AUTHENTICATION_FAILED", "check user, password and sasl"}},
		"another mechanism": {trusting + "&sasl=plain", []string{"UNSUPPORTED_SASL_MECHANISM", "name the mechanism"}},
		"no TLS":            {"kafka" + strings.TrimPrefix(at, "kafkas"), []string{"kafkas://"}},
		"TLS at a port without": {
			strings.Replace(trusting, strings.Split(at, "@")[1], b.Address()+"/waits", 1), []string{"kafka://"},
		},
		"nobody": {strings.Replace(trusting, "shop:"+services.Password+"@", "", 1), []string{"USER"}},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, test.at, opened(t, test.at), kafka.Waits, test.says...)
			noLine(t, test.at, test.says...)
		})
	}

	const groups = "firstcome-recorders-"
	for _, step := range []struct {
		topic, groups string
		may           kadm.ACLOperation
		says          []string // before the user may
	}{
		{"waits", "", kadm.OpDescribe, []string{"TOPIC_AUTHORIZATION_FAILED", "kafka-acls.sh", "--operation Describe", "--topic waits"}},
		{"waits", "", kadm.OpRead, []string{"lacks the right READ", "--operation Read"}},
		{"waits", "", kadm.OpWrite, []string{"lacks the right WRITE", "--operation Write"}},
		{"", groups, kadm.OpDescribe, []string{"GROUP_AUTHORIZATION_FAILED", "--resource-pattern-type prefixed --group " + groups}},
		{"", groups, kadm.OpRead, []string{"GROUP_AUTHORIZATION_FAILED", "--operation Read"}},
	} {
		says(t, trusting, opened(t, trusting), kafka.Waits, step.says...)
		if step.topic != "" {
			noLine(t, trusting, step.says...)
		}
		stage.Must(t, b.Let(t.Context(), "shop", step.topic, step.groups, step.may))
	}
	g, l := newRelayed(), stage.NewLedger("c")
	found := make(chan []string, 1)
	j := stream{open(t, trusting, g, func(o *kafka.JournalOptions) { o.OnFound = func(warnings []string) { found <- warnings } }), t, trusting, g}
	if w := strings.Join(<-found, "\n"); !strings.Contains(w, "they cannot be read") || !strings.Contains(w, "DescribeConfigs") {
		t.Errorf("the warnings without the right to read settings are %s", w)
	}
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 1000))) // the topic's small messages are found by its errors
	g.record(t, j, l)
	l.WaitFor(t, 1000)
	facts := newBook()
	facts.issue("c", 1000, "u")
	p := publish(t, trusting, facts)
	stage.Await(t, "what is published", 1000, func() int64 { return p.Stats().Published })
	stage.Must(t, b.Let(t.Context(), "shop", "waits", "", kadm.OpDescribeConfigs))
	stage.Must(t, stage.Err(j.Issue(t.Context(), "c", 10)))
	l.WaitFor(t, 1010)
}
