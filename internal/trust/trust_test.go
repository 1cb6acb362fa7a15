package trust_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/trust"
)

func TestEachFailureOfTLSHasItsAdvice(t *testing.T) {
	for _, test := range []struct {
		err    error
		advice string
	}{
		{x509.UnknownAuthorityError{}, "sslrootcert"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "redis"}, "as its certificate does"},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "renew"},
		{tls.RecordHeaderError{}, "does not speak TLS"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "sslcert and sslkey"},
		{&net.OpError{Op: "read", Err: io.EOF}, ""},
		{io.EOF, ""},
	} {
		got := trust.Advice(fmt.Errorf("dial: %w", test.err))
		if test.advice == "" && got != "" || !strings.Contains(got, test.advice) {
			t.Errorf("%T: the advice is %q", test.err, got)
		}
	}
}
