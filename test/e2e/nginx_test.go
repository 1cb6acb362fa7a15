//go:build linux && !check

package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// nginxMain is the rest of a configuration around the one that is shipped.
const nginxMain = `daemon off; master_process off; pid %[1]s/pid;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	include %[1]s/firstcome.conf;
}
`

// proxied starts nginx with packaging/nginx/firstcome.conf, one of whose nodes is at an address and the
// other cannot be reached, and returns its URL.
func proxied(t *testing.T, node string) string {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary = "/usr/sbin/nginx" // where the path of most users does not lead
	}
	conf, err := os.ReadFile("../../packaging/nginx/firstcome.conf")
	stage.Must(t, err)
	// Nobody else listens at this address, so the port stays free.
	free, err := net.Listen("tcp", "127.7.7.7:0")
	stage.Must(t, err)
	_ = free.Close()
	text, dir := string(conf), t.TempDir()
	for from, to := range map[string]string{"/var/cache/firstcome": dir + "/cache", "127.0.0.1:8080": free.Addr().String(), "127.0.0.1:8081": node, "127.0.0.1:8082": "127.7.7.7:1"} {
		if strings.Count(text, from) != 1 {
			t.Fatalf("the configuration does not have %s once", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	for name, text := range map[string]string{"firstcome.conf": text, "nginx.conf": fmt.Sprintf(nginxMain, dir)} {
		stage.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command(binary, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var says strings.Builder
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: .ci/install installs nginx-light", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx said:\n%s", &says)
		}
	})
	waitFor(t, "nginx to listen", func() bool {
		c, err := net.Dial("tcp", free.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + free.Addr().String()
}

// A page is one of the shop, in the browser of somebody at an address.
type page struct {
	t    *testing.T
	shop string
	http *http.Client
}

func openPage(t *testing.T, shop, from string) *page {
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &page{t, shop, &http.Client{Transport: transport}}
}

// asks sends a request as a browser does for one of the shop's own pages.
func (p *page) asks(method, path, token string, header ...string) (status int, body []byte) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.shop+path, http.NoBody)
	stage.Must(p.t, err)
	for name, value := range map[string]string{"Origin": p.shop, "Sec-Fetch-Site": "same-origin", "Cookie": "session=1", "Authorization": "Bearer " + token} {
		r.Header.Set(name, value)
	}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	answer, err := p.http.Do(r)
	stage.Must(p.t, err)
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, body
}

// openShop serves behind nginx with the configuration that is shipped, and returns an admin's key, a client of the node itself, a page and
// what signs users' tokens.
func openShop(t *testing.T, args ...string) (key string, admin *client.Client, shop *page, token func(user string) string) {
	t.Helper()
	const secret = "a token secret of the tests, 32 bytes and more"
	dir := t.TempDir()
	status, key := execute(t, dir, "key", "create", "--name", "first", "--role", "admin")
	if status != 0 {
		t.Fatal(key)
	}
	key = lastLine(key)
	p := serve(t, launch{dir: dir, env: []string{"FIRSTCOME_JWT_SECRET=" + secret}, args: append(patient, args...)})
	admin = client.New(p.url, key)
	t.Cleanup(admin.CloseIdle)
	return key, admin, openPage(t, proxied(t, p.address()), "127.7.7.8"), func(user string) string {
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
		stage.Must(t, err)
		return text
	}
}

// TestThePagesOfAShopFollowALineThroughItsOwnProxy joins a line that is never served, reads it, follows it and leaves it.
func TestThePagesOfAShopFollowALineThroughItsOwnProxy(t *testing.T) {
	_, admin, shop, token := openShop(t)
	none, pace := int64(0), int64(1)
	stage.Must(t, stage.Err(admin.CreateCampaign(t.Context(), client.NewCampaign{ID: "lined", Name: "Lined", Quantity: &none, Pace: &client.Pace{PerSecond: &pace}, Waitlist: true})))
	wants := func(method, path, user string, want int) {
		t.Helper()
		if status, body := shop.asks(method, "/v1/campaigns/lined"+path, token(user)); status != want {
			t.Fatalf("%s %s answers %d %s", method, path, status, body)
		}
	}
	wants("POST", "/claims", "a", 202)
	wants("GET", "/line", "a", 200)
	wants("GET", "/line", "b", 200)
	r, err := http.NewRequestWithContext(t.Context(), "GET", shop.shop+"/v1/campaigns/lined/claims/a/events", nil)
	stage.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+token("a"))
	stream, err := shop.http.Do(r)
	stage.Must(t, err)
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	comes := func(event string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+event {
				return
			}
		}
		t.Fatalf("the stream is %s and has no event %s: %v", stream.Status, event, lines.Err())
	}
	comes("place") // while the stream goes on
	wants("DELETE", "/claims/a", "a", 200)
	comes("outcome")
	wants("DELETE", "/line", "a", 405)
}

