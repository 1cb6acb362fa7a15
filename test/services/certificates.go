package services

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Certificates are PEM files for a server that speaks TLS and for its clients.
type Certificates struct {
	Root      string // the authority that issued all other certificates here but Other
	Cert, Key string // a client's certificate and key. Its common name is the user that the client may log in as: CertifiedUser
	Other     string // an authority that issued none of them
}

// CertifiedUser is the common name in the client's certificate.
const CertifiedUser = "certified"

// Secured starts a server for t that also speaks TLS, and returns its URL for TLS. The URL has the only name
// that the server's certificate has: localhost. It does not say what the client trusts. Server.URL is still
// the URL without TLS.
func (k Kind) Secured(t testing.TB, arguments ...string) (*Server, string, Certificates) {
	t.Helper()
	dir, c := k.certificates(t)
	port := portFor(t)
	s := k.Server(t, append(k.secure(dir, port), arguments...)...)
	at, err := k.secureURL(s, port)
	if err != nil {
		t.Fatal(err)
	}
	return s, at, c
}

// certificates makes a directory with the certificates that servers of a kind and their clients need.
func (k Kind) certificates(t testing.TB) (dir string, c Certificates) {
	t.Helper()
	recipe, err := k.recipe()
	k.must(t, err)
	// The server's account could not read t.TempDir.
	dir, err = os.MkdirTemp("", "firstcome-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if c, err = newCertificates(dir, recipe.account); err != nil {
		t.Fatal(err)
	}
	return dir, c
}

// secure returns the arguments that have a server use the certificates in a directory. Redis has a port of
// its own for TLS.
func (k Kind) secure(dir string, port int) []string {
	root, cert, key := filepath.Join(dir, "root.pem"), filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	return map[Kind][]string{
		Redis: {
			"--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", root,
			"--tls-auth-clients", "no",
		},
		MariaDB: {"--ssl-cert=" + cert, "--ssl-key=" + key, "--ssl-ca=" + root},
		PostgreSQL: {
			"-c", "ssl=on", "-c", "ssl_cert_file=" + cert, "-c", "ssl_key_file=" + key, "-c", "ssl_ca_file=" + root,
			"-c", "hba_file=" + filepath.Join(dir, "hba"),
		},
	}[k]
}

func (k Kind) secureURL(s *Server, port int) (string, error) {
	u, err := url.Parse(s.URL())
	if err != nil {
		return "", err
	}
	u.RawQuery = ""
	u.Host = net.JoinHostPort("localhost", u.Port())
	if k == Redis {
		u.Scheme, u.Host = "rediss", net.JoinHostPort("localhost", strconv.Itoa(port))
	}
	return u.String(), nil
}

// hba lets PostgreSQL's owner in without a password or TLS. The users that tests make need a password, and
// CertifiedUser needs its certificate.
const hba = `hostssl all ` + CertifiedUser + ` 127.0.0.1/32 cert
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

// newCertificates writes all certificates into a directory, and gives the directory to the server's account.
func newCertificates(dir, account string) (Certificates, error) {
	file := func(name string) string { return filepath.Join(dir, name) }
	root, err := newAuthority(file("root.pem"))
	if err != nil {
		return Certificates{}, err
	}
	_, other := newAuthority(file("other.pem"))
	errs := []error{
		other,
		root.issue(file("server"), "localhost", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth), // a master of a cluster is also a client of its peers
		root.issue(file("client"), CertifiedUser, x509.ExtKeyUsageClientAuth),
		os.WriteFile(file("hba"), []byte(hba), 0o644),
		give(dir, account), give(file("server.key"), account),
	}
	return Certificates{Root: file("root.pem"), Cert: file("client.pem"), Key: file("client.key"), Other: file("other.pem")}, errors.Join(errs...)
}

// An authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newAuthority makes an authority and writes its certificate.
func newAuthority(file string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := certificate("an authority of a test")
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return &authority{c, key}, writePEM(file, "CERTIFICATE", der)
}

// issue writes a certificate for a name, FILE.pem, and its key, FILE.key.
func (a *authority) issue(file, name string, usages ...x509.ExtKeyUsage) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := certificate(name)
	c.DNSNames, c.KeyUsage, c.ExtKeyUsage = []string{name}, x509.KeyUsageDigitalSignature, usages
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(file+".pem", "CERTIFICATE", der), writePEM(file+".key", "PRIVATE KEY", private))
}

// certificate returns the fields that all certificates share. Certificates are valid for a day.
func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // rand never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

// writePEM writes a PEM file. Only its owner can read it, unless it is a certificate.
func writePEM(file, kind string, der []byte) error {
	mode := os.FileMode(0o600)
	if kind == "CERTIFICATE" {
		mode = 0o644
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return fmt.Errorf("a certificate: %w", err)
	}
	return nil
}
