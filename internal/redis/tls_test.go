//go:build !check

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// with returns a URL with options.
func with(t *testing.T, at string, options ...string) string {
	t.Helper()
	u, err := url.Parse(at)
	stage.Must(t, err)
	q := u.Query()
	for n := 0; n < len(options); n += 2 {
		q.Set(options[n], options[n+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// user returns a URL for a user with the documented rights and a password.
func user(t *testing.T, plain, secured string) string {
	t.Helper()
	as, err := url.Parse(services.User(t, plain, strings.Fields(redis.Rights)...))
	stage.Must(t, err)
	u, err := url.Parse(secured)
	stage.Must(t, err)
	u.User = as.User
	return u.String()
}

func TestTheGateDecidesOverTLSForAUserOfItsOwn(t *testing.T) {
	server, secured, files := services.Redis.Secured(t)
	s := newShop(t, server.URL(), 2)
	s.want(open(t, with(t, user(t, server.URL(), secured), "sslrootcert", files.Root)), crowd(0, 3), "issued:1", "issued:2", "sold_out")
}

func TestTheGateShowsItsCertificateWhereRedisWantsOne(t *testing.T) {
	server, secured, files := services.Redis.Secured(t, "--tls-auth-clients", "yes")
	s := newShop(t, server.URL(), 2)
	rooted := with(t, secured, "sslrootcert", files.Root)
	s.want(open(t, with(t, rooted, "sslcert", files.Cert, "sslkey", files.Key)), crowd(0, 1), "issued:1")
	refused(t, rooted, "sslcert and sslkey")
}

func TestF64ARedisThatCannotBeTrustedIsRefusedWithWhatToDoAndNoPassword(t *testing.T) {
	server, secured, files := services.Redis.Secured(t)
	secured = user(t, server.URL(), secured)
	rooted := with(t, secured, "sslrootcert", files.Root)
	address := strings.Replace(rooted, "localhost", "127.0.0.1", 1)
	port := server.Address()[strings.LastIndex(server.Address(), ":"):]
	u, err := url.Parse(rooted)
	stage.Must(t, err)
	for name, test := range map[string]struct{ at, advice string }{
		"the system's authorities": {secured, "sslrootcert"},
		"another authority":        {with(t, secured, "sslrootcert", files.Other), "sslrootcert"},
		"another name":             {address, "as its certificate does"},
		"no TLS there":             {strings.Replace(rooted, ":"+u.Port(), port, 1), "does not speak TLS"},
		"TLS there":                {strings.Replace(server.URL(), port, ":"+u.Port(), 1), "rediss://"},
		"no such file":             {with(t, secured, "sslrootcert", files.Root+"x"), "sslrootcert"},
		"no certificate":           {with(t, secured, "sslrootcert", files.Key), "no certificate in PEM"},
		"half a certificate":       {with(t, rooted, "sslcert", files.Cert), "sslkey"},
		"another option":           {with(t, rooted, "sslrootcrt", files.Root), "sslrootcrt"},
		"trust in anybody":         {with(t, rooted, "skip_verify", "true"), "no skip_verify"},
		"files without TLS":        {with(t, server.URL(), "sslrootcert", files.Root), "rediss://"},
		"another password":         {strings.Replace(rooted, "sesame", "barley", 1), "user and password"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.at, test.advice) })
	}
}

// refused reports whether a URL is refused with advice and without its password.
func refused(t *testing.T, at, advice string) {
	t.Helper()
	g, err := redis.Open(t.Context(), redis.Options{URL: at, Secret: secret(t)})
	if err == nil {
		g.Close()
	}
	if err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v", err)
	}
	if err != nil && (strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "barley")) {
		t.Errorf("the password is shown: %v", err)
	}
}

func TestTheGateDecidesOnAClusterOverTLSAlsoWhileSlotsMove(t *testing.T) {
	cluster, files := services.SecuredRedisCluster(t, 3)
	s := &shop{t: t, alarms: make(stage.Alarms, 100)}
	s.gate = open(t, with(t, cluster.User(t, strings.Fields(redis.Rights)...), "sslrootcert", files.Root))
	var ids []firstcome.CampaignID
	p := stage.NewLedger()
	for n := range 6 { // some on each master
		id := firstcome.CampaignID(fmt.Sprint("at-", n))
		s.make(id)
		ids = append(ids, id)
		p.Make(id)
	}
	s.drain(s.journal(func(o *redis.ConsumerOptions) {
		o.Active = func(context.Context) ([]gate.Revision, error) { return revisions(ids...), nil }
	}), p.Take)
	for round := range 2 {
		for _, id := range ids {
			// Until the masters agree on the slot's owner, a claim may be redirected too often and get ErrBusy.
			claim := func() error {
				return errors.Join(s.gate.Trust(t.Context(), id), stage.Err(s.gate.Claim(t.Context(), id, crowd(1+10*round, 10))))
			}
			err := claim()
			for tries := 0; errors.Is(err, firstcome.ErrBusy) && tries < 1000; tries++ {
				err = claim()
			}
			stage.Must(t, err)
			p.Wait(t, "all", func() bool { return len(p.Coupons(id)) == 1+10*(round+1) })
			stage.Must(t, cluster.Move(t.Context(), redis.Keys(id, "")[0]))
		}
	}
	refused(t, cluster.URL(), "sslrootcert")
}

func TestTheGateDecidesOverTLSOnThePrimaryThatSentinelNames(t *testing.T) {
	primary, at, files := services.SecuredSentinel(t)
	g := open(t, with(t, user(t, primary.URL(), at), "sslrootcert", files.Root))
	s := newShop(t, primary.URL(), 2)
	s.want(g, crowd(0, 3), "issued:1", "issued:2", "sold_out")
	refused(t, at, "sslrootcert")
}
