//go:build linux && !check

package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF14ACampaignWhoseSlotMovesUnderLoadIsLateAtMost moves the slot of a campaign
// from master to master of a Redis Cluster while coupons are issued.
func TestF14ACampaignWhoseSlotMovesUnderLoadIsLateAtMost(t *testing.T) {
	t.Parallel()
	cluster := services.RedisCluster(t, 3)
	f := newFleet(t, services.PostgreSQL.Database(t), cluster.URL())
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	stop := f.claimUntil(crowd, 12)
	defer stop()
	key, err := cluster.Find(t.Context(), "firstcome:{spring:*}:campaign")
	stage.Must(t, err)
	for range rounds(4, 300) {
		crowd.awaitAnswers(t, 50)
		stage.Must(t, cluster.Move(t.Context(), key))
	}
	crowd.awaitAnswers(t, 50)
	stop()
	unavailable(t, crowd.errs)
	t.Logf("drained in %v", f.drained("spring"))
	f.verdict(crowd)
}

// TestANodeWorksOverTLSOnAClusterAndOnThePrimaryThatSentinelNames has it do so as the user
// that docs/operate.md makes, and without any password in what it says.
func TestANodeWorksOverTLSOnAClusterAndOnThePrimaryThatSentinelNames(t *testing.T) {
	rights := strings.Fields(redis.Rights)
	for name, gate := range map[string]func(t *testing.T) (at string, files services.Certificates){
		"a cluster": func(t *testing.T) (string, services.Certificates) {
			cluster, files := services.SecuredRedisCluster(t, 3)
			return cluster.User(t, rights...), files
		},
		"Sentinel": func(t *testing.T) (string, services.Certificates) {
			primary, at, files := services.SecuredSentinel(t)
			as := services.User(t, primary.URL(), rights...)
			return strings.Replace(at, "://", as[strings.Index(as, "://"):strings.Index(as, "@")+1], 1), files
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, files := gate(t)
			at += "&sslrootcert=" + url.QueryEscape(files.Root)
			env := []string{"FIRSTCOME_SECRET=" + fleetSecret, "FIRSTCOME_LEDGER=sqlite:" + filepath.Join(t.TempDir(), "firstcome.db"), "FIRSTCOME_GATE=" + at}
			p := serve(t, launch{env: env})
			for n := range 6 { // some at each of the cluster's masters
				id := fmt.Sprint("spring-", n)
				p.create(id, 10)
				answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns/"+id+"/claims", `{"user_id":"somebody"}`)
				if answer.StatusCode != http.StatusCreated || !strings.Contains(string(text), `"recorded":true`) {
					t.Errorf("a claim: %s %s", answer.Status, text)
				}
			}
			p.stop()
			output := p.text()
			for _, command := range []string{"doctor", "audit"} {
				status, text := executeWith(t, t.TempDir(), env, command)
				if status != 0 {
					t.Errorf("%s ends with %d:\n%s", command, status, text)
				}
				output += text
			}
			if strings.Contains(output, "sesame") {
				t.Errorf("a password is shown:\n%s", output)
			}
		})
	}
}
