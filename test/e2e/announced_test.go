//go:build linux && !check

package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The other types of HTTP/2 frames (RFC 9113) that a test sends.
const (
	frameData = 0
	framePing = 6
	ack       = 1
)

// announce begins claims on one connection, each with a body of 64 KiB of which one byte comes, and
// returns when the server has read all of that. The caller closes the connection.
func announce(ctx context.Context, address string, trust *x509.CertPool, claims int) (io.Closer, error) {
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: trust, NextProtos: []string{"h2"}}}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	b := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameSettings, 0, 0, nil)
	// POST, https, a path, an authority, a length and a type: HPACK's static table (RFC 7541) and literals.
	const path = "/v1/campaigns/spring/claims"
	headers := "\x83\x87\x04" + string(byte(len(path))) + path + "\x01\x09localhost" + "\x0f\x0d\x0565536" + "\x0f\x10\x10application/json"
	for n := range claims {
		stream := uint32(2*n + 1)
		b = frame(frame(b, frameHeaders, 4, stream, []byte(headers)), frameData, 0, stream, []byte("{"))
	}
	if _, err := c.Write(frame(b, framePing, 0, 0, make([]byte, 8))); err != nil {
		return c, err
	}
	return c, awaitPing(bufio.NewReader(c))
}

// awaitPing reads frames until the answer to a ping comes.
func awaitPing(r *bufio.Reader) error {
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		if _, err := r.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
			return err
		}
		if head[3] == framePing && head[4]&ack != 0 {
			return nil
		}
	}
}

// TestF29BodiesThatAreAnnouncedAndDoNotComeTakeNoMemory has 6,000 claims announce 64 KiB each. Together that
// would be 375 MiB.
func TestF29BodiesThatAreAnnouncedAndDoNotComeTakeNoMemory(t *testing.T) {
	const conns, claims, residentLimit = 60, 100, 256 << 20
	cert, key, trust := certify(t)
	p := serve(t, launch{args: []string{"--tls-cert", cert, "--tls-key", key}})
	p.secure(trust)
	p.create("spring", 10)
	for range conns {
		c, err := announce(t.Context(), strings.TrimPrefix(p.url, "https://"), trust, claims)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range 2 { // by then the claims before are at their bodies
		if answer, text := p.ask(http.MethodGet, p.url+"/v1/campaigns/spring", ""); answer.StatusCode != http.StatusOK {
			t.Errorf("beside them a client gets %s %s", answer.Status, text)
		}
	}
	t.Logf("at most %d MiB resident", p.mostResident(residentLimit)>>20)
}
