//go:build linux && !check

package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// certify makes a certificate for 127.0.0.1. It returns its file, its key's file,
// and a TLS configuration that trusts it.
func certify(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stage.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	stage.Must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	stage.Must(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	trust = x509.NewCertPool()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	trust.AppendCertsFromPEM(certificate)
	for file, text := range map[string][]byte{cert: certificate, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})} {
		stage.Must(t, os.WriteFile(file, text, 0o600))
	}
	return cert, key, trust
}

// holdLock takes SQLite's write lock from a server, and returns a function that gives it back.
func holdLock(t *testing.T, file string) (release func()) {
	t.Helper()
	conn, err := services.Beside(t, file).Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	}
	stage.Must(t, err)
	release = sync.OnceFunc(func() {
		_, _ = conn.ExecContext(context.Background(), `ROLLBACK`)
		_ = conn.Close()
	})
	t.Cleanup(release)
	return release
}

// A flood sends requests by HTTP/2, a hundred at once on each connection. So tens of thousands
// can wait on few connections.
type flood struct {
	clients []*http.Client
	next    atomic.Int64

	issued, told, wrong atomic.Int64 // answers: 201; 503 with Retry-After; others
}

// newFlood returns a flood whose connections are made.
func newFlood(p *process, conns int, trust *x509.CertPool) *flood {
	p.t.Helper()
	f := &flood{}
	for range conns {
		transport := &http.Transport{ForceAttemptHTTP2: true, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{RootCAs: trust}}
		p.t.Cleanup(transport.CloseIdleConnections)
		c := &http.Client{Transport: transport}
		f.clients = append(f.clients, c)
		answer, err := c.Get(p.url + "/livez")
		stage.Must(p.t, err)
		_ = answer.Body.Close()
	}
	return f
}

// run sends the requests, each for a new user, with as many at once on each
// connection. It returns when all are answered.
func (f *flood) run(ctx context.Context, url string, requests int64, atOnce int) {
	var all sync.WaitGroup
	for _, c := range f.clients {
		for range atOnce {
			all.Go(func() {
				for n := f.next.Add(1); n <= requests; n = f.next.Add(1) {
					f.claim(ctx, c, url, n)
				}
			})
		}
	}
	all.Wait()
}

func (f *flood) claim(ctx context.Context, c *http.Client, url string, n int64) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"user_id":"user-%d"}`, n)))
	if err != nil {
		f.wrong.Add(1)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		f.wrong.Add(1)
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	switch {
	case answer.StatusCode == http.StatusCreated:
		f.issued.Add(1)
	case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "":
		f.told.Add(1)
	default:
		f.wrong.Add(1)
	}
}

// TestF34WhoFindsAFullQueueIsToldAndAllWhoWaitedAreAnswered has four times as many requests as may wait. In a soak they are 50,000.
func TestF34WhoFindsAFullQueueIsToldAndAllWhoWaitedAreAnswered(t *testing.T) {
	stalledWriter{requests: 4000, waiting: 1024, conns: 25, residentLimit: 256 << 20}.keepsItsBounds(t)
}

// A stalledWriter is a server whose writer stands still while requests come over so many connections.
type stalledWriter struct {
	requests, waiting int64
	conns             int
	residentLimit     int64
}

// keepsItsBounds stalls the writer by holding SQLite's write lock while the requests come. As many as the limit allows wait, and the
// rest are told to come again. When the test releases the lock, all that waited are answered. A machine that takes longer than SQLite
// waits for its lock, 5 s, tells a batch every 5 s that its outcome is unknown.
func (w stalledWriter) keepsItsBounds(t *testing.T) {
	const (
		atOnce = 80
		batch  = gate.DefaultBatch
	)
	cert, key, trust := certify(t)
	p := serve(t, launch{
		env:  []string{fmt.Sprintf("GOMEMLIMIT=%d", w.residentLimit/2)},
		args: append(patient, "--max-waiting", fmt.Sprint(w.waiting), "--tls-cert", cert, "--tls-key", key),
	})
	p.secure(trust)
	p.create("spring", 10_000_000)
	f := newFlood(p, w.conns, trust)
	release := holdLock(t, p.ledger())
	ended := make(chan struct{})
	go func() {
		f.run(t.Context(), p.url+"/v1/campaigns/spring/claims", w.requests, atOnce)
		close(ended)
	}()
	waitFor(t, "the queue to be full, and the rest to be told", func() bool {
		return f.next.Load() >= w.requests && f.told.Load() >= w.requests-w.waiting-2*batch
	})
	if now := p.metric("firstcome_waiting_claims"); now > float64(w.waiting+batch) {
		t.Errorf("%v claims wait, at most %d may", now, w.waiting+batch)
	}
	release()
	<-ended
	resident := p.mostResident(w.residentLimit)
	t.Logf("%d issued, %d told to come again, at most %d MiB resident", f.issued.Load(), f.told.Load(), resident>>20)
	if f.wrong.Load() > 0 || f.issued.Load()+f.told.Load() != w.requests || f.issued.Load() == 0 {
		t.Errorf("of %d requests %d were issued, %d were told to come again, %d got something else", w.requests, f.issued.Load(), f.told.Load(), f.wrong.Load())
	}
	p.audit()
}
