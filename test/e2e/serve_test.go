//go:build linux && !check

package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

func TestServeSpeaksTLS(t *testing.T) {
	cert, key, trust := certify(t)
	p := serve(t, launch{args: []string{"--tls-cert", cert, "--tls-key", key}})
	p.secure(trust)
	if answer, text := p.ask(http.MethodGet, p.url+"/readyz", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("/readyz over TLS is answered %s %s", answer.Status, text)
	}
	for name, config := range map[string]*tls.Config{
		"TLS 1.1":          {RootCAs: trust, MaxVersion: tls.VersionTLS11},
		"somebody unknown": {RootCAs: x509.NewCertPool()},
	} {
		if c, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), config); err == nil {
			_ = c.Close()
			t.Errorf("%s is served", name)
		}
	}
	p.stop()
}

func TestMetricsAndProfilesAreOnTheOpsListenerOnly(t *testing.T) {
	p := serve(t, launch{})
	p.metric("firstcome_waiting_claims")
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if answer, _ := p.ask(http.MethodGet, p.url+path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s on the public listener is answered %s", path, answer.Status)
		}
	}
	p.stop()
}

func TestAUserClaimsWithATokenOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	secret := strings.Repeat("s", 32)
	stage.Must(t, os.WriteFile(filepath.Join(dir, "jwt"), []byte(secret+"\n"), 0o600))
	status, output := execute(t, dir, "key", "create", "--name", "first", "--role", "admin")
	if status != 0 {
		t.Fatal(output)
	}
	p := serve(t, launch{dir: dir, args: append(patient, "--jwt-secret-file", "jwt", "--jwt-issuer", "shop")})
	admin := client.New(p.url, lastLine(output))
	defer admin.CloseIdle()
	if _, err := admin.CreateCampaign(t.Context(), client.NewCampaign{ID: "spring", Name: "Spring"}); err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "alice", "iss": "shop", "exp": time.Now().Add(time.Minute).Unix(),
	}).SignedString([]byte(secret))
	stage.Must(t, err)
	alice := client.New(p.url, token)
	defer alice.CloseIdle()
	answer, err := alice.Claim(t.Context(), "spring", "")
	if err != nil || answer.Outcome != "issued" || answer.Coupon.UserID != "alice" {
		t.Errorf("a claim with a token is answered %+v, %v", answer, err)
	}
	if _, err := alice.Claim(t.Context(), "spring", "bob"); isProblem(err) == nil || isProblem(err).Status != http.StatusNotFound {
		t.Errorf("a claim for another user is answered %v", err)
	}
}

func TestTheFirstKeyIsPrintedOnceByTheFirstStart(t *testing.T) {
	p := serve(t, launch{args: []string{"--create-key"}})
	admin := client.New(p.url, lastLine(p.printed()))
	defer admin.CloseIdle()
	if _, err := admin.Campaigns(t.Context(), "", 0); err != nil {
		t.Errorf("the key that was printed is refused: %v", err)
	}
	p.kill()
	if again := serve(t, launch{dir: p.dir, args: []string{"--create-key"}}); again.printed() != "" {
		t.Error("the second start prints a key, too")
	}
}

func TestAnAddressThatIsTakenIsNamed(t *testing.T) {
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	stage.Must(t, err)
	defer taken.Close()
	for _, flag := range []string{"--listen", "--ops"} {
		other := map[string]string{"--listen": "--ops", "--ops": "--listen"}[flag]
		status, output := execute(t, t.TempDir(), "serve", other, "127.0.0.1:0", flag, taken.Addr().String())
		if status != 1 || !strings.Contains(output, flag+" "+taken.Addr().String()) || !strings.Contains(output, "choose another address with "+flag) {
			t.Errorf("%s: the exit status is %d, and it says %s", flag, status, output)
		}
	}
}
