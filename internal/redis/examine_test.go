package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// examine returns what is found of a Redis, by what it is about.
func examine(t testing.TB, url string, edit ...func(*redis.Options)) map[string]redis.Finding {
	t.Helper()
	options := redis.Options{URL: url, Secret: secret(t)}
	for _, e := range edit {
		e(&options)
	}
	found := map[string]redis.Finding{}
	for _, f := range redis.Examine(t.Context(), options) {
		if f.Grade != redis.OK && f.Fix == "" {
			t.Errorf("%s has no fix: %+v", f.What, f)
		}
		if strings.Contains(f.Found+f.Fix, "open-sesame") {
			t.Errorf("%s shows a password: %+v", f.What, f)
		}
		found[f.What] = f
	}
	return found
}

func wantGrade(t testing.TB, found map[string]redis.Finding, grade redis.Grade, what ...string) {
	t.Helper()
	for _, one := range what {
		if f := found[one]; f.Grade != grade {
			t.Errorf("%s is %q, want %q: %+v", one, f.Grade, grade, f)
		}
	}
}

var allOfRedis = []string{
	"gate", "server", "role", "eviction", "memory", "persistence", "appendfsync", "snapshots", "replicas", "clients", "the gate's clock", "the gate's rights",
}

func TestARedisThatMayBeAGateIsFoundGood(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory", "256mb")
	wantGrade(t, examine(t, server.URL()), redis.OK, allOfRedis...)

	found := examine(t, services.User(t, server.URL(), strings.Fields(redis.Rights)...))
	wantGrade(t, found, redis.OK, "gate", "server", "eviction", "persistence", "the gate's clock", "the gate's rights")
	wantGrade(t, found, redis.Warn, "appendfsync")
	if f := found["appendfsync"]; !strings.Contains(f.Found, "cannot be known") {
		t.Errorf("without CONFIG appendfsync is %q", f.Found)
	}
}

func TestWhatARedisWouldLoseIsFound(t *testing.T) {
	server := services.Redis.Server(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	found := examine(t, server.URL())
	wantGrade(t, found, redis.Fail, "eviction")
	wantGrade(t, found, redis.Warn, "persistence", "memory")
	wantGrade(t, examine(t, server.URL(), func(o *redis.Options) { o.AnyEviction = true }), redis.Warn, "eviction")

	unsynced := services.Redis.Server(t, "--appendfsync", "no", "--maxmemory", "3mb")
	wantGrade(t, examine(t, unsynced.URL()), redis.Warn, "appendfsync")

	few := services.User(t, server.URL(), "~firstcome:*", "+@connection", "+info", "+eval", "+evalsha", "+time")
	found = examine(t, few)
	wantGrade(t, found, redis.Fail, "the gate's rights")
	if f := found["the gate's rights"]; !strings.Contains(f.Found, "XADD") {
		t.Errorf("the right that is missing is not named: %+v", f)
	}
	wantGrade(t, examine(t, services.User(t, server.URL(), "~firstcome:*", "+@connection")), redis.Fail, "server")
	if err := unsynced.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGrade(t, examine(t, unsynced.URL()), redis.Fail, "gate")
}

func TestAReplicaIsNoGateAndAPrimaryShouldWaitForOne(t *testing.T) {
	primary := services.Redis.Server(t)
	host, port, _ := strings.Cut(primary.Address(), ":")
	replica := services.Redis.Server(t, "--replicaof", fmt.Sprintf("%s %s", host, port))
	wantGrade(t, examine(t, replica.URL()), redis.Fail, "role")
	for found := examine(t, primary.URL()); ; found = examine(t, primary.URL()) {
		if strings.HasPrefix(found["replicas"].Found, "1,") {
			wantGrade(t, found, redis.Warn, "replicas")
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the replica does not come")
		}
	}
	cautious := services.Redis.Server(t, "--min-replicas-to-write", "1")
	wantGrade(t, examine(t, cautious.URL()), redis.OK, "replicas")
}
