//go:build linux && !check

package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Types and flags of HTTP/2 frames (RFC 9113).
const (
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	endOfRequest  = 1 | 4 // END_STREAM and END_HEADERS
	codeCancel    = 8
)

// frame appends a frame to b.
func frame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// resetRapidly begins requests on one connection and cancels each at once, until
// the server cuts the connection or so many were sent, and returns how many.
func resetRapidly(ctx context.Context, address string, trust *x509.CertPool, most int) (sent int, err error) {
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: trust, NextProtos: []string{"h2"}}}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	conn := c.(*tls.Conn)
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(over)
	}()
	defer func() {
		_ = conn.CloseWrite() // the server has also read everything when it closes
		<-over
		_ = conn.Close()
	}()
	begin := frame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameSettings, 0, 0, nil)
	if _, err := conn.Write(begin); err != nil {
		return 0, err
	}
	// GET, https, /, and an authority: indexes of HPACK's static table (RFC 7541).
	headers := []byte{0x82, 0x87, 0x84, 0x01, 1, 'x'}
	cancel := binary.BigEndian.AppendUint32(nil, codeCancel)
	var b []byte
	for ; sent < most; sent += 100 {
		b = b[:0]
		for n := range 100 {
			stream := uint32(2*(sent+n) + 1)
			b = frame(frame(b, frameHeaders, endOfRequest, stream, headers), frameReset, 0, stream, cancel)
		}
		if _, err := conn.Write(b); err != nil {
			return sent, nil // it was cut
		}
	}
	return sent, nil
}

// TestF30RapidResetsKeepNobodyOut has clients claim while others begin requests
// by HTTP/2 and cancel them at once, which costs those next to nothing. The server
// cuts each of their connections after some hundred; they come back.
func TestF30RapidResetsKeepNobodyOut(t *testing.T) {
	rapidResets(t, 4)
}

// rapidResets has each attacker come so often.
func rapidResets(t *testing.T, conns int) {
	const clients, attackers, resets, residentLimit = 4, 4, 10_000, 512 << 20
	cert, key, trust := certify(t)
	p := serve(t, launch{args: append(patient, "--tls-cert", cert, "--tls-key", key)})
	p.secure(trust)
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	var hostile sync.WaitGroup
	var sent atomic.Int64
	stop := crowd.claimUntil(p, clients)
	defer stop()
	crowd.awaitAnswers(t, 100)
	for range attackers {
		hostile.Go(func() {
			for range conns {
				n, err := resetRapidly(t.Context(), strings.TrimPrefix(p.url, "https://"), trust, resets)
				if err != nil {
					t.Error(err)
				}
				sent.Add(int64(n))
			}
		})
	}
	crowd.awaitAnswers(t, 100)
	hostile.Wait()
	crowd.awaitAnswers(t, 100)
	stop()
	answers, _, _ := crowd.answered()
	resident := p.mostResident(residentLimit)
	t.Logf("%d requests were cancelled, %d healthy claims answered, at most %d MiB resident", sent.Load(), answers, resident>>20)
	p.audit()
	p.stop()
}
