package api_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
)

// TestAddressesThatAreLimitedAsOne checks for pairs of requests whether they count as one client. An IPv6 network at home has 2^64 addresses.
func TestAddressesThatAreLimitedAsOne(t *testing.T) {
	const proxy = "10.0.0.1:5000"
	for _, c := range []struct {
		a, b [2]string // RemoteAddr and X-Forwarded-For
		same bool
	}{
		{[2]string{"203.0.113.9:1"}, [2]string{"203.0.113.9:2"}, true},
		{[2]string{"203.0.113.9:1"}, [2]string{"203.0.113.10:1"}, false},
		{[2]string{"203.0.113.9:1"}, [2]string{"[::ffff:203.0.113.9]:1"}, true},
		{[2]string{"[2001:db8:1:2::1]:1"}, [2]string{"[2001:db8:1:2:ffff:1:2:3]:2"}, true},
		{[2]string{"[2001:db8:1:2::1]:1"}, [2]string{"[2001:db8:1:3::1]:1"}, false},
		{[2]string{"[fe80::1%eth0]:1"}, [2]string{"[fe80::2%eth1]:1"}, true},
		{[2]string{proxy, "203.0.113.9"}, [2]string{"203.0.113.9:1"}, true},
		{[2]string{proxy, "203.0.113.9:4711"}, [2]string{proxy, "203.0.113.9"}, true},
		{[2]string{proxy, "203.0.113.9:4711"}, [2]string{proxy, "203.0.113.10:4711"}, false},
		{[2]string{proxy, "[2001:db8:1:2::1]:4711"}, [2]string{proxy, "2001:db8:1:2::2"}, true},
		{[2]string{proxy, "[2001:db8:1:2::1]"}, [2]string{proxy, "2001:db8:1:2::2"}, true},
		{[2]string{proxy, "[2001:db8:1:2::1]:4711"}, [2]string{proxy, "[2001:db8:1:3::1]:4711"}, false},
		{[2]string{proxy, `"203.0.113.9:4711"`}, [2]string{proxy, "203.0.113.9"}, true},
		{[2]string{proxy, "198.51.100.1, 203.0.113.9:1, 10.0.0.2:80"}, [2]string{"203.0.113.9:1"}, true},
		{[2]string{proxy, "198.51.100.1, 203.0.113.9"}, [2]string{proxy, "198.51.100.1"}, false}, // the last address that is no trusted proxy
		{[2]string{"203.0.113.9:1", "198.51.100.1"}, [2]string{"203.0.113.9:1", "198.51.100.2"}, true},
		{[2]string{proxy, "unknown"}, [2]string{proxy, "unknown, nonsense:"}, true}, // the proxy's own address
		{[2]string{proxy, "[2001:db8:1:2::1"}, [2]string{proxy, "203.0.113.9:"}, true},
	} {
		s := open(t, func(_ *shop, c *api.Options) {
			c.AddressLimit = auth.NewLimiter(0.0001, 1, 100)
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		})
		handler := s.server.Handler()
		ask := func(from [2]string) int {
			r := httptest.NewRequest("GET", "/v1/campaigns/none/line", nil) // a public route
			r.Host, r.RemoteAddr = "localhost", from[0]
			if from[1] != "" {
				r.Header.Set("X-Forwarded-For", from[1])
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		if first, second := ask(c.a), ask(c.b); first != 404 || (second == 429) != c.same {
			t.Errorf("%v answers %d, and then %v %d", c.a, first, c.b, second)
		}
	}
}

// TestARequestWithoutARouteCountsForItsAddress has each kind of request that no route answers.
func TestARequestWithoutARouteCountsForItsAddress(t *testing.T) {
	for path, want := range map[string]int{"/v1/nowhere": 404, "/nowhere": 404, "/v1//campaigns": 400, "/v1/../x": 400, "/v1/campaigns/c/pause": 405} {
		s := open(t, func(_ *shop, c *api.Options) { c.AddressLimit = auth.NewLimiter(0.0001, 1, 100) })
		handler := s.server.Handler()
		for _, status := range []int{want, 429} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != status || (w.Header().Get("Retry-After") != "") != (status == 429) {
				t.Errorf("%s answers %d, want %d: %s", path, w.Code, status, w.Body)
			}
		}
	}
}
