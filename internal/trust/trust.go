// Package trust reads the certificates by which a client and a server know each other. It also says what to
// do about a connection that fails because of a certificate.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// The options of a server's URL, by libpq's names for them. Each names a PEM file.
const (
	RootOption = "sslrootcert" // the certificate authorities to trust, instead of the system's
	CertOption = "sslcert"     // the client's own certificate, with its chain
	KeyOption  = "sslkey"      // the private key of that certificate
)

// Files are the names of a connection's PEM files. An empty name is not used.
type Files struct{ Root, Cert, Key string }

// Take returns the files that options name, and removes them from the options.
func Take(options url.Values) Files {
	take := func(name string) string {
		value := options.Get(name)
		options.Del(name)
		return value
	}
	return Files{Root: take(RootOption), Cert: take(CertOption), Key: take(KeyOption)}
}

// Apply reads the files, and sets the authorities to trust and the certificate to present in a configuration. An error names the wrong option.
func (f Files) Apply(c *tls.Config) error {
	if (f.Cert == "") != (f.Key == "") {
		return fmt.Errorf("%s and %s go together: name both or neither", CertOption, KeyOption)
	}
	if f.Root != "" {
		text, err := ReadFile(f.Root)
		if err != nil {
			return fmt.Errorf("%s: %w", RootOption, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: the file %s has no certificate in PEM", RootOption, f.Root)
		}
	}
	if f.Cert != "" {
		own, err := Certificate(f.Cert, f.Key)
		if err != nil {
			return fmt.Errorf("%s and %s: %w", CertOption, KeyOption, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return nil
}

// Certificate reads a certificate with its chain, and its private key, from PEM files.
func Certificate(cert, key string) (tls.Certificate, error) {
	chain, err := ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, private)
}

// Advice returns what to do about an error of a connection that failed because of TLS, or "" for any other error.
func Advice(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &host):
		return "name the server in the URL as its certificate does, or get a certificate for this name"
	case errors.As(err, &authority):
		return "with " + RootOption + ", name the file of the authority that issued the server's certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, and check the clocks of both machines"
	case errors.As(err, &record):
		return "the server does not speak TLS on this port: name the port on which it does"
	}
	// crypto/tls marks an error that the other side sent only by this Op; it exports no type for it.
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Op == "remote error" {
		return "the server refused this client's certificate, or requires one: see " + CertOption + " and " + KeyOption
	}
	return ""
}
