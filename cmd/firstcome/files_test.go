package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
)

// TestAFileOfServeMayBeAPipe, which can be read once.
func TestAFileOfServeMayBeAPipe(t *testing.T) {
	secret := strings.Repeat("5", 64)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err1 := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	key, err2 := x509.MarshalPKCS8PrivateKey(own)
	public, err3 := x509.MarshalPKIXPublicKey(own.Public())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	inPEM := func(kind string, der []byte) string {
		return pipe(t, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	var grammar cli
	_, err = parse(&grammar, []string{
		"serve", "--ledger", "sqlite:" + t.TempDir() + "/x.db", "--secret-file", pipe(t, []byte(secret)),
		"--jwt-secret-file", pipe(t, []byte(secret)), "--jwt-public-key", inPEM("PUBLIC KEY", public),
		"--tls-cert", inPEM("CERTIFICATE", cert), "--tls-key", inPEM("PRIVATE KEY", key),
	}, terminal{})
	if err != nil {
		t.Fatal(err)
	}
	s := grammar.Serve.settings(terminal{err: os.Stderr})
	if string(s.secret) != secret || s.jwt == nil || s.tls == nil {
		t.Errorf("the node has the secret %q, tokens: %t, TLS: %t", s.secret, s.jwt != nil, s.tls != nil)
	}
}

// pipe returns the name of a pipe with a text in it, as a shell's <(…) does.
func pipe(t *testing.T, text []byte) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}
