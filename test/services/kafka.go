package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaVersion is the version whose jars .ci/install fetches.
const kafkaVersion = "4.3.1"

// kafkaCluster is the id of every cluster of one broker that a test starts.
const kafkaCluster = "MkU3OEVBNTcwNTJENDM2Qg"

// kafkaSettings are those of one node that is broker and controller. They keep memory small, and have a broker that was killed come back
// soon: with the default session of 9 seconds the controller would not let it back before.
const kafkaSettings = `process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:1
listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1
auto.create.topics.enable=false
log.retention.hours=-1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
broker.heartbeat.interval.ms=100
broker.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=2097152
log.index.size.max.bytes=1048576
num.network.threads=1
num.io.threads=2
background.threads=2
`

// kafkaRecipe runs Apache Kafka on this machine's Java: one node, which is broker and controller. The controller listens 10,000 above the
// broker's port: see takePort.
func kafkaRecipe() (recipe, error) {
	java, err := binary(nil, "java")
	if err != nil {
		return recipe{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return recipe{}, err
	}
	lib := filepath.Join(cache, "firstcome", "kafka-"+kafkaVersion, "lib")
	if _, err := os.Stat(lib); err != nil {
		return recipe{}, fmt.Errorf("%s: %w", lib, ErrMissing)
	}
	settings := func(data string) string { return filepath.Join(data, "server.properties") }
	logs := func(data string) string { return "log.dirs=" + filepath.Join(data, "log") }
	run := func(data string, words ...string) []string {
		return append([]string{
			java, "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:SharedArchiveFile=" + kafkaClasses(java, lib), "-Xshare:auto",
			"-Djava.io.tmpdir=" + filepath.Dir(data), // libraries unpack their native code there, and do not remove it
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(lib, "*"),
		}, words...)
	}
	return recipe{
		prepare: func(data string) []string {
			format := `printf '%s%s\n' "$1" "$2" >"$3" && shift 3 && exec "$@"`
			return append([]string{"sh", "-c", format, "format", kafkaSettings, logs(data), settings(data)},
				run(data, "kafka.tools.StorageTool", "format", "-t", kafkaCluster, "-c", settings(data))...)
		},
		command: func(data, port string) []string {
			controller := controllerOf(port)
			return run(data, append([]string{"kafka.Kafka", settings(data)}, overriding(
				logs(data), "controller.quorum.voters=1@"+controller,
				"listeners=PLAINTEXT://127.0.0.1:"+port+",CONTROLLER://"+controller, "advertised.listeners=PLAINTEXT://127.0.0.1:"+port)...)...)
		},
		stop: syscall.SIGTERM,
		end:  "KILL",
		url:  func(address string) string { return "kafka://" + address },
		ping: pingKafka,
	}, nil
}

// kafkaClasses returns the file with a broker's classes as Java keeps them in memory: with it a broker starts in a third of the processor time.
// It is beside the jars, and its name has when this Java was built, because another Java passes it over. It may be missing.
func kafkaClasses(java, lib string) string {
	built := int64(0)
	if about, err := os.Stat(java); err == nil {
		built = about.ModTime().Unix()
	}
	return filepath.Join(filepath.Dir(lib), fmt.Sprintf("classes-%d.jsa", built))
}

// newKafkaTemplate is newTemplate, and makes the file of kafkaClasses if it is missing: Java writes it at the end of a broker.
func newKafkaTemplate() (*Server, error) {
	template, err := Kafka.newTemplate()
	if err != nil {
		return nil, err
	}
	recipe := template.recipe
	recipe.template = func() (*Server, error) { return template, nil }
	command, made := recipe.command, fmt.Sprintf(".%d.jsa", os.Getpid())
	var file string
	recipe.command = func(data, port string) []string {
		line := command(data, port)
		for n, word := range line {
			if name, is := strings.CutPrefix(word, "-XX:SharedArchiveFile="); is {
				file, line[n] = name, "-XX:ArchiveClassesAtExit="+name+made
			}
		}
		return line
	}
	recipe.command("", "1")
	if _, err := os.Stat(file); err == nil {
		return template, nil
	}
	broker, err := Kafka.start(context.Background(), recipe)
	if err == nil {
		err = broker.Stop()
	}
	if err == nil { // several processes may do so at once
		err = os.Rename(file+made, file)
	}
	if broker != nil {
		err = errors.Join(err, broker.Close())
	}
	if err != nil {
		_ = os.Remove(file + made) // it may not be there
		return nil, errors.Join(fmt.Errorf("keep the classes of Kafka: %w", err), template.Close())
	}
	return template, nil
}

// controllerOf returns the HOST:PORT at which the controller of the broker at a port listens.
func controllerOf(port string) string {
	n, _ := strconv.Atoi(port) // it is a port's number
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(n+10_000))
}