// TestThePagesOfAShopClaimThroughItsOwnProxy runs nginx with the configuration that is shipped.
func TestThePagesOfAShopClaimThroughItsOwnProxy(t *testing.T) {
	const burst = 100 // addressBurst of cmd/firstcome
	key, admin, shop, token := openShop(t, "--trusted-proxy", "127.0.0.1", "--address-rate", "0.001")
	if _, err := admin.CreateCampaign(t.Context(), client.NewCampaign{ID: "spring", Name: "Spring"}); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for n, user := range []string{"alice", "a b/ü%2F", "..x", "c"} {
		own := url.PathEscape(user)
		for _, c := range []struct {
			method, path string
			want         int
		}{
			{"POST", "/v1/campaigns/spring/claims", 201},
			{"POST", "/v1/campaigns/spring/claims", 200},
			{"GET", "/v1/campaigns/spring/claims/" + own, 200},
			{"GET", "/v1/users/" + own + "/coupons", 200},
			{"GET", "/v1/campaigns/spring", 200},
		} {
			asked++
			status, body := shop.asks(c.method, c.path, token(user))
			var found struct{ Coupon struct{ Number int } }
			if err := json.Unmarshal(body, &found); err != nil || status != c.want || strings.Contains(c.path, "/claims") && found.Coupon.Number != n+1 {
				t.Errorf("%s %s by %q answers %d %s", c.method, c.path, user, status, body)
			}
		}
	}
	for operation, want := range map[string]int{
		"GET /v1/campaigns": 404, "POST /v1/campaigns": 404, "POST /v1/campaigns/spring/close": 404, "GET /v1/campaigns/spring/coupons": 404, "GET /v1/campaigns/spring/facts": 404,
		"PATCH /v1/campaigns/spring": 403, "GET /v1/audit-log": 404, "GET /v1/dead-letters": 404, "GET /v1/campaigns/spring/claims/../coupons": 404, "GET /": 204, "GET /readyz": 204,
	} {
		method, path, _ := strings.Cut(operation, " ")
		if status, body := shop.asks(method, path, key); status != want {
			t.Errorf("%s with an operator's key answers %d %s", operation, status, body)
		}
	}
	// The address that a client claims for itself counts for nothing, and nobody else is limited for it.
	for n := asked; n < burst; n++ {
		if status, body := shop.asks("GET", "/v1/campaigns/spring", token("c"), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n)); status != 200 {
			t.Fatalf("request %d of an address answers %d %s", n, status, body)
		}
	}
	if status, _ := shop.asks("GET", "/v1/campaigns/spring", token("c"), "X-Forwarded-For", "203.0.113.250"); status != 429 {
		t.Errorf("behind %d requests an address is answered %d", burst, status)
	}
	if status, _ := openPage(t, shop.shop, "127.7.7.9").asks("GET", "/v1/campaigns/spring", token("c")); status != 200 {
		t.Errorf("another address is answered %d", status)
	}
}

// TestTheShopsProxyKeepsItsConnectionsAndTheShopsCookies has a node that notes what it is sent.
func TestTheShopsProxyKeepsItsConnectionsAndTheShopsCookies(t *testing.T) {
	var made, lines, brief atomic.Int64
	headers := make(chan http.Header, 1)
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/brief/line") {
			brief.Add(1)
			w.Header().Set("Cache-Control", "public, max-age=1") // as a node does
			return
		}
		if strings.HasSuffix(r.URL.Path, "/line") {
			lines.Add(1)
			w.Header().Set("Cache-Control", "public, max-age=3600") // as a node does, but for longer than a test takes
			return
		}
		headers <- r.Header
	}))
	node.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	node.Start()
	defer node.Close()
	shop := openPage(t, proxied(t, node.Listener.Addr().String()), "127.7.7.8")
	const claims = 20
	for range claims {
		if status, _ := shop.asks("POST", "/v1/campaigns/spring/claims", "x", "X-Forwarded-For", "203.0.113.9"); status != http.StatusOK {
			t.Fatalf("a claim is answered %d", status)
		}
		h := <-headers
		if from := h["X-Forwarded-For"]; len(from) != 1 || from[0] != "127.7.7.8" || h.Get("Cookie") != "" || h.Get("Authorization") != "Bearer x" {
			t.Errorf("a node is sent %v", h)
		}
	}
	for range 3 {
		if status, _ := shop.asks("GET", "/v1/campaigns/spring/line", "x"); status != http.StatusOK || lines.Load() != 1 {
			t.Errorf("the line is answered %d, and the node was asked %d times", status, lines.Load())
		}
	}
	stage.Await(t, "a line that is asked for again once its second is over", true, func() bool {
		status, _ := shop.asks("GET", "/v1/campaigns/brief/line", "x")
		return status == http.StatusOK && brief.Load() > 1
	})
	if made.Load() > 4 {
		t.Errorf("%d requests in turn came over %d connections", claims, made.Load())
	}
}
