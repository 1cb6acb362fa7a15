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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAFileOfServeMayBeAPipe gives serve files that can be read only once.
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
	s := grammar.Serve.files
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

// TestTheFileOfTheTokensPublicKeysIsReadAgain makes the file too large. internal/auth tests other changes of it.
func TestTheFileOfTheTokensPublicKeysIsReadAgain(t *testing.T) {
	own, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	public, err2 := x509.MarshalPKIXPublicKey(own.Public())
	file := filepath.Join(t.TempDir(), "keys")
	stage.Must(t, errors.Join(err1, err2, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600)))
	check, err := (&tokenFlags{JWTPublicKey: file}).jwt(terminal{})
	stage.Must(t, err)
	stage.Must(t, os.WriteFile(file, make([]byte, 1<<20+1), 0o600))
	logged := make(stage.Log, 10)
	stage.Run(t, auth.New(auth.Options{JWT: check, Log: slog.New(slog.NewTextHandler(logged, nil))}).Run)
	if line := stage.Next(t, "a line of the log", logged); !strings.Contains(line, "the last ones stand") {
		t.Errorf("the log says %s", line)
	}
}
