package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAStreamEndsWhenItsKeyIsRevoked. Another key's stream continues, and still gets places.
func TestAStreamEndsWhenItsKeyIsRevoked(t *testing.T) {
	s := openAtNoon(t, guarded)
	admin := s.key(firstcome.Admin)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, admin...).want(t, 201, "")
	for _, user := range []string{"a", "b"} {
		s.call("POST", "/v1/campaigns/c/claims", "", s.token(user)...).want(t, 202, "waiting")
	}
	stolen, kept := s.key(firstcome.Service), s.key(firstcome.Service)
	ending, staying := s.follow("b", stolen...), s.follow("b", kept...)
	ending.want("place", "1.2.1", `{`)
	staying.want("place", "1.2.1", `{`)
	ending.retry = ""
	stage.Must(t, s.ledger.Deployment.RevokeKey(t.Context(), "test", strings.Split(stolen[1], "_")[1]))
	stage.Must(t, s.auth.Reload(t.Context())) // as a node does twice a second
	ending.wantEnd()
	if ending.retry == "" {
		t.Error("whose key was revoked is not told to come back, which would say why")
	}
	if r := s.askStream("b", stolen...); r.StatusCode != 401 {
		t.Errorf("the revoked key is answered %s", r.Status)
	}
	s.serve()
	staying.want("place", "1.2.0", `{`)
	if open, _, _ := s.server.Streams(); open != 1 {
		t.Errorf("%d streams are open", open)
	}
}

// TestACrowdThatOpensStreamsLeavesConnectionsToTheKeys: only so many streams read their first places at once, and all get them.
func TestACrowdThatOpensStreamsLeavesConnectionsToTheKeys(t *testing.T) {
	const most, crowd = 64, 100 // api.mostOpenings, and more
	places := &heldPlaces{let: make(chan struct{})}
	users := auth.NewLimiter(1000, 1000, 1000)
	s := openAtNoon(t, guarded, func(s *shop, c *api.Options) {
		places.Gate = s.ledger.Gate
		c.Places, c.UserLimit = places, users
	})
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, s.key(firstcome.Admin)...).want(t, 201, "")
	service := s.key(firstcome.Service)
	statuses := make(chan int, crowd)
	for n := range crowd {
		s.call("POST", "/v1/campaigns/c/claims", `{"user_id":"`+fmt.Sprint("u", n)+`"}`, service...).want(t, 202, "waiting")
	}
	places.holds.Store(true)
	for n := range crowd {
		user := fmt.Sprint("u", n)
		go func() {
			statuses <- s.call("HEAD", "/v1/campaigns/c/claims/"+user+"/events", "", s.token(user)...).status
		}()
	}
	stage.Await(t, "all of the crowd admitted", true, func() bool { return users.Len() == crowd && places.inside.Load() >= most })
	stage.Must(t, s.auth.Reload(t.Context()))
	close(places.let)
	for range crowd {
		if status := <-statuses; status != 200 {
			t.Errorf("one of the crowd is answered %d", status)
		}
	}
	if got := places.most.Load(); got != most {
		t.Errorf("%d looked for their places at once, and %d may", got, most)
	}
}

// TestAFifthStreamOfAUserEndsTheFirst, and its client reconnects. No other stream ends.
func TestAFifthStreamOfAUserEndsTheFirst(t *testing.T) {
	s := openAtNoon(t, guarded)
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, s.key(firstcome.Admin)...).want(t, 201, "")
	for _, user := range []string{"a", "b"} {
		s.call("POST", "/v1/campaigns/c/claims", "", s.token(user)...).want(t, 202, "waiting")
	}
	other := s.follow("b", s.token("b")...)
	other.want("place", "1.2.1", `{`)
	all := make([]*listener, 6)
	for n := range all {
		all[n] = s.follow("a", s.token("a")...)
		all[n].want("place", "1.1.0", `{`)
		all[n].retry = ""
	}
	for _, ended := range all[:2] {
		if ended.wantEnd(); ended.retry == "" {
			t.Error("the oldest is not told to come back")
		}
	}
	stage.Await(t, "open streams", 4+1, func() int64 { open, _, _ := s.server.Streams(); return open })
	s.serve()
	for _, stays := range all[2:] {
		stays.want("outcome", "end", `{`)
	}
}

