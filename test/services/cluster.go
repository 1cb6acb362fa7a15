package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// slots is how many slots every Redis Cluster has.
const slots = 16384

// A Cluster is a Redis Cluster for one test. It has masters, and replicas if it has Pairs. One goroutine at a time may use
// its methods.
type Cluster struct {
	masters []*Server
	pairs   []*Pair     // the masters, each with its replica; nil without replicas
	secured []int       // the masters' ports for TLS; nil without TLS
	names   []string    // the masters' ids within the cluster
	moved   map[int]int // the masters of the slots that were moved
}

// RedisCluster starts a Cluster for t with so many masters, each with an equal share of the slots. It returns
// when all masters serve. It needs Redis 7.0, or Valkey. All masters have the arguments.
func RedisCluster(t testing.TB, masters int, arguments ...string) *Cluster {
	t.Helper()
	c := &Cluster{moved: map[int]int{}}
	c.start(t, masters, func() []string { return slices.Clone(arguments) })
	return c
}

// PairedRedisCluster is RedisCluster with a replica of each master, which is promoted within seconds when the master is gone. Nobody moves
// its slots.
func PairedRedisCluster(t testing.TB, masters int) *Cluster {
	t.Helper()
	c := RedisCluster(t, masters, append(promptly, "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0")...)
	for n, master := range c.masters {
		c.pairs = append(c.pairs, &Pair{Primary: master, Replica: Redis.Server(t, append(master.arguments, "--cluster-enabled", "yes")...), joins: true})
		if err := c.attach(t.Context(), n); err != nil {
			t.Fatalf("have a Redis follow the master %d: %v", n, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, p := range c.pairs { // else who does not know a replica gives it no vote
		if err := until(ctx, func() bool { return c.well(ctx, p.Primary) && c.well(ctx, p.Replica) }); err != nil {
			t.Fatalf("have all servers of a cluster know each other: %v", err)
		}
	}
	return c
}

// attach has a replica join the cluster and follow its master.
func (c *Cluster) attach(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	host, port, err := c.peer(n)
	if err != nil {
		return err
	}
	p := c.pairs[n]
	if _, err := askRedis(ctx, p.Replica.URL(), []string{"CLUSTER", "MEET", host, port}); err != nil {
		return err
	}
	err = until(ctx, func() bool {
		_, err := askRedis(ctx, p.Replica.URL(), []string{"CLUSTER", "REPLICATE", c.names[n]})
		return err == nil // else it does not know the master yet
	})
	if err != nil {
		return err
	}
	return p.Settle(ctx)
}

// Pair returns the master that has a key, and its replica.
func (c *Cluster) Pair(ctx context.Context, key string) (*Pair, error) {
	slot, err := c.slot(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.pairs[c.share(slot)], nil
}

// Master returns the master that had the slot of a key when the cluster was made.
func (c *Cluster) Master(ctx context.Context, key string) (*Server, error) {
	slot, err := c.slot(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.masters[c.share(slot)], nil
}

// SecuredRedisCluster is RedisCluster with TLS, also between the masters. All masters have the same
// certificate, for localhost.
func SecuredRedisCluster(t testing.TB, masters int) (*Cluster, Certificates) {
	t.Helper()
	dir, files := Redis.certificates(t)
	c := &Cluster{moved: map[int]int{}}
	c.start(t, masters, func() []string {
		port := portFor(t)
		c.secured = append(c.secured, port)
		return append(Redis.secure(dir, port), "--tls-cluster", "yes")
	})
	return c, files
}

// start starts the masters. It calls arguments for each of them.
func (c *Cluster) start(t testing.TB, masters int, arguments func() []string) {
	t.Helper()
	for range masters {
		c.masters = append(c.masters, Redis.Server(t, append(arguments(), "--cluster-enabled", "yes")...))
	}
	if err := c.join(t.Context()); err != nil {
		t.Fatalf("make a Redis Cluster: %v", err)
	}
}

// peer returns the host and port at which a master's peers reach it.
func (c *Cluster) peer(n int) (host, port string, err error) {
	host, port, err = net.SplitHostPort(c.masters[n].Address())
	if c.secured != nil {
		port = strconv.Itoa(c.secured[n])
	}
	return host, port, err
}

// join distributes the slots, has the masters meet, and waits until each master says that the cluster is
// well.
func (c *Cluster) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n, s := range c.masters {
		first, last := n*slots/len(c.masters), (n+1)*slots/len(c.masters)-1
		host, port, err := c.peer(0)
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

// well reports whether a master knows all other masters, and a master for each slot.
func (c *Cluster) well(ctx context.Context, s *Server) bool {
	answer, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "INFO"})
	if err != nil {
		return false
	}
	text, _ := answer.ToString() // the text of an error has no such lines
	return strings.Contains(text, "cluster_state:ok") && strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(len(c.masters)+len(c.pairs))+"\r")
}

// URL returns the URL of the cluster, which names every master. With TLS, the URL does not say what the
// client trusts.
func (c *Cluster) URL() string {
	u, q := url.URL{Scheme: "redis"}, url.Values{}
	for n, s := range c.masters {
		address := s.Address()
		if c.secured != nil {
			u.Scheme, address = "rediss", net.JoinHostPort("localhost", strconv.Itoa(c.secured[n]))
		}
		if n == 0 {
			u.Host = address
		} else {
			q.Add("addr", address)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// User makes a user on every master, with these rights and no others, and returns the cluster's URL for that
// user. See the function User.
func (c *Cluster) User(t testing.TB, rights ...string) string {
	t.Helper()
	u, err := url.Parse(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	name := "user_" + random()
	made, _ := accountOf(u, name, rights)
	for _, s := range c.masters {
		if err := Execute(t.Context(), s.URL(), made...); err != nil {
			t.Fatalf("make a user of a cluster: %v", err)
		}
	}
	u.User = url.UserPassword(name, Password)
	return u.String()
}

// Find returns a key that matches a pattern.
func (c *Cluster) Find(ctx context.Context, pattern string) (string, error) {
	for _, s := range c.masters {
		answer, err := askRedis(ctx, s.URL(), []string{"KEYS", pattern})
		if err != nil {
			return "", err
		}
		if keys, err := answer.AsStrSlice(); err != nil || len(keys) > 0 {
			return strings.Join(keys[:min(1, len(keys))], ""), err
		}
	}
	return "", fmt.Errorf("no master has a key like %s", pattern)
}

// Move moves the slot of a key to the next master, with the slot's keys one after the other, as an operator
// does while the cluster is used.
func (c *Cluster) Move(ctx context.Context, key string) error {
	slot, err := c.slot(ctx, key)
	if err != nil {
		return err
	}
	from, ok := c.moved[slot]
	if !ok {
		from = c.share(slot)
	}
	to := (from + 1) % len(c.masters)
	if err := c.move(ctx, strconv.Itoa(slot), from, to); err != nil {
		return fmt.Errorf("move the slot %d: %w", slot, err)
	}
	c.moved[slot] = to
	return nil
}

// slot returns the slot of a key. Any node that answers knows it.
func (c *Cluster) slot(ctx context.Context, key string) (int, error) {
	var failed error
	for _, s := range c.masters {
		answer, err := askRedis(ctx, s.URL(), []string{"CLUSTER", "KEYSLOT", key})
		if err == nil {
			slot, err := answer.AsInt64()
			return int(slot), err
		}
		failed = err
	}
	return 0, failed
}

// share returns which master had a slot at the start.
func (c *Cluster) share(slot int) int {
	return slices.IndexFunc(c.masters, func(s *Server) bool { return slot < (slices.Index(c.masters, s)+1)*slots/len(c.masters) })
}

func (c *Cluster) move(ctx context.Context, slot string, from, to int) error {
	source, target := c.masters[from], c.masters[to]
	host, port, err := c.peer(to)
	err = errors.Join(err, Execute(ctx, target.URL(), "CLUSTER SETSLOT "+slot+" IMPORTING "+c.names[from]))
	err = errors.Join(err, Execute(ctx, source.URL(), "CLUSTER SETSLOT "+slot+" MIGRATING "+c.names[to]))
	for more := err == nil; more; {
		keys, err := c.keys(ctx, source, slot)
		if err != nil {
			return err
		}
		more = len(keys) > 0
		for _, key := range keys {
			_, err = askRedis(ctx, source.URL(), []string{"MIGRATE", host, port, key, "0", strconv.FormatInt(patience.Milliseconds(), 10)})
			if err != nil {
				return err
			}
		}
	}
	// The target comes first, so that a node always has the slot.
	for n := range c.masters {
		s := c.masters[(to+n)%len(c.masters)]
		err = errors.Join(err, Execute(ctx, s.URL(), "CLUSTER SETSLOT "+slot+" NODE "+c.names[to]))
	}
	return err
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
