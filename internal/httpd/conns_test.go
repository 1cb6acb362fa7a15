package httpd_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/test/stage"
)

// isCut waits until the server has closed a connection.
func isCut(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, c); err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Error("the connection is still open")
		}
	}
}

// reads is a handler that reads the body and answers with a text.
func reads(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, text)
	}
}

func TestF30LargeHeadersAreRefused(t *testing.T) {
	s := openPort(t, config(reads("ok")))
	for size, want := range map[int]int{12 << 10: http.StatusOK, 17 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		if r := ask(t, s.dial(), httpd.With("X-Large: "+strings.Repeat("x", size))); r.StatusCode != want {
			t.Errorf("%d bytes of headers are answered %d", size, r.StatusCode)
		}
	}
}

func TestF30HoardersOfConnectionsMakeRoomForHealthyClients(t *testing.T) {
	const room = 50
	in := config(reads("ok"))
	in.MaxConnections = room
	s := openPort(t, in)
	var hoard []net.Conn
	for n := range 10 * room {
		hoard = append(hoard, s.dial())
		if n%2 == 0 { // half of them send a request and then hold on
			send(t, hoard[n], httpd.AClaim)
		}
		if n%room == 0 {
			ask(t, s.dial(), httpd.AClaim)
		}
	}
	ask(t, s.dial(), httpd.AClaim)
	isCut(t, hoard[0])
	isCut(t, hoard[1])
	if open, evicted, shed := s.Connections(); open > room || evicted == 0 || shed > 0 {
		t.Errorf("%d connections are open, %d were evicted, %d shed", open, evicted, shed)
	}
}

// TestF17WhereEveryConnectionIsBusyTheNextIsTurnedAwayAndTheRestRecovers covers connections in lanes and in net/http.
func TestF17WhereEveryConnectionIsBusyTheNextIsTurnedAwayAndTheRestRecovers(t *testing.T) {
	const room = 4
	at, letGo := make(chan struct{}, room), make(chan struct{})
	in := config(func(http.ResponseWriter, *http.Request) {
		at <- struct{}{}
		<-letGo
	})
	in.MaxConnections = room
	s := openPort(t, in)
	busy := make([]net.Conn, room)
	for n := range busy {
		busy[n] = s.dial()
		send(t, busy[n], []string{httpd.AClaim, aGet}[n%2])
		<-at
	}
	if r := answer(t, s.dial()); r.StatusCode != 503 || r.Header.Get("Retry-After") != "2" || !r.Close {
		t.Errorf("one more is answered %v", r)
	}
	if _, _, shed := s.Connections(); shed != 1 {
		t.Errorf("%d were turned away", shed)
	}
	close(letGo)
	for _, c := range busy {
		if r := answer(t, c); r.StatusCode != 200 {
			t.Errorf("a busy connection is answered %v", r)
		}
	}
	ask(t, s.dial(), httpd.AClaim)
}

// The parts of a claim that a hoarder sends.
const (
	claimHead  = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"
	claimBody  = `{"user_id":"u"}`
	claimChunk = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{"
)

// TestServeSpeaksHTTP2OverTLS has no lanes.
func TestServeSpeaksHTTP2OverTLS(t *testing.T) {
	lanes := 0
	s := openTLS(t, config(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context().Value(http.ServerContextKey) == nil {
			lanes++
		}
	}))
	for range 3 {
		r, err := (&http.Client{Transport: s.transport}).Post("https://"+s.address+"/v1/campaigns/c/claims", "", strings.NewReader("x"))
		if err != nil || r.ProtoMajor != 2 {
			t.Fatalf("it answers %v, %v", r, err)
		}
		_ = r.Body.Close()
	}
	if lanes > 0 {
		t.Errorf("%d requests were answered in a lane", lanes)
	}
}

// TestTwoServersMayHaveOneTLSConfig serves twice with one configuration, as an API and a console with an address of its own do. net/http writes
// protocols into the configuration that it gets.
func TestTwoServersMayHaveOneTLSConfig(t *testing.T) {
	lender := httptest.NewUnstartedServer(nil) // for its certificate
	lender.StartTLS()
	defer lender.Close()
	shared := &tls.Config{Certificates: lender.TLS.Certificates}
	in := config(func(http.ResponseWriter, *http.Request) {})
	for _, s := range []*site{openPortWith(t, in, shared), openPortWith(t, in, shared)} {
		r, err := lender.Client().Get("https://" + s.address)
		stage.Must(t, err)
		_ = r.Body.Close()
	}
	if len(shared.NextProtos) > 0 {
		t.Errorf("the config that both have says %v now", shared.NextProtos)
	}
}

// TestARequestMayTakeLongerByWait has a handler that waits longer than Read and Write allow.
func TestARequestMayTakeLongerByWait(t *testing.T) {
	for _, text := range []string{httpd.AClaim, aGet} {
		synctest.Test(t, func(t *testing.T) {
			in := config(func(http.ResponseWriter, *http.Request) { time.Sleep(limits.ReadTimeout + limits.WriteTimeout) }) // synctest's time
			in.HandlerWait = time.Hour
			ask(t, open(t, in).dial(), text)
		})
	}
}
