package services

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// slots are those of every Redis Cluster.
const slots = 16384

// A Cluster is a Redis Cluster of masters of one's own, without replicas. One goroutine
// at a time may use its methods.
type Cluster struct {
	masters []*Server
	names   []string    // by which the masters know each other
	moved   map[int]int // slots whose master is not the first one's
}

// RedisCluster starts a Cluster of so many masters for t, each with an equal share of
// the slots, and returns when all of them serve. It needs Redis 7.0, or Valkey.
func RedisCluster(t testing.TB, masters int) *Cluster {
	t.Helper()
	c := &Cluster{moved: map[int]int{}}
	for range masters {
		c.masters = append(c.masters, Redis.Server(t, "--cluster-enabled", "yes"))
	}
	if err := c.join(t.Context()); err != nil {
		t.Fatalf("make a Redis Cluster: %v", err)
	}
	return c
}

// join shares the slots out, has the masters meet, and waits until each of them says
// that all is well.
func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n, s := range c.masters {
		first, last := n*slots/len(c.masters), (n+1)*slots/len(c.masters)-1
		host, port, err := net.SplitHostPort(c.masters[0].Address())
		if err != nil {
			return err
		}
		name, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)},
			[]string{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(n + 1)},
			[]string{"CLUSTER", "MEET", host, port}, []string{"CLUSTER", "MYID"})
		if err != nil {
			return err
		}
		text, err := name.ToString()
		if err != nil {
			return err
		}
		c.names = append(c.names, text)
	}
	return until(ctx, func() bool {
		return !slices.ContainsFunc(c.masters, func(s *Server) bool { return !c.well(ctx, s) })
	})
}

// well tells whether a master knows all others and a master of each slot.
func (c *Cluster) well(ctx context.Context, s *Server) bool {
	answer, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "INFO"})
	if err != nil {
		return false
	}
	text, _ := answer.ToString() // an error has no such lines
	return strings.Contains(text, "cluster_state:ok") && strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(len(c.masters))+"\r")
}

// URL returns the URL of the cluster, which names every master.
func (c *Cluster) URL() string {
	u := url.URL{Scheme: "redis", Host: c.masters[0].Address()}
	q := url.Values{}
	for _, s := range c.masters[1:] {
		q.Add("addr", s.Address())
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Move moves the slot of a key, with all of its keys one after the other, to the next
// master, as an operator does while the cluster is used.
func (c *Cluster) Move(ctx context.Context, key string) error {
	answer, err := askRedis(ctx, c.masters[0].URL(), []string{"CLUSTER", "KEYSLOT", key})
	if err != nil {
		return err
	}
	slot, err := answer.AsInt64()
	if err != nil {
		return err
	}
	from, ok := c.moved[int(slot)]
	if !ok {
		from = slices.IndexFunc(c.masters, func(s *Server) bool { return int(slot) < (slices.Index(c.masters, s)+1)*slots/len(c.masters) })
	}
	to := (from + 1) % len(c.masters)
	if err := c.move(ctx, strconv.FormatInt(slot, 10), from, to); err != nil {
		return fmt.Errorf("move the slot %d: %w", slot, err)
	}
	c.moved[int(slot)] = to
	return nil
}

func (c *Cluster) move(ctx context.Context, slot string, from, to int) error {
	source, target := c.masters[from], c.masters[to]
	if _, err := askRedis(ctx, target.URL(), []string{"CLUSTER", "SETSLOT", slot, "IMPORTING", c.names[from]}); err != nil {
		return err
	}
	if _, err := askRedis(ctx, source.URL(), []string{"CLUSTER", "SETSLOT", slot, "MIGRATING", c.names[to]}); err != nil {
		return err
	}
	for more := true; more; {
		keys, err := c.keys(ctx, source, slot)
		if err != nil {
			return err
		}
		more = len(keys) > 0
		for _, key := range keys {
			host, port, err := net.SplitHostPort(target.Address())
			if err != nil {
				return err
			}
			_, err = askRedis(ctx, source.URL(), []string{"MIGRATE", host, port, key, "0", strconv.FormatInt(patience.Milliseconds(), 10)})
			if err != nil {
				return err
			}
		}
	}
	// The target first: so there is always somebody who has it.
	for n := range c.masters {
		s := c.masters[(to+n)%len(c.masters)]
		if _, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "SETSLOT", slot, "NODE", c.names[to]}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) keys(ctx context.Context, s *Server, slot string) ([]string, error) {
	answer, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "GETKEYSINSLOT", slot, "100"})
	if err != nil {
		return nil, err
	}
	keys, err := answer.AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return keys, err
}
