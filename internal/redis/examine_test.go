//go:build !check

package redis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// examine returns doctor's findings about a Redis.
func examine(t testing.TB, url string, edit ...func(*redis.Options)) conform.Examination {
	t.Helper()
	options := redis.Options{URL: url, Secret: secret(t)}
	for _, e := range edit {
		e(&options)
	}
	return conform.Examined(t, redis.Examine(t.Context(), options), services.Password)
}

var allOfRedis = []string{
	"the gate's server", "role", "eviction", "memory", "persistence", "appendfsync", "snapshots", "replicas", "clients", "the gate's clock", "the gate's rights", "the gate's layout",
}

func TestARedisThatMayBeAGateIsFoundGood(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory", "256mb")
	found := examine(t, server.URL())
	found.Want(t, doctor.OK, allOfRedis...)
	if f := found["gate"]; f.Grade == doctor.Fail || !strings.Contains(f.Found, "answers in") { // on a busy machine the answer takes more than a millisecond
		t.Errorf("a Redis that answers is %+v", f)
	}

	found = examine(t, services.User(t, server.URL(), strings.Fields(redis.Rights)...))
	found.Want(t, doctor.OK, "the gate's server", "eviction", "persistence", "the gate's clock", "the gate's rights")
	found.Want(t, doctor.Warn, "appendfsync")
	if f := found["appendfsync"]; !strings.Contains(f.Found, "cannot be known") {
		t.Errorf("without CONFIG appendfsync is %q", f.Found)
	}
}

func TestWhatARedisWouldLoseIsFound(t *testing.T) {
	server := services.Redis.Server(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	found := examine(t, server.URL())
	found.Want(t, doctor.Fail, "eviction")
	found.Want(t, doctor.Warn, "persistence", "memory")
	examine(t, server.URL(), func(o *redis.Options) { o.AnyEviction = true }).Want(t, doctor.Warn, "eviction")

	unsynced := services.Redis.Server(t, "--appendfsync", "no", "--maxmemory", "3mb")
	examine(t, unsynced.URL()).Want(t, doctor.Warn, "appendfsync")
	rewriting := services.Redis.Server(t, "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes")
	found = examine(t, rewriting.URL())
	found.Want(t, doctor.Warn, "appendfsync")
	if f := found["appendfsync"]; !strings.Contains(f.Found, "while Redis rewrites its file") {
		t.Errorf("of a Redis that does not sync while it rewrites its file it says %q", f.Found)
	}

	few := services.User(t, server.URL(), "~firstcome:*", "+@connection", "+info", "+eval", "+evalsha", "+time")
	found = examine(t, few)
	found.Want(t, doctor.Fail, "the gate's rights")
	if f := found["the gate's rights"]; !strings.Contains(f.Found, "XADD") {
		t.Errorf("the right that is missing is not named: %+v", f)
	}
	examine(t, services.User(t, server.URL(), "~firstcome:*", "+@connection")).Want(t, doctor.Fail, "the gate's server")
	stage.Must(t, unsynced.Kill())
	examine(t, unsynced.URL()).Want(t, doctor.Fail, "gate")
}

// TestARedisThatHangsIsNamedWithItsCauses stops the server's process. Its connections are taken, and nothing is answered.
func TestARedisThatHangsIsNamedWithItsCauses(t *testing.T) {
	server := services.Redis.Server(t)
	stage.Must(t, server.Freeze())
	hangs := examine(t, server.URL())["gate"]
	stage.Must(t, server.Continue())
	stage.Must(t, server.Kill())
	away := examine(t, server.URL())["gate"]
	const causes = "a slow command (SLOWLOG"
	if hangs.Grade != doctor.Fail || !strings.Contains(hangs.Found, "it takes connections and does not answer") || !strings.Contains(hangs.Fix, causes) || strings.Contains(away.Fix, causes) {
		t.Errorf("of a server that hangs it says %+v, and of one that is away %+v", hangs, away)
	}
}

func TestAReplicaIsNoGateAndAPrimaryShouldWaitForOne(t *testing.T) {
	primary := services.Redis.Server(t)
	host, port, _ := strings.Cut(primary.Address(), ":")
	replica := services.Redis.Server(t, "--replicaof", host, port)
	examine(t, replica.URL()).Want(t, doctor.Fail, "role")
	for found := examine(t, primary.URL()); ; found = examine(t, primary.URL()) {
		if strings.HasPrefix(found["replicas"].Found, "1,") {
			found.Want(t, doctor.Warn, "replicas")
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the replica does not come")
		}
	}
	cautious := services.Redis.Server(t, "--min-replicas-to-write", "1")
	examine(t, cautious.URL()).Want(t, doctor.OK, "replicas")
}

func TestEveryRightThatIsMissingIsNamedAndTryingWritesNothing(t *testing.T) {
	server := services.Redis.Server(t, "--save", "")
	s := newShop(t, server.URL(), 10)
	s.issue(0, 3)
	written := func() string {
		t.Helper()
		info, err := s.do("INFO", "persistence").ToString()
		stage.Must(t, err)
		_, behind, _ := strings.Cut(info, "rdb_changes_since_last_save:")
		count, _, _ := strings.Cut(behind, "\r\n")
		return count
	}
	before := written()
	if before == "" || before == "0" {
		t.Fatalf("Redis says that it was written to %q times", before)
	}
	examine(t, server.URL()).Want(t, doctor.OK, "the gate's rights")
	tried := 0
	for _, right := range strings.Fields(redis.Rights) {
		command := strings.TrimPrefix(right, "+")
		if !strings.HasPrefix(right, "+") || strings.ContainsAny(command, "|") || slices.Contains(untried, command) {
			continue
		}
		tried++
		found := examine(t, services.User(t, server.URL(), append(strings.Fields(redis.Rights), "-"+command)...))["the gate's rights"]
		if found.Grade != doctor.Fail || !strings.Contains(found.Found, strings.ToUpper(command)) {
			t.Errorf("without %s the rights are %+v", command, found)
		}
	}
	if tried < 20 {
		t.Errorf("only %d rights were tried", tried)
	}
	if now := written(); now != before {
		t.Errorf("looking at rights wrote to Redis: %s changes instead of %s", now, before)
	}
}

// untried are rights that doctor does not try on keys: without them firstcome cannot start, or a missing one only costs time.
var untried = []string{"@connection", "eval", "evalsha", "info", "subscribe", "unsubscribe", "role"}
