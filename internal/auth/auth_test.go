package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A keyring is a KeySource.
type keyring struct {
	mu   sync.Mutex // guards what follows
	keys []firstcome.Key
	err  error
}

func (k *keyring) Keys(context.Context) ([]firstcome.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, k.err
}

func (k *keyring) set(err error, keys ...firstcome.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.err = keys, err
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/campaigns", nil)
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	return r
}

func newKey(t *testing.T, role firstcome.Role) (string, firstcome.Key) {
	t.Helper()
	plain, key, err := auth.NewKey("till", role)
	stage.Must(t, err)
	return plain, key
}

func TestAKeySaysItsRoleAndName(t *testing.T) {
	for _, role := range firstcome.Roles() {
		plain, key := newKey(t, role)
		a := auth.New(auth.Options{Keys: &keyring{keys: []firstcome.Key{key}}})
		stage.Must(t, a.Reload(t.Context()))
		got, err := a.Authenticate(request("Bearer " + plain))
		if err != nil {
			t.Fatalf("a good key of role %s was refused: %v", role, err)
		}
		if diff := cmp.Diff(auth.Caller{Role: role, Key: key.ID, Name: "key:" + key.ID}, got); diff != "" {
			t.Errorf("caller (-want +got):\n%s", diff)
		}
	}
}

func TestEveryBadCredentialIsRefusedForWhatItsHolderMayKnow(t *testing.T) {
	plain, key := newKey(t, firstcome.Admin)
	other, _ := newKey(t, firstcome.Admin)
	revokedPlain, revoked := newKey(t, firstcome.Admin)
	revoked.RevokedAt = time.Now()
	a := auth.New(auth.Options{Keys: &keyring{keys: []firstcome.Key{key, revoked}}})
	stage.Must(t, a.Reload(t.Context()))
	for name, bad := range map[string]struct {
		headers []string
		why     auth.Why
	}{
		"none":            {nil, auth.Missing},
		"empty":           {[]string{""}, auth.Missing},
		"basic":           {[]string{"Basic " + plain}, auth.Missing},
		"no scheme":       {[]string{plain}, auth.Missing},
		"unknown key":     {[]string{"Bearer " + other}, auth.UnknownKey},
		"revoked key":     {[]string{"Bearer " + revokedPlain}, auth.UnknownKey},
		"id only":         {[]string{"Bearer fc_" + key.ID}, auth.UnknownKey},
		"zero hash":       {[]string{"Bearer fc_" + strings.Repeat("0", 12) + "_" + strings.Repeat("0", 64)}, auth.UnknownKey},
		"one digit wrong": {[]string{"Bearer " + flipLast(plain)}, auth.UnknownKey},
		"one digit more":  {[]string{"Bearer " + plain + "0"}, auth.UnknownKey},
		"blank in front":  {[]string{"Bearer  " + plain}, auth.NoTokens},
		"two headers":     {[]string{"Bearer " + plain, "Bearer " + plain}, auth.Many},
		"a token":         {[]string{"Bearer a.b.c"}, auth.NoTokens},
	} {
		caller, err := a.Authenticate(request(bad.headers...))
		var refused *auth.Refusal
		if !errors.As(err, &refused) || !errors.Is(err, auth.ErrUnauthorized) || refused.Why != bad.why {
			t.Errorf("%s: got %+v and the error %#v, want a Refusal for %d", name, caller, err, bad.why)
		}
	}
	if _, err := a.Authenticate(request("bearer " + plain)); err != nil {
		t.Errorf("the scheme is not case-sensitive (RFC 9110), but: %v", err)
	}
}

func flipLast(s string) string {
	last := byte('0')
	if s[len(s)-1] == '0' {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}

func TestARevokedKeyIsRefusedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, key := newKey(t, firstcome.Service)
		ring := &keyring{keys: []firstcome.Key{key}}
		a := auth.New(auth.Options{Keys: ring})
		stop := stage.Run(t, a.Run)

		wait := time.NewTimer(time.Second)
		<-wait.C
		synctest.Wait()
		if _, err := a.Authenticate(request("Bearer " + plain)); err != nil {
			t.Errorf("a second after it was made, the key is refused: %v", err)
		}
		key.RevokedAt = time.Now()
		ring.set(nil, key)
		wait.Reset(time.Second)
		<-wait.C
		synctest.Wait()
		if _, err := a.Authenticate(request("Bearer " + plain)); err == nil {
			t.Error("a second after it was revoked, the key is still good")
		}
		stop()
	})
}