// TestAnAddressHasAShareOfTheStreams if addresses are limited.
func TestAnAddressHasAShareOfTheStreams(t *testing.T) {
	s := openAtNoon(t, guarded, func(_ *shop, c *api.Options) {
		c.MaxStreams, c.AddressLimit = 96, auth.NewLimiter(1000, 1000, 10)
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	s.call("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":9,"pace":{"per_second":1}}`, s.key(firstcome.Admin)...).want(t, 201, "")
	follow := func(user, from string) int {
		header := append(s.token(user), "X-Forwarded-For", from)
		s.call("POST", "/v1/campaigns/c/claims", "", header...)
		return s.askStream(user, header...).StatusCode
	}
	for n, want := range []int{200, 200, 200, 200, 200, 200, 503} {
		if got := follow(fmt.Sprint("u", n), "203.0.113.1"); got != want {
			t.Errorf("stream %d of an address is answered %d, want %d", n+1, got, want)
		}
	}
	if got := follow("other", "203.0.113.2"); got != 200 {
		t.Errorf("another address is answered %d", got)
	}
	if open, _, refused := s.server.Streams(); open != 7 || refused != 1 {
		t.Errorf("%d are open, and %d were refused", open, refused)
	}
}

// heldPlaces reads a ledger's places, and returns them only when released.
type heldPlaces struct {
	*sqlgate.Gate
	let          chan struct{}
	holds        atomic.Bool
	inside, most atomic.Int64
}

func (p *heldPlaces) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	if p.holds.Load() {
		inside := p.inside.Add(1)
		defer p.inside.Add(-1)
		for most := p.most.Load(); inside > most && !p.most.CompareAndSwap(most, inside); most = p.most.Load() {
		}
		select {
		case <-p.let:
		case <-ctx.Done():
			return firstcome.Place{}, firstcome.Coupon{}, ctx.Err()
		}
	}
	return p.Gate.Place(ctx, id, user)
}

// A tape keeps the parts of a stream and the time of each, for tests in a synctest bubble, which have no network.
type tape struct {
	*httptest.ResponseRecorder
	began  time.Time
	lasted time.Duration
	texts  []string
	at     []time.Duration
}

func (p *tape) Write(part []byte) (int, error) {
	p.texts, p.at = append(p.texts, string(part)), append(p.at, time.Since(p.began))
	return len(part), nil
}

// taped records the stream of a user's place in c until it ends, and for an hour at most: the user's token expires then.
func taped(t testing.TB, s *api.Server, user firstcome.UserID, token time.Duration) *tape {
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/campaigns/c/claims/"+string(user)+"/events", nil)
	header := signed(t, tokenSecret, jwt.MapClaims{"sub": user, "exp": time.Now().Add(token).Unix()})
	r.Header.Set(header[0], header[1])
	p := &tape{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
	s.Handler().ServeHTTP(p, r)
	p.lasted = time.Since(p.began)
	return p
}

// A streamed has the sources of a stream.
type streamed interface {
	gate.Places
	gate.Coupons
}

// anyCampaign is a ledger that has every campaign, and nothing else.
type anyCampaign struct{ api.Ledger }

func (anyCampaign) Campaign(context.Context, firstcome.CampaignID) (ledger.Status, error) {
	return ledger.Status{}, nil
}

func (anyCampaign) Knows(firstcome.CampaignID) bool { return true }

func (anyCampaign) Unclosed(context.Context, int) ([]ledger.Shown, int64, error) { return nil, 0, nil }

// runStreams runs a server of a line in a synctest bubble. The server reads the line at intervals of every, or by default if that is zero.
func runStreams(t testing.TB, l streamed, every time.Duration) *api.Server {
	t.Helper()
	check, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(tokenSecret)})
	stage.Must(t, err)
	terms := func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error) {
		return stage.Terms(9), nil
	}
	s := api.New(api.Options{
		Ledger: anyCampaign{}, Claims: &issue.Answerer{Coupons: l}, Places: l, Terms: api.NewTermsCache(terms), Auth: auth.New(auth.Options{JWT: check}),
		Observer: newObserver(), FollowEvery: every,
	})
	stage.Run(t, s.Run)
	return s
}

// inLine returns a gate with users in the line of c.
func inLine(t testing.TB, users ...firstcome.UserID) *stage.Gate {
	t.Helper()
	g := stage.NewGate(99, "c")
	g.Records, g.Course("c").Pace = true, &firstcome.Pace{PerSecond: 1}
	stage.Must(t, stage.Err(g.Claim(t.Context(), "c", users)))
	return g
}

// TestASilentStreamIsKeptAliveAndEndsInTime: the campaign opens later, so no place changes, although each ETA does.
func TestASilentStreamIsKeptAliveAndEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const people, look, heartbeat = 32, 750 * time.Millisecond, 15 * time.Second // as in api
		users := stage.Users("u-", 1, people)
		g := inLine(t, users...)
		g.Course("c").OpensAt = time.Now().Add(2 * time.Hour)
		s := runStreams(t, g, 0)
		var all sync.WaitGroup
		tapes := make([]*tape, people)
		for n, user := range users {
			token := 2 * time.Hour
			if n == 0 {
				token = 5 * time.Minute // and a minute, by which clocks may differ
			}
			all.Go(func() { tapes[n] = taped(t, s, user, token) })
		}
		all.Wait()
		lives, retries := map[time.Duration]bool{}, map[int]bool{}
		for n, p := range tapes {
			least, most := 15*time.Minute, 30*time.Minute
			if n == 0 {
				least, most = 6*time.Minute, 6*time.Minute
			}
			if lives[p.lasted] = true; p.lasted < least || p.lasted > most+look {
				t.Errorf("stream %d lasted %v", n, p.lasted)
			}
			last := len(p.texts) - 1
			if !strings.Contains(p.texts[0], "\nevent: place\n") || !strings.HasSuffix(p.texts[last], "\n: come back\n\n") {
				t.Fatalf("stream %d began with %q and ended with %q", n, p.texts[0], p.texts[last])
			}
			for k := 1; k < last; k++ {
				if silent := p.at[k] - p.at[k-1]; p.texts[k] != ": here\n\n" || silent < heartbeat || silent > heartbeat+look {
					t.Fatalf("stream %d is sent %q after %v", n, p.texts[k], silent)
				}
			}
			if silent := p.at[last] - p.at[last-1]; silent > heartbeat+look {
				t.Errorf("stream %d was silent for %v before its end", n, silent)
			}
			for _, text := range []string{p.texts[0], p.texts[last]} {
				var retry int
				if _, err := fmt.Sscanf(text, "retry: %d\n", &retry); err != nil || retry < 2000 || retry > 4000 {
					t.Errorf("stream %d is told to come back by %q", n, text)
				}
				retries[retry] = true
			}
		}
		if len(lives) < 3 || len(retries) < 2 {
			t.Errorf("all end at once or come back at once: %v, %v", lives, retries)
		}
	})
}

// An unsure line fails to find a coupon after a second, as long as asked has room.
type unsure struct {
	*stage.Gate
	asked chan time.Time
}

func (u *unsure) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	select {
	case u.asked <- time.Now():
		time.Sleep(time.Second)
		return firstcome.Coupon{}, errors.New("the disk is on fire")
	default:
		return u.Gate.CouponOf(ctx, id, user)
	}
}

// TestAClaimThatFailsIsReadLessAndLessOften, and never while another read of it is under way.
func TestAClaimThatFailsIsReadLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const look, took = 10 * time.Millisecond, time.Second
		waits := []time.Duration{250, 500, 1000, 2000, 4000, 5000, 5000} // ms, each with half of it as jitter
		u := &unsure{Gate: inLine(t, "a")}
		s := runStreams(t, u, look)
		var p *tape
		var end sync.WaitGroup
		end.Go(func() { p = taped(t, s, "a", time.Hour) })
		synctest.Wait()
		u.asked = make(chan time.Time, len(waits)+1)
		stage.Must(t, stage.Err(u.Serve(t.Context(), "c", 1)))
		end.Wait()
		if last := p.texts[len(p.texts)-1]; !strings.HasPrefix(last, "event: outcome\n") || len(u.asked) != cap(u.asked) {
			t.Fatalf("the claim was read %d times without an answer, and then came %q", len(u.asked), last)
		}
		before := <-u.asked
		for _, wait := range waits {
			now, wait := <-u.asked, wait*time.Millisecond
			if passed := now.Sub(before) - took; passed < wait/2 || passed > wait*3/2+look {
				t.Errorf("it is read again after %v, and should be after about %v", passed, wait)
			}
			before = now
		}
	})
}
