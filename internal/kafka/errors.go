package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/trust"
)

// createCommand returns the command that creates the topic with suitable settings.
func (t *topic) createCommand() string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 6 --replication-factor 3 --config min.insync.replicas=2 --config cleanup.policy=delete --config retention.ms=-1",
		strings.Join(t.brokers, ","), t.name)
}

// alterCommand returns the command that changes a setting of the topic.
func (t *topic) alterCommand(setting string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s", strings.Join(t.brokers, ","), t.name, setting)
}

// grantCommand returns how to give a user the rights on the topic.
func (t *topic) grantCommand() string {
	return "give the user the rights to describe, read and write the topic: kafka-acls.sh --bootstrap-server " + strings.Join(t.brokers, ",") +
		" --add --allow-principal User:NAME --operation Describe --operation DescribeConfigs --operation Read --operation Write --topic " + t.name
}

// advice returns what to do about an error of Kafka, or "" if that is unknown.
func (t *topic) advice(err error) string {
	var dial *net.OpError
	var closed *kgo.ErrFirstReadEOF
	switch known := trust.Advice(err); {
	case known != "":
		return known
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "create the topic: " + t.createCommand()
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return t.grantCommand()
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "let the user join the recorders' consumer group: kafka-acls.sh --bootstrap-server " + strings.Join(t.brokers, ",") +
			" --add --allow-principal User:NAME --operation Describe --operation Read --resource-pattern-type prefixed --group " + groupPrefix
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "check user, password and " + saslOption + " of the URL: it is one of " + strings.Join(mechanisms, ", ")
	case errors.Is(err, kerr.IllegalSaslState):
		return "the brokers accept no log-in on this port: name the port that does, or leave USER:PASSWORD@ out"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "name the mechanism of the brokers with " + saslOption + ": one of " + strings.Join(mechanisms, ", ")
	case errors.As(err, &closed) && t.sasl == nil:
		return "the brokers seem to require a log-in on this port: write USER:PASSWORD@ before the hosts, with kafkas:// for TLS"
	case errors.As(err, &closed) && t.tls != nil:
		return "the brokers seem not to speak TLS on this port: name a port with TLS, or write kafka://"
	case errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.NotEnoughReplicasAfterAppend):
		return "bring the topic's brokers back: fewer replicas are in sync than min.insync.replicas wants"
	case errors.Is(err, kerr.RecordListTooLarge):
		return "let the topic take batches of a megabyte: " + t.alterCommand("segment.bytes=1073741824")
	case errors.Is(err, kerr.MessageTooLarge):
		return "let the topic take batches of a megabyte: " + t.alterCommand("max.message.bytes=1048588")
	case errors.As(err, &dial) && dial.Op == "dial":
		return "check hosts and ports of the URL, and that the brokers run"
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, context.DeadlineExceeded):
		return "check that the brokers run, and that this machine reaches each of them by the name that it advertises"
	}
	return ""
}

// isAway reports whether an error means that no broker answers, or that none is ready. An operator must fix every other known cause.
func isAway(err error) bool {
	if trust.Advice(err) != "" || errors.As(err, new(*kgo.ErrFirstReadEOF)) || errors.Is(err, kerr.UnknownTopicOrPartition) {
		return false
	}
	return errors.As(err, new(*net.OpError)) || errors.Is(err, context.DeadlineExceeded) || kerr.IsRetriable(err)
}

// explain adds to an error what an operator must do about it.
func (t *topic) explain(err error) error {
	if err == nil {
		return nil
	}
	if advice := t.advice(err); advice != "" {
		return fmt.Errorf("%w: %s", err, advice)
	}
	return err
}

// away marks an error of a request to Kafka after which nothing was appended or served.
func away(err error) error { return fmt.Errorf("%w: %w", firstcome.ErrLineLogAway, err) }
