package httpd_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	aStream       = "GET /v1/campaigns/c HTTP/1.1\r\nHost: h\r\n\r\n" // for a lane
	anotherStream = "GET /elsewhere HTTP/1.1\r\nHost: h\r\n\r\n"      // for net/http
)

// detaches is a handler that takes each connection and passes it on. It answers itself if it may not take it.
func detaches(taken chan<- *httpd.Detached) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Mine"] = []string{"yes"}
		d, err := httpd.Detach(w, []byte("first\n"))
		if errors.Is(err, http.ErrNotSupported) {
			_, _ = io.WriteString(w, "itself")
			return
		}
		if err != nil {
			d = nil
		}
		taken <- d
	}
}

// detach sends a request whose connection the handler takes, and reads the head and the first part of the answer.
func detach(t *testing.T, s *site, taken <-chan *httpd.Detached, text string) (net.Conn, *bufio.Reader, *httpd.Detached) {
	t.Helper()
	c := s.dial()
	send(t, c, text)
	d := stage.Next(t, "the detached connection", taken)
	if d == nil {
		t.Fatal("it was not detached")
	}
	t.Cleanup(d.Close)
	in := bufio.NewReader(c)
	var head strings.Builder // ReadResponse drops Connection
	for line := ""; line != "\r\n"; head.WriteString(line) {
		var err error
		line, err = in.ReadString('\n')
		stage.Must(t, err)
	}
	r, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(head.String()), in)), nil)
	stage.Must(t, err)
	if closes := strings.Contains(head.String(), "\r\nConnection: close\r\n"); !closes || r.StatusCode != 200 || r.Header.Get("X-Mine") != "yes" || r.ContentLength != -1 || r.TransferEncoding != nil {
		t.Errorf("the head is %+v", r)
	}
	body := bufio.NewReader(r.Body)
	wantLine(t, body, "first\n")
	return c, body, d
}

func wantLine(t *testing.T, in *bufio.Reader, want string) {
	t.Helper()
	if line, err := in.ReadString('\n'); line != want || err != nil {
		t.Errorf("it reads %q, %v, and should %q", line, err, want)
	}
}

// detachable are requests whose connections may be taken, from a lane or from net/http.
var detachable = map[string]struct {
	text    string
	noLanes bool
}{
	"in a lane":                     {text: aStream},
	"by net/http":                   {text: anotherStream},
	"without lanes":                 {text: aStream, noLanes: true},
	"HTTP/1.0":                      {text: strings.Replace(aStream, "1.1", "1.0", 1)},
	"with a body":                   {text: httpd.AClaim},
	"with a body for net/http":      {text: strings.Replace(httpd.AClaim, "claims", "elsewhere", 1)},
	"with a request behind it":      {text: aStream + aStream},
	"with a request behind, by net": {text: anotherStream + anotherStream},
	"with half a request behind it": {text: aStream + "GET /v1"},
}

// TestADetachedConnectionIsTheHandlersAlone checks that later bytes of the client are discarded and not answered, that sent parts arrive, and that
// each side notices the other's end.
func TestADetachedConnectionIsTheHandlersAlone(t *testing.T) {
	for name, a := range detachable {
		t.Run(name, func(t *testing.T) {
			taken := make(chan *httpd.Detached, 2)
			in := config(detaches(taken))
			if a.noLanes {
				in.Short = nil
			}
			s := openPort(t, in)
			c, body, d := detach(t, s, taken, a.text)
			send(t, c, aStream)
			if d.Gone() {
				t.Error("a client that is here is taken for gone")
			}
			stage.Must(t, d.Send([]byte("second\n")))
			wantLine(t, body, "second\n")
			stage.Must(t, c.(*net.TCPConn).CloseWrite())
			stage.Await(t, "the client's end", true, d.Gone)
			d.Close()
			if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
				t.Errorf("behind it come %q, %v", rest, err)
			}
			if len(taken) > 0 {
				t.Error("a request behind it was answered")
			}
			send(t, s.dial(), aStream) // the server goes on
			stage.Next(t, "the next detached connection", taken).Close()
		})
	}
}

