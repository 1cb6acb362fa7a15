package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome/client"
)

func TestServeSpeaksTLS(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir)
	p := serveIn(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer web.CloseIdleConnections()
	status, _ := get(t, web, "https://"+p.address+"/readyz")
	if status != http.StatusOK {
		t.Errorf("/readyz over TLS is answered %d", status)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.address+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := old.Do(r); err == nil {
		answer.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

func TestMetricsAndProfilesAreOnTheOpsListenerOnly(t *testing.T) {
	p := serveIn(t, t.TempDir(), "--ops", "127.0.0.1:0")
	web := &http.Client{Transport: &http.Transport{}}
	defer web.CloseIdleConnections()
	if status, body := get(t, web, "http://"+p.ops+"/metrics"); status != http.StatusOK || !strings.Contains(body, "firstcome_") {
		t.Errorf("/metrics on the ops listener is answered %d", status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status, _ := get(t, web, "http://"+p.address+path); status != http.StatusNotFound {
			t.Errorf("%s on the public listener is answered %d", path, status)
		}
	}
}

func TestAUserClaimsWithATokenOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	secret := strings.Repeat("s", 32)
	if err := os.WriteFile(filepath.Join(dir, "jwt"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, output := execute(t, dir, "key", "create", "--name", "first", "--role", "admin")
	if status != 0 {
		t.Fatal(output)
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	p := serveIn(t, dir, "--jwt-secret-file", "jwt", "--jwt-issuer", "shop")
	admin := client.New("http://"+p.address, lines[len(lines)-1])
	defer admin.CloseIdle()
	if _, err := admin.CreateCampaign(t.Context(), client.NewCampaign{ID: "spring", Name: "Spring"}); err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "alice", "iss": "shop", "exp": time.Now().Add(time.Minute).Unix(),
	}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	alice := client.New("http://"+p.address, token)
	defer alice.CloseIdle()
	answer, err := alice.Claim(t.Context(), "spring", "")
	if err != nil || answer.Outcome != "issued" || answer.Coupon.UserID != "alice" {
		t.Errorf("a claim with a token is answered %+v, %v", answer, err)
	}
	var problem *client.Problem
	if _, err := alice.Claim(t.Context(), "spring", "bob"); !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		t.Errorf("a claim for another user is answered %v", err)
	}
}

func TestTheFirstKeyIsPrintedOnceByTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	p := serveIn(t, dir, "--create-key")
	plain := p.printed(t)
	admin := client.New("http://"+p.address, plain)
	defer admin.CloseIdle()
	if _, err := admin.Campaigns(t.Context(), "", 0); err != nil {
		t.Errorf("the key that was printed is refused: %v", err)
	}
	p.kill()
	again := serveIn(t, dir, "--create-key")
	if plain := again.printed(t); plain != "" {
		t.Error("the second start prints a key, too")
	}
}

func TestAnAddressThatIsTakenIsNamed(t *testing.T) {
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	for _, flag := range []string{"--listen", "--ops"} {
		other := map[string]string{"--listen": "--ops", "--ops": "--listen"}[flag]
		status, output := execute(t, dir, "serve", other, "127.0.0.1:0", flag, taken.Addr().String())
		if status != exitFailed || !strings.Contains(output, flag+" "+taken.Addr().String()) || !strings.Contains(output, "choose another with "+flag) {
			t.Errorf("%s: the exit status is %d, and it says %s", flag, status, output)
		}
	}
}

func get(t *testing.T, web *http.Client, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// writeCertificate writes cert.pem and key.pem for 127.0.0.1, and returns who trusts them.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
