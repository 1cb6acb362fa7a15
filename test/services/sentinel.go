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
	if err := watch(t.Context(), sentinel, ports[0]); err != nil {
		t.Fatalf("have Sentinel watch: %v", err)
	}
	at := url.URL{
		Scheme: "rediss", Host: net.JoinHostPort("localhost", strconv.Itoa(ports[1])), Path: "/0",
		RawQuery: url.Values{"master_set": {primarySet}}.Encode(),
	}
	return primary, at.String(), files
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

// watch has a Sentinel watch the Redis on a port, and returns when the Sentinel sees that the Redis is well.
func watch(ctx context.Context, sentinel *Server, port int) error {
	_, err := askRedis(ctx, sentinel.URL(), []string{"SENTINEL", "MONITOR", primarySet, "127.0.0.1", strconv.Itoa(port), "1"})
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
		return err == nil && about["flags"] == "master" && about["role-reported"] == "master"
	})
}
