package services

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
)

// primarySet is the name that Sentinel has for the primary.
const primarySet = "primary"

// SecuredSentinel starts a Redis for t and a Sentinel that names it, with TLS between all of them. It returns
// the Redis and a URL of the Sentinel, which does not say what the client trusts.
func SecuredSentinel(t testing.TB) (*Server, string, Certificates) {
	t.Helper()
	dir, files := Redis.certificates(t)
	ports := []int{portFor(t), portFor(t)}
	primary := Redis.Server(t, append(Redis.secure(dir, ports[0]), "--tls-replication", "yes")...)
	recipe, err := sentinelRecipe()
	Redis.must(t, err)
	sentinel, err := Redis.start(t.Context(), recipe, append(Redis.secure(dir, ports[1]), "--tls-replication", "yes")...)
	Redis.ends(t, sentinel, err)
	if err := watch(t.Context(), sentinel, strconv.Itoa(ports[0]), 0); err != nil {
		t.Fatalf("have Sentinel watch: %v", err)
	}
	at := url.URL{
		Scheme: "rediss", Host: net.JoinHostPort("localhost", strconv.Itoa(ports[1])), Path: "/0",
		RawQuery: url.Values{"master_set": {primarySet}}.Encode(),
	}
	return primary, at.String(), files
}

// SentinelPair starts a Pair for t, with more arguments for both servers, and a Sentinel that promotes the replica within seconds when the
// primary is gone. It returns the Sentinel's URL too, which names the primary. Whoever was killed follows again by Rejoin.
func SentinelPair(t testing.TB, arguments ...string) (p *Pair, at string) {
	t.Helper()
	p = RedisPair(t, arguments...)
	recipe, err := sentinelRecipe()
	Redis.must(t, err)
	sentinel, err := Redis.start(t.Context(), recipe)
	Redis.ends(t, sentinel, err)
	_, port, err := net.SplitHostPort(p.Primary.Address())
	Redis.must(t, err)
	if err := watch(t.Context(), sentinel, port, 1); err != nil {
		t.Fatalf("have Sentinel watch: %v", err)
	}
	p.sentinel = sentinel
	return p, sentinel.URL() + "?master_set=" + primarySet
}

// Lock makes the Sentinel of a pair ask for a log-in, which it returns. The pair's methods that ask the Sentinel no longer work.
func (p *Pair) Lock(ctx context.Context) (user, password string, err error) {
	user, password = "watcher", "open-sesame"
	_, err = askRedis(ctx, p.sentinel.URL(), []string{"ACL", "SETUSER", user, "on", ">" + password, "allchannels", "+@all"},
		[]string{"ACL", "SETUSER", "default", "resetpass", ">another"})
	return user, password, err
}

// Rename has the Sentinel of a pair name the primary, and tell nobody.
func (p *Pair) Rename(ctx context.Context) error {
	if _, err := askRedis(ctx, p.sentinel.URL(), []string{"SENTINEL", "REMOVE", primarySet}); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(p.Primary.Address())
	if err != nil {
		return err
	}
	return watch(ctx, p.sentinel, port, 0)
}

// sentinelRecipe is based on redisRecipe. Sentinel writes what it learns into its configuration file.
func sentinelRecipe() (recipe, error) {
	r, err := redisRecipe()
	redis := r.command
	configuration := func(data string) string { return filepath.Join(data, "sentinel.conf") }
	r.prepare = func(data string) []string { return []string{"touch", configuration(data)} }
	r.command = func(data, port string) []string {
		return []string{redis(data, port)[0], configuration(data), "--sentinel", "--port", port, "--bind", "127.0.0.1", "--dir", data}
	}
	return r, err
}

// watch has a Sentinel watch the Redis on a port, and returns when the Sentinel sees that the Redis is well and has so many replicas. The
// Sentinel promotes one of them when the Redis has said nothing for a second.
func watch(ctx context.Context, sentinel *Server, port string, replicas int) error {
	_, err := askRedis(ctx, sentinel.URL(), []string{"SENTINEL", "MONITOR", primarySet, "127.0.0.1", port, "1"},
		[]string{"SENTINEL", "SET", primarySet, "down-after-milliseconds", "1000", "failover-timeout", "2000"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return until(ctx, func() bool {
		answer, err := askRedis(ctx, sentinel.URL(), []string{"SENTINEL", "MASTER", primarySet})
		if err != nil {
			return false
		}
		about, err := answer.AsStrMap()
		return err == nil && about["flags"] == "master" && about["role-reported"] == "master" && about["num-slaves"] == strconv.Itoa(replicas)
	})
}

// SwitchOver has the Sentinel of a pair promote the replica while the primary lives, and returns when the old primary follows it. A Sentinel
// that has not heard of the replica lately refuses at first, so it is asked until it obeys.
func (p *Pair) SwitchOver(ctx context.Context) error {
	before := p.Replica
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := until(ctx, func() bool {
		_, err := askRedis(ctx, p.sentinel.URL(), []string{"SENTINEL", "FAILOVER", primarySet})
		return err == nil
	}); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return isPrimary(ctx, before) }); err != nil {
		return err
	}
	return p.Settle(ctx)
}
