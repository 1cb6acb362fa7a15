package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAFileOfServeMayBeAPipe, which can be read once.
func TestAFileOfServeMayBeAPipe(t *testing.T) {
	secret := strings.Repeat("5", 64)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stage.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err1 := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	key, err2 := x509.MarshalPKCS8PrivateKey(own)
	public, err3 := x509.MarshalPKIXPublicKey(own.Public())
	stage.Must(t, errors.Join(err1, err2, err3))
	inPEM := func(kind string, der []byte) string {
		return pipe(t, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	var grammar cli
	_, err = parse(&grammar, []string{
		"serve", "--ledger", "sqlite:" + t.TempDir() + "/x.db", "--secret-file", pipe(t, []byte(secret)),
		"--jwt-secret-file", pipe(t, []byte(secret)), "--jwt-public-key", inPEM("PUBLIC KEY", public),
		"--tls-cert", inPEM("CERTIFICATE", cert), "--tls-key", inPEM("PRIVATE KEY", key),
	}, terminal{})
	stage.Must(t, err)
	s := grammar.Serve.settings(terminal{err: os.Stderr})
	if string(s.secret) != secret || s.jwt == nil || s.tls == nil {
		t.Errorf("the node has the secret %q, tokens: %t, TLS: %t", s.secret, s.jwt != nil, s.tls != nil)
	}
}

// pipe returns the name of a pipe with a text in it, as a shell's <(…) does.
func pipe(t *testing.T, text []byte) string {
	t.Helper()
	r, w, err := os.Pipe()
	stage.Must(t, err)
	t.Cleanup(func() { _ = r.Close() })
	_, err = w.Write(text)
	stage.Must(t, errors.Join(err, w.Close()))
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}

// TestTheTokensPublicKeysAreReadAgain replaces the file, as a deployment does, and makes it too large.
func TestTheTokensPublicKeysAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "keys")
	put := func(text []byte) {
		next := filepath.Join(dir, "next")
		stage.Must(t, errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, file)))
	}
	own := make([]*ecdsa.PrivateKey, 2)
	inPEM := make([][]byte, 2)
	for n := range own {
		var err error
		if own[n], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(own[n].Public())
		stage.Must(t, err)
		inPEM[n] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	put(inPEM[0])
	check, err := (&tokenFlags{JWTPublicKey: file}).jwt(terminal{})
	stage.Must(t, err)
	logged := make(stage.Log, 10)
	a := auth.New(auth.Config{JWT: check, Log: slog.New(slog.NewTextHandler(logged, nil))})
	stop := stage.Run(t, a.Run)
	put(inPEM[1])
	if line := <-logged; !strings.Contains(line, "other public keys") {
		t.Errorf("the log says %s", line)
	}
	for n, key := range own {
		token, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"sub": "a", "exp": time.Now().Add(time.Hour).Unix()}).SignedString(key)
		stage.Must(t, err)
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if _, err := a.Authenticate(r); (err == nil) != (n == 1) {
			t.Errorf("a token of key %d: %v", n, err)
		}
	}
	put(make([]byte, maxPublicKeys+1))
	if line := <-logged; !strings.Contains(line, "the last ones stand") {
		t.Errorf("the log says %s", line)
	}
	stop()
}
