package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/errgroup"
)

// A KafkaCluster is several brokers for one test, each a controller besides, with three replicas of everything, of which two must have a
// record before it is taken. One goroutine at a time may use its methods.
type KafkaCluster struct{ Brokers []*Server }

// clusterBrokers is how many brokers a cluster has: as few as keep all if one is lost.
const clusterBrokers = 3

// NewKafkaCluster starts a KafkaCluster for t, and returns when every broker answers.
func NewKafkaCluster(t testing.TB) *KafkaCluster {
	t.Helper()
	Kafka.mayStart(t)
	c := &KafkaCluster{}
	err := c.start(t.Context())
	for _, s := range c.Brokers {
		Kafka.ends(t, s, nil)
	}
	Kafka.must(t, err)
	return c
}

// start starts the brokers. Each has to know where the others' controllers are before any of them runs.
func (c *KafkaCluster) start(ctx context.Context) error {
	recipe, err := Kafka.recipe()
	if err != nil {
		return err
	}
	var voters []string
	for n := range clusterBrokers {
		port, err := takePort()
		if err != nil {
			return err
		}
		c.Brokers = append(c.Brokers, &Server{kind: Kafka, recipe: recipe, port: port})
		voters = append(voters, fmt.Sprintf("%d@%s", n+1, controllerOf(port.String())))
	}
	all, ctx := errgroup.WithContext(ctx)
	for n, s := range c.Brokers {
		s.arguments = overriding("node.id="+strconv.Itoa(n+1), "controller.quorum.voters="+strings.Join(voters, ","),
			"offsets.topic.replication.factor=3", "default.replication.factor=3", "min.insync.replicas=2")
		all.Go(func() error {
			if err := s.prepare(ctx, os.TempDir()); err != nil {
				return err
			}
			if err := renumber(s.data(), n+1); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return s.run(ctx)
		})
	}
	return all.Wait()
}

// renumber makes the data directory that was formatted for the broker 1 that of another one.
func renumber(data string, id int) error {
	file := filepath.Join(data, "log", "meta.properties")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		switch key, _, _ := strings.Cut(line, "="); key {
		case "node.id":
			line = "node.id=" + strconv.Itoa(id)
		case "directory.id": // of each directory of a cluster its own
			continue
		}
		lines = append(lines, line)
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// URL returns the URL of the cluster, which names every broker and no topic.
func (c *KafkaCluster) URL() string {
	var all []string
	for _, s := range c.Brokers {
		all = append(all, s.Address())
	}
	return "kafka://" + strings.Join(all, ",")
}

// MakeTopic makes a topic with a replica at each broker, and returns its URL.
func (c *KafkaCluster) MakeTopic(ctx context.Context, name string, partitions int32, settings map[string]string) (string, error) {
	return makeTopic(ctx, c.URL(), name, partitions, clusterBrokers, settings)
}

// Leader returns the place among the Brokers of the one that leads a partition of the topic of a URL.
func (c *KafkaCluster) Leader(ctx context.Context, at string, partition int32) (int, error) {
	client, err := kafkaClient(at)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leader := -1
	var last error
	err = until(ctx, func() bool {
		var topics kadm.TopicDetails
		if topics, last = kadm.NewClient(client).ListTopics(ctx, topicOf(at)); last != nil {
			return false
		}
		leader = int(topics[topicOf(at)].Partitions[partition].Leader) - 1
		return leader >= 0 && c.Brokers[leader].process != nil
	})
	if err != nil {
		return 0, fmt.Errorf("find who leads the partition %d of %s: %w", partition, at, errors.Join(err, last))
	}
	return leader, nil
}