// overriding returns the arguments that have a broker use other settings than those of its file, and than those of arguments before.
func overriding(settings ...string) (arguments []string) {
	for _, s := range settings {
		arguments = append(arguments, "--override", s)
	}
	return arguments
}

// Brokers returns the HOST:PORT of each broker that a URL names.
func Brokers(at string) []string {
	_, hosts, _ := strings.Cut(at, "://")
	hosts, _, _ = strings.Cut(hosts, "/")
	return strings.Split(hosts, ",")
}

// kafkaClient connects to the brokers of a URL. It gives up soon: whoever uses it asks again.
func kafkaClient(at string, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(Brokers(at)...), kgo.DialTimeout(500 * time.Millisecond), kgo.RetryTimeout(time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, options...)...)
}

// pingKafka asks for the broker's metadata, by a new connection. A broker that is fenced still does not name itself.
func pingKafka(ctx context.Context, at string) error {
	client, err := kafkaClient(at)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err == nil && len(brokers) == 0 {
		err = fmt.Errorf("it names no broker")
	}
	return err
}

// MakeTopic makes a topic at the Kafka of a URL, without replicas and with settings of its own, and returns the topic's URL once the
// broker knows it. A broker that has just started may refuse it for a moment.
func MakeTopic(ctx context.Context, at, name string, partitions int32, settings map[string]string) (string, error) {
	return makeTopic(ctx, at, name, partitions, 1, settings)
}

func makeTopic(ctx context.Context, at, name string, partitions int32, replicas int16, settings map[string]string) (string, error) {
	client, err := kafkaClient(at)
	if err != nil {
		return "", err
	}
	defer client.Close()
	configs := map[string]*string{}
	for key, value := range settings {
		configs[key] = &value
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	unanswered := false // so it may be there
	admin := kadm.NewClient(client)
	err = until(ctx, func() bool {
		_, last = admin.CreateTopic(ctx, partitions, replicas, configs, name)
		if unanswered && errors.Is(last, kerr.TopicAlreadyExists) {
			last = nil
		}
		var refused *kerr.Error
		unanswered = unanswered || last != nil && !errors.As(last, &refused)
		return last == nil
	})
	if err == nil {
		err = until(ctx, func() bool {
			var ends kadm.ListedOffsets
			if ends, last = admin.ListEndOffsets(ctx, name); last == nil {
				last = ends.Error()
			}
			return last == nil && len(ends[name]) == int(partitions)
		})
	}
	if err != nil {
		return "", fmt.Errorf("make the topic %s: %w", name, last)
	}
	return "kafka://" + strings.Join(Brokers(at), ",") + "/" + name, nil
}

// topicOf returns the topic that a URL names.
func topicOf(at string) string { return at[strings.LastIndexByte(at, '/')+1:] }

// DropTopic deletes the topic of a URL.
func DropTopic(ctx context.Context, at string) error {
	client, err := kafkaClient(at)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).DeleteTopic(ctx, topicOf(at))
	return err
}

func dropTopic(t testing.TB, at string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := DropTopic(ctx, at); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // a test may have dropped it
		t.Errorf("drop the test's topic: %v", err)
	}
}