func TestTheLastKeysStandWhileTheyCannotBeRead(t *testing.T) {
	plain, key := newKey(t, firstcome.Viewer)
	ring := &keyring{keys: []firstcome.Key{key}}
	a := auth.New(auth.Options{Keys: ring})
	stage.Must(t, a.Reload(t.Context()))
	broken := errors.New("disk on fire")
	ring.set(broken)
	if err := a.Reload(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Reload returned %v", err)
	}
	if _, err := a.Authenticate(request("Bearer " + plain)); err != nil {
		t.Errorf("the key is refused: %v", err)
	}
}

func TestDevelopmentModeMakesEveryCallerAdmin(t *testing.T) {
	a := auth.New(auth.Options{Open: true})
	for _, r := range []*http.Request{request(), request("Bearer nonsense")} {
		got, err := a.Authenticate(r)
		if want := (auth.Caller{Role: firstcome.Admin, Name: "local"}); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if !a.Open() || auth.New(auth.Options{}).Open() {
		t.Error("Open does not say whether it is development mode")
	}
}

func TestANodeWithoutKeysAndTokensRefusesAll(t *testing.T) {
	a := auth.New(auth.Options{Keys: &keyring{}})
	stage.Must(t, a.Reload(t.Context()))
	if _, err := a.Authenticate(request()); !errors.Is(err, auth.ErrUnauthorized) {
		t.Errorf("got %v: revoking the last key must not open the server", err)
	}
}

func TestAKeyIsNeverTheSameAndItsNameIsChecked(t *testing.T) {
	one, k1 := newKey(t, firstcome.Admin)
	two, k2 := newKey(t, firstcome.Admin)
	if one == two || k1.ID == k2.ID || k1.Hash == k2.Hash {
		t.Error("two keys have something in common")
	}
	for _, name := range []string{"", strings.Repeat("x", 101), "a\nb", "\xff"} {
		if _, _, err := auth.NewKey(name, firstcome.Admin); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if _, _, err := auth.NewKey("x", "root"); err == nil {
		t.Error("a role that does not exist was taken")
	}
}

func TestALimiterSaysHowLongToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(2, 3, 10)
		for n := range 3 {
			if _, ok := l.Allow("a"); !ok {
				t.Fatalf("call %d of a burst of 3 was refused", n+1)
			}
		}
		wait, ok := l.Allow("a")
		if ok || wait != 500*time.Millisecond {
			t.Errorf("got %v, %v; want a wait of half a second", wait, ok)
		}
		if _, ok := l.Allow("b"); !ok {
			t.Error("another key is limited too")
		}
		time.Sleep(wait)
		if _, ok := l.Allow("a"); !ok {
			t.Error("still refused after the wait")
		}
	})
}

func TestALimiterNeverSaysToWaitForCenturies(t *testing.T) {
	for _, perSecond := range []float64{1e-6, 1e-10, 1e-300} { // a Duration has room for 292 years
		l := auth.NewLimiter(perSecond, 1, 10)
		l.Allow("a")
		if wait, ok := l.Allow("a"); ok || wait != 24*time.Hour {
			t.Errorf("%v a second: %v, %v; want a wait of a day", perSecond, wait, ok)
		}
	}
}

func TestALimiterRemembersABoundedNumberOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := auth.NewLimiter(1, 1, 100)
		for n := range 10_000 {
			l.Allow("kept")
			l.Allow(strconv.Itoa(n))
		}
		if l.Len() != 100 {
			t.Errorf("%d keys are remembered, want 100", l.Len())
		}
		if _, ok := l.Allow("kept"); ok {
			t.Error("a key that asks all the time was forgotten")
		}
	})
}

func TestANilLimiterAllowsAll(t *testing.T) {
	var l *auth.Limiter
	if wait, ok := l.Allow("x"); !ok || wait != 0 {
		t.Errorf("got %v, %v", wait, ok)
	}
}
