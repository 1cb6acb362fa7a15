package main

import (
	"context"
	"fmt"

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

// lineInTopic: joining a line that has a log in a topic, against joining one that has none. Both are lines of the same Redis: the nodes differ.
func lineInTopic(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	args := h.fleet(ctx, services.MariaDB)
	join := func(connections int, args ...string) (func() figure, *server) {
		s := b.node(ctx, args...)
		calls := client.New("http://"+s.address, "")
		slow, from := int64(1), 0
		return func() figure {
			defer calls.CloseIdle()
			id := b.lined(ctx, s, firstcome.Decided, &slow)
			from += b.claims
			f := drive(ctx, at(s, id, sequential(from)), b.claims, connections, 0, "waiting")
			value(calls.Close(ctx, id)) // so that nobody is served while the next is measured
			return f
		}, s
	}
	topic := h.topic(ctx, "lines", 3)
	for _, row := range []struct {
		connections int
		want        string
	}{{64, wantTopicFew}, {256, wantTopic}} {
		logged, with := join(row.connections, append([]string{"--line", topic}, args...)...)
		plain, without := join(row.connections, args...)
		c := b.pair(logged, plain)
		b.printRate(fmt.Sprintf("joining a line that has a log, %d connections", row.connections), c, "without one", row.want)
		b.printCPU(c, "")
		with.stop()
		without.stop()
	}
}
