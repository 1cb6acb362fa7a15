//go:build !check && (!race || soak)

package ledger_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A securedServer is a database's server that speaks TLS.
type securedServer struct {
	kind    services.Kind
	plain   string // a database of it, as a user who may do everything
	secured string // the same by TLS, for a user with a password
	files   services.Certificates
}

func newSecured(t *testing.T, kind services.Kind) securedServer {
	t.Helper()
	server, secured, files := kind.Secured(t, kind.Fast()...)
	plain, err := server.Database(t.Context())
	stage.Must(t, err)

	as := parse(t, services.User(t, plain, "ALL"))
	u := parse(t, secured)
	u.User, u.Path = as.User, as.Path
	start(t, plain, nil) // which makes the tables
	return securedServer{kind, plain, u.String(), files}
}

// trusting returns the ledger's name with an authority, and options.
func (s securedServer) trusting(t *testing.T, root string, options ...string) string {
	t.Helper()
	u := parse(t, s.secured)
	q := u.Query()
	if s.kind == services.PostgreSQL {
		q.Set("sslmode", "verify-full")
	}
	if root != "" {
		q.Set("sslrootcert", root)
	}
	for n := 0; n < len(options); n += 2 {
		q.Set(options[n], options[n+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestALedgerIsReachedOverTLS(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		s := newSecured(t, kind)
		stage.Must(t, stage.Err(reader(t, s.trusting(t, s.files.Root)).Deployment.Keys(t.Context())))
	})
}

func TestALedgerIsShownItsClientsCertificate(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		s := newSecured(t, kind)
		execute(t, services.Beside(t, s.plain), map[services.Kind][]string{
			services.MariaDB: {
				"CREATE USER " + services.CertifiedUser + " REQUIRE SUBJECT '/CN=" + services.CertifiedUser + "'",
				"GRANT ALL ON *.* TO " + services.CertifiedUser,
			},
			services.PostgreSQL: {"CREATE ROLE " + services.CertifiedUser + " LOGIN SUPERUSER"},
		}[kind]...)
		u := parse(t, s.secured)
		u.User = url.User(services.CertifiedUser)
		s.secured = u.String()
		reader(t, s.trusting(t, s.files.Root, "sslcert", s.files.Cert, "sslkey", s.files.Key))
		unopened(t, s.trusting(t, s.files.Root), "sslcert")
	})
}

func TestF64AServerThatCannotBeTrustedIsRefusedWithWhatToDoAndNoPassword(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		s := newSecured(t, kind)
		good := s.trusting(t, s.files.Root)
		plain := parse(t, kind.Database(t))
		plain.RawQuery = parse(t, good).RawQuery
		plain.User = url.UserPassword(plain.User.Username(), services.Password)
		for name, test := range map[string]struct{ at, advice string }{
			"another authority":  {s.trusting(t, s.files.Other), "sslrootcert"},
			"another name":       {strings.Replace(good, "localhost", "127.0.0.1", 1), "as its certificate does"},
			"no such file":       {s.trusting(t, s.files.Root+"x"), "no such file"},
			"no certificate":     {s.trusting(t, s.files.Key), "no certificate in PEM"},
			"half a certificate": {s.trusting(t, s.files.Root, "sslcert", s.files.Cert), "sslkey"},
			"another password":   {strings.Replace(good, "sesame", "barley", 1), "user and password"},
			"no TLS there":       {plain.String(), "TLS"},
		} {
			t.Run(name, func(t *testing.T) { unopened(t, test.at, test.advice) })
		}
	})
}

// unopened tells whether a ledger is refused with an advice and without its password.
func unopened(t *testing.T, name, advice string) {
	t.Helper()
	l, err := ledger.OpenShared(context.Background(), name)
	if err == nil {
		t.Fatalf("it is opened: %v", l.Close())
	}
	if !strings.Contains(err.Error(), advice) || strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "barley") {
		t.Errorf("got %v", err)
	}
}
