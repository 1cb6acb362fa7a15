//go:build linux && !check

package e2e_test

import (
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// tellRedis sends a command to a Redis, and returns its answer.
func tellRedis(t *testing.T, url string, command ...string) rueidis.RedisResult {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	stage.Must(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	c, err := rueidis.NewClient(option)
	stage.Must(t, err)
	defer c.Close()
	answer := c.Do(t.Context(), c.B().Arbitrary(command...).Build())
	if err := answer.Error(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

// TestF10ScriptsThatAFleetsRedisForgetsInMidLoadAreNotNoticed has Redis forget the scripts repeatedly while coupons are issued.
func TestF10ScriptsThatAFleetsRedisForgetsInMidLoadAreNotNoticed(t *testing.T) {
	t.Parallel()
	scriptsAreForgotten(t, 10)
}

func scriptsAreForgotten(t *testing.T, times int) {
	gate := services.Redis.Database(t)
	f := newFleet(t, services.MariaDB.Database(t), gate, patient...)
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := f.claimUntil(crowd, 12)
	defer stop()
	for range times {
		crowd.awaitAnswers(t, 20)
		tellRedis(t, gate, "SCRIPT", "FLUSH")
	}
	crowd.awaitAnswers(t, 20)
	stop()
	for _, err := range crowd.errs {
		t.Error(err)
	}
	f.drained("spring")
	f.verdict(crowd)
}

// occupy takes all connections that a server gives, and returns a function that closes them.
func occupy(t *testing.T, s *services.Server, gate bool) (release func()) {
	t.Helper()
	if gate {
		return occupyRedis(t, s)
	}
	db, err := services.Open(s.URL())
	stage.Must(t, err)
	closes := []func() error{db.Close}
	for {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Logf("%d connections are taken: %v", len(closes)-1, err)
			break
		}
		closes = append(closes, c.Close)
	}
	return func() {
		for _, end := range closes {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	}
}

// occupyRedis lowers Redis's limit of clients, and then takes all of those connections.
func occupyRedis(t *testing.T, s *services.Server) (release func()) {
	t.Helper()
	tellRedis(t, s.URL(), "CONFIG", "SET", "maxclients", "20")
	var all []net.Conn
	for {
		c, err := net.Dial("tcp", s.Address())
		stage.Must(t, err)
		all = append(all, c)
		answer := make([]byte, 64)
		_, err = c.Write([]byte("PING\r\n"))
		if n, _ := c.Read(answer); err != nil || n == 0 || answer[0] == '-' {
			t.Logf("%d connections are taken: %s", len(all)-1, answer)
			break
		}
	}
	return func() {
		for _, c := range all {
			_ = c.Close() // the last one is closed already
		}
	}
}

// TestF17WhereTheDecidersConnectionsAreUsedUpClaimsAre503AndItHeals takes all
// connections of the server that decides away from the nodes.
func TestF17WhereTheDecidersConnectionsAreUsedUpClaimsAre503AndItHeals(t *testing.T) {
	on(t, usedUpConnections, mariaDB, redisOfPostgreSQL)
}

func usedUpConnections(t *testing.T, s setup) {
	d := s.deploy(t, "--answer-wait", "1s")
	d.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := d.claimUntil(crowd, 8)
	defer stop()
	crowd.awaitAnswers(t, 50)
	server, proxy := d.decider()
	proxy.Cut()
	release := occupy(t, server, d.gate != nil)
	proxy.Heal()
	// A user who was issued a coupon before may hear of it only now.
	from, told := time.Since(crowd.start), len(crowd.unknown())
	waitFor(t, "claims that are not decided", func() bool { return len(crowd.unknown()) > told+50 })
	if issued, _ := crowd.issuedIn(span{from, time.Since(crowd.start)}); issued > 0 {
		t.Errorf("%d coupons were issued while nobody could connect", issued)
	}
	release()
	crowd.awaitAnswers(t, 100)
	stop()
	unavailable(t, crowd.errs)
	d.drained("spring")
	d.verdict(crowd)
}
