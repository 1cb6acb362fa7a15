package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
)

// topic makes a topic at a broker of its own, and returns its URL.
func (h *hosts) topic(ctx context.Context, name string, partitions int32) string {
	s := value(services.Kafka.Start(ctx))
	h.servers = append(h.servers, s)
	return value(services.MakeTopic(ctx, s.URL(), name, partitions, map[string]string{"retention.ms": "-1"}))
}

// lineInTopic: joining a line that a topic keeps, against a bare handler that appends the same record, and, with the ledger of a server, against
// joining the line that the server keeps.
func lineInTopic(ctx context.Context, b *bench) {
	for _, keeps := range []services.Kind{"", services.PostgreSQL} {
		b.lineInTopic(ctx, keeps)
	}
}

func (b *bench) lineInTopic(ctx context.Context, keeps services.Kind) {
	var h hosts
	defer h.close()
	topic := h.topic(ctx, "lines", 64) // each campaign has one for a minute after its end
	args, name := []string{"--line", topic, "--ledger", "sqlite:" + b.dir + "/line-topic.db"}, "SQLite"
	if keeps != "" {
		args[3], name = h.database(ctx, keeps), string(keeps)
	}
	s := b.node(ctx, args...)
	defer s.stop()
	bare := b.reference(ctx, "-appends", topic)
	defer bare.stop()
	calls := client.New("http://"+s.address, "")
	defer calls.CloseIdle()
	slow := int64(1)
	from := 0
	join := func(connections int) func() figure {
		return func() figure {
			id := b.lined(ctx, s, "", &slow)
			from += b.claims
			f := drive(ctx, at(s, id, sequential(from)), b.claims, connections, 0, "waiting")
			value(calls.Close(ctx, id)) // so that nobody is served while the next is measured
			return f
		}
	}
	example := b.lined(ctx, s, "", &slow)
	copyAnswer(ctx, s, bare, example, "somebody")
	for _, connections := range []int{64, 256} {
		c := b.pair(join(connections), func() figure {
			return drive(ctx, at(bare, example, sequential(0)), b.claims, connections, 0, "waiting")
		})
		b.printRate(fmt.Sprintf("joining a line in a topic, %d connections, %s decides", connections, name), c, "a bare handler that appends", wantTopic)
		b.printCPU(c, "")
	}
}

// serveAppending is a bare handler that appends the record of a user and waits for it, as a process.
func serveAppending(ctx context.Context, address, topic string) error {
	u, err := url.Parse(topic)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(u.Host), kgo.DefaultProduceTopic(u.Path[1:]), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	return serveBare(ctx, address, func(ctx context.Context, body []byte) error {
		var claim struct {
			User firstcome.UserID `json:"user_id"`
		}
		if err := json.Unmarshal(body, &claim); err != nil {
			return err
		}
		record := &kgo.Record{Partition: 63, Key: []byte("bench"), Value: fmt.Appendf(nil, `{"user":%q,"generation":1}`, claim.User)}
		return client.ProduceSync(ctx, record).FirstErr()
	})
}
