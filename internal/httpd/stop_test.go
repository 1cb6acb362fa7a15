package httpd_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome/internal/httpd"
)

// TestF22AStopAnswersWhatIsOnItsWay has many clients that send head and body apart. A connection with half a head counts as idle, and is closed a
// second after its last request.
func TestF22AStopAnswersWhatIsOnItsWay(t *testing.T) {
	for _, request := range []string{httpd.AClaim, strings.Replace(httpd.AClaim, "claims", "pauses", 1)} {
		head := strings.Index(request, "\r\n\r\n") + 4
		for n, busy := range map[int]bool{0: false, 20: false, head: true, len(request) - 1: true} {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, config(reads("ok")))
				c := s.dial()
				ask(t, c, request)
				synctest.Wait()
				send(t, c, request[:n])
				time.Sleep(time.Second / 2) // synctest's time
				stopped := time.Now()
				s.stop()
				time.Sleep(limits.ShutdownGrace / 2) // synctest's time
				if !busy {
					if err := <-s.end; err != nil || time.Since(stopped) > limits.ShutdownGrace/2 {
						t.Errorf("behind %d bytes it ends after %v in %v", n, time.Since(stopped), err)
					}
					return
				}
				if r := ask(t, c, request[n:]); r.StatusCode != http.StatusOK {
					t.Errorf("behind %d bytes it is answered %v", n, r)
				}
				if err := <-s.end; err != nil || time.Since(stopped) > limits.ShutdownGrace {
					t.Errorf("it ends after %v in %v", time.Since(stopped), err)
				}
			})
		}
	}
}

// TestConnectionsThatNobodyUsesDoNotKeepTheServerFromStopping includes new connections, which net/http alone would not close.
func TestConnectionsThatNobodyUsesDoNotKeepTheServerFromStopping(t *testing.T) {
	for _, routes := range [][]httpd.Route{short, nil} {
		synctest.Test(t, func(t *testing.T) {
			in := config(reads("ok"))
			in.Short = routes
			s := open(t, in)
			unused, used := s.dial(), s.dial()
			if r := ask(t, used, httpd.AClaim); r.Close {
				t.Error("an answer closes before the stop")
			}
			s.stop()
			synctest.Wait()
			if r := ask(t, used, httpd.AClaim); !r.Close {
				t.Error("an answer during the stop does not close")
			}
			if err := <-s.end; err != nil {
				t.Error(err)
			}
			isCut(t, unused)
		})
	}
}

// TestADrainingServersAnswersCloseAndItGoesOnAccepting matters because load balancers need time to see that it is not ready.
func TestADrainingServersAnswersCloseAndItGoesOnAccepting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, config(reads("ok")))
		s.Drain()
		s.Drain()
		for _, text := range []string{httpd.AClaim, aGet} {
			if r := ask(t, s.dial(), text); !r.Close {
				t.Errorf("the answer to %q does not close", text)
			}
		}
	})
}

// TestF22AStopAnswersWhatIsInFlight also checks that new connections are refused at the same time.
func TestF22AStopAnswersWhatIsInFlight(t *testing.T) {
	at, letGo := make(chan struct{}), make(chan struct{})
	s := openPort(t, config(func(http.ResponseWriter, *http.Request) {
		at <- struct{}{}
		<-letGo
	}))
	var busy []net.Conn
	for _, text := range []string{httpd.AClaim, aGet} {
		c := s.dial()
		send(t, c, text)
		<-at
		busy = append(busy, c)
	}
	s.stop()
	for {
		c, err := net.Dial("tcp", s.address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		if err == nil {
			_ = c.Close()
		}
	}
	close(letGo)
	for _, c := range busy {
		if r := answer(t, c); r.StatusCode != http.StatusOK {
			t.Errorf("it is answered %v", r)
		}
	}
	if err := <-s.end; err != nil {
		t.Error(err)
	}
}

// TestF22AStopThatGivesUpARequestSaysSo covers a request in a lane and one in net/http.
func TestF22AStopThatGivesUpARequestSaysSo(t *testing.T) {
	for _, text := range []string{httpd.AClaim, aGet} {
		synctest.Test(t, func(t *testing.T) {
			letGo := make(chan struct{})
			s := open(t, config(func(http.ResponseWriter, *http.Request) { <-letGo }))
			c := s.dial()
			send(t, c, text)
			synctest.Wait()
			began := time.Now()
			s.stop()
			err := <-s.end
			if took := time.Since(began); err == nil || took != limits.ShutdownGrace {
				t.Errorf("it ends after %v in %v", took, err)
			}
			isCut(t, c)
			close(letGo)
		})
	}
}