// TestWhereNothingCanBeDetachedTheHandlerAnswersItself also checks that the connection still works.
func TestWhereNothingCanBeDetachedTheHandlerAnswersItself(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run("TLS "+proto, func(t *testing.T) {
			s := openTLS(t, config(detaches(nil)))
			if proto == "HTTP/1.1" {
				s.transport.ForceAttemptHTTP2 = false
				s.transport.Protocols = new(http.Protocols)
				s.transport.Protocols.SetHTTP1(true)
				s.transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
			}
			for range 2 {
				r, err := (&http.Client{Transport: s.transport}).Get("https://" + s.address + "/v1/campaigns/c")
				stage.Must(t, err)
				text, err := io.ReadAll(r.Body)
				stage.Must(t, err)
				_ = r.Body.Close()
				if string(text) != "itself" || r.Proto != proto {
					t.Errorf("it is answered %q by %s", text, r.Proto)
				}
			}
		})
	}
	for name, text := range map[string]string{"a pipe in a lane": aStream, "a pipe by net/http": anotherStream} {
		t.Run(name, func(t *testing.T) {
			c := open(t, config(detaches(nil))).dial()
			in := bufio.NewReader(c)
			for range 2 {
				send(t, c, text)
				r, err := http.ReadResponse(in, nil)
				stage.Must(t, err)
				if body, err := io.ReadAll(r.Body); string(body) != "itself" || err != nil {
					t.Errorf("it is answered %q, %v", body, err)
				}
				_ = r.Body.Close()
			}
			_ = c.Close()
		})
	}
}

// TestADetachedConnectionOutlivesTheServersStop checks that the server neither waits for it nor closes it.
func TestADetachedConnectionOutlivesTheServersStop(t *testing.T) {
	for _, text := range []string{aStream, anotherStream} {
		taken := make(chan *httpd.Detached, 1)
		s := openPort(t, config(detaches(taken)))
		_, body, d := detach(t, s, taken, text)
		s.stop()
		if err := stage.Next(t, "the server's end", s.end); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		stage.Must(t, d.Send([]byte("goodbye\n")))
		wantLine(t, body, "goodbye\n")
		d.Close()
		if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
			t.Errorf("behind it come %q, %v", rest, err)
		}
	}
}

// TestADetachedConnectionHasNoDeadline waits past the deadline of the previous answer.
func TestADetachedConnectionHasNoDeadline(t *testing.T) {
	const write = 500 * time.Millisecond
	for _, text := range []string{aStream, anotherStream} {
		taken := make(chan *httpd.Detached, 1)
		takes := detaches(taken)
		in := config(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				takes(w, r)
			}
		})
		in.WriteTimeout = write
		s := openPort(t, in)
		c := s.dial()
		ask(t, c, httpd.AClaim) // sets the deadline of an answer
		send(t, c, text)
		d := stage.Next(t, "the detached connection", taken)
		began := time.Now()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		for time.Since(began) < 2*write {
			if err := d.Send([]byte(".")); err != nil && !errors.Is(err, httpd.ErrSlow) {
				t.Fatalf("after %v it ends with %v", time.Since(began), err)
			}
		}
		d.Close()
	}
}

// TestWhoDoesNotReadADetachedConnectionIsSlow checks that sending never blocks, and that parts sent before arrive whole.
func TestWhoDoesNotReadADetachedConnectionIsSlow(t *testing.T) {
	taken := make(chan *httpd.Detached, 1)
	s := openPort(t, config(detaches(taken)))
	_, body, d := detach(t, s, taken, aStream)
	part := []byte(strings.Repeat("x", 1<<10-1) + "\n")
	var whole int
	for err := error(nil); err == nil; whole++ {
		err = d.Send(part)
		if err != nil && !errors.Is(err, httpd.ErrSlow) {
			t.Fatalf("it ends with %v", err)
		}
	}
	d.Close()
	rest, err := io.ReadAll(body)
	stage.Must(t, err)
	if got := len(rest) / len(part); got != whole-1 {
		t.Errorf("%d parts arrived whole, and %d were sent", got, whole-1)
	}
}

// TestADetachedConnectionTakesNoRoomAmongTheOthers also checks that it frees its own room once.
func TestADetachedConnectionTakesNoRoomAmongTheOthers(t *testing.T) {
	const room = 2
	taken := make(chan *httpd.Detached, 1)
	in := config(detaches(taken))
	in.MaxConnections = room
	s := openPort(t, in)
	var all []*httpd.Detached
	for n := range 5 * room {
		_, _, d := detach(t, s, taken, []string{aStream, anotherStream}[n%2])
		all = append(all, d)
	}
	if open, evicted, shed := s.Connections(); open != 0 || evicted != 0 || shed != 0 || s.DetachedNow() != 5*room {
		t.Errorf("%d connections are open, %d were evicted, %d shed, %d are detached", open, evicted, shed, s.DetachedNow())
	}
	for _, d := range all {
		stage.Must(t, d.Send([]byte("still here\n")))
		d.Close()
		d.Close()
	}
	if n := s.DetachedNow(); n != 0 {
		t.Errorf("%d are detached at the end", n)
	}
}
