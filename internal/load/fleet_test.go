package load_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/test/stage"
)

// node returns the URL of another node of a server, and a counter of its claims.
func node(t *testing.T, server string) (at string, claims *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(server)
	stage.Must(t, err)
	claims = &atomic.Int64{}
	proxy := httputil.NewSingleHostReverseProxy(u)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/claims") {
			claims.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, claims
}

func TestTheNodesOfAFleetAreAskedInTurn(t *testing.T) {
	server := open(t, &shop{quantity: 50})
	first, atFirst := node(t, server)
	second, atSecond := node(t, server)
	third, atThird := node(t, server)
	r := run(t, load.Options{Server: first, Nodes: []string{second, third}, Users: 60, Repeat: 2, Concurrency: 3})
	if !r.Verdict.OK() || r.Outcomes["issued"] != 50 {
		t.Errorf("%v: %+v", r.Outcomes, r.Verdict)
	}
	// Each worker asks in turn, so nodes differ by one claim of each worker at most.
	for _, claims := range []int64{atFirst.Load(), atSecond.Load(), atThird.Load()} {
		if claims < 37 || claims > 43 {
			t.Errorf("of 120 claims a node of three has %d", claims)
		}
	}
}

func TestAClaimWhoseNodeIsDownIsAskedAgainAtTheNext(t *testing.T) {
	server := open(t, &shop{quantity: 100})
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	r := run(t, load.Options{Server: server, Nodes: []string{down.URL}, Users: 20, Concurrency: 2, Again: 1})
	if r.Outcomes["issued"] != 20 || !r.Verdict.OK() {
		t.Errorf("%v: %+v", r.Outcomes, r.Verdict)
	}
}

func TestANodeOfAnotherFleetIsABreach(t *testing.T) {
	r := run(t, load.Options{Server: open(t, &shop{quantity: 100}), Nodes: []string{open(t, &shop{quantity: 100})}, Users: 20, Concurrency: 2})
	if r.Verdict.OK() || r.Verdict.Breaches.Total == 0 {
		t.Errorf("the verdict is %+v", r.Verdict)
	}
}
