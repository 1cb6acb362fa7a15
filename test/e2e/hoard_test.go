//go:build linux && !check

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

// roomy starts what follows with as many open files as so many connections and the
// rest of a server need, or as many as the hard limit allows: only a capability
// goes above it.
func roomy(connections int) []string {
	const rest = 1000
	return []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d 2>/dev/null || ulimit -n "$(ulimit -Hn)"; exec "$@"`, connections+rest), "sh"}
}

func TestF17FewFileDescriptorsShedButDoNotDeadlock(t *testing.T) {
	const descriptors = 100
	p := serve(t, launch{under: []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors), "sh"}})
	p.create("spring", 1000)
	var all []net.Conn
	var dialer net.Dialer
	for range 4 * descriptors {
		c, err := dialer.DialContext(t.Context(), "tcp", p.url[len("http://"):])
		stage.Must(t, err)
		all = append(all, c)
	}
	// While they are open, a claim is answered with an outcome or told to come again.
	if _, err := p.calls.Claim(t.Context(), "spring", "among-hoarders"); err != nil && (isProblem(err) == nil || isProblem(err).Status != http.StatusServiceUnavailable) {
		t.Errorf("among idle connections a claim got %v", err)
	}
	for _, c := range all {
		_ = c.Close()
	}
	waitFor(t, "a claim to be answered again", func() bool {
		_, err := p.calls.Claim(t.Context(), "spring", "afterwards")
		return err == nil
	})
	p.stop()
}

// hoardVariable has a test of this binary hoard connections instead: it is
// HOST:PORT and how many.
const hoardVariable = "E2E_HOARD"

// hoard makes connections that never have a whole request, from several processes,
// since each may have only so many. The caller calls release.
func hoard(t *testing.T, p *process, connections int) (release func()) {
	t.Helper()
	const processes = 2
	var ends []func()
	for n := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", hoardVariable, p.url[len("http://"):], connections/processes, n))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		hold, err := cmd.StdinPipe()
		stage.Must(t, err)
		says, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		stage.Must(t, err)
		ends = append(ends, sync.OnceFunc(func() {
			_ = hold.Close()
			_, _ = io.Copy(io.Discard, says)
			_ = cmd.Wait()
		}))
		t.Cleanup(ends[n])
		var told strings.Builder
		lines := bufio.NewScanner(says)
		for lines.Scan() && lines.Text() != hoarding {
			told.WriteString(lines.Text() + "\n")
		}
		if lines.Text() != hoarding {
			t.Fatalf("a hoarder ended: %s", &told)
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// hoarding is what a hoarder says when it has its connections.
const hoarding = "hoarding"

// hoarder is the process that hoards: a quarter of its connections says nothing,
// one stops within its headers, one before its body, one was answered and holds on. They come from
// several addresses, so that there are ports enough. It ends with its input.
func hoarder(t *testing.T, task string) {
	const dialers = 4
	var address string
	var connections, process int
	if _, err := fmt.Sscan(task, &address, &connections, &process); err != nil {
		t.Fatal(err)
	}
	head := "POST /v1/campaigns/spring/claims HTTP/1.1\r\nHost: localhost\r\n"
	texts := []string{"", head, head + "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"}
	held := make([]net.Conn, connections)
	var all sync.WaitGroup
	for n := range dialers {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(process), byte(2+n))}, Timeout: patience}
		all.Go(func() {
			for k := n; k < connections; k += dialers {
				c, err := from.DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Errorf("connection %d: %v", k, err)
					return
				}
				held[k] = c
				_, _ = c.Write([]byte(texts[k%len(texts)])) // it may have been cut already
			}
		})
	}
	all.Wait()
	if !t.Failed() {
		fmt.Println(hoarding)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	for _, c := range held {
		if c != nil {
			_ = c.Close()
		}
	}
}

// TestF30IdleConnectionsKeepNobodyOut has healthy clients claim while others hoard connections: more than the server has room for, and
// where it may have them all. In a soak they are 20,000.
func TestF30IdleConnectionsKeepNobodyOut(t *testing.T) {
	const connections = 2000
	hoarders{connections: connections, rooms: []int{connections / 8, 2 * connections}}.keepNobodyOut(t)
}

// Hoarders are so many connections that servers with room for so many get.
type hoarders struct {
	connections int
	rooms       []int
	slowest     func(*crowd, span) // looks at the healthy clients, of which none may be cut, if set
}

func (h hoarders) keepNobodyOut(t *testing.T) {
	if task := os.Getenv(hoardVariable); task != "" {
		hoarder(t, task)
		return
	}
	for _, room := range h.rooms {
		t.Run(fmt.Sprintf("%d connections with room for %d", h.connections, room), func(t *testing.T) { h.come(t, room) })
	}
}

func (h hoarders) come(t *testing.T, room int) {
	const clients = 8
	// The 20 KB a connection of docs/operate.md and a quarter more, and what a server
	// has under load.
	residentLimit := int64(room)*25<<10 + 192<<20
	p := serve(t, launch{under: roomy(room), args: append(patient, "--max-connections", strconv.Itoa(room))})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	claims := crowd.claimUntil
	if h.slowest == nil { // with little room a healthy connection may be cut, too, while its client waits for a processor: it asks again
		claims = func(p *process, clients int) func() {
			return (&fleet{t: t, nodes: []*process{p}}).claimUntil(crowd, clients)
		}
	}
	stop := claims(p, clients)
	defer stop()
	crowd.awaitAnswers(t, 100)
	started := time.Since(crowd.start)
	release := hoard(t, p, h.connections)
	// A client that connects only now finds room, too.
	crowd.awaitAnswers(t, 200)
	p.closeIdle()
	waitFor(t, "a new client among the hoarders to be answered", func() bool {
		_, err := crowd.claim(t.Context(), p.calls, crowd.user())
		return err == nil
	})
	stop()
	held := h.connections / 4 // those that were answered: of the others a slow machine may cut some first for their time
	waitFor(t, "connections to be cut for others", func() bool {
		return int(p.metric("firstcome_evicted_connections_total")) >= held-room
	})
	open, evicted, resident := p.metric("firstcome_open_connections"), p.metric("firstcome_evicted_connections_total"), p.mostResident(residentLimit)
	t.Logf("of %d idle connections %v are open and %v were cut; at most %d MiB resident", h.connections, open, evicted, resident>>20)
	if int(open) > room {
		t.Errorf("%v connections are open, and there is room for %d", open, room)
	}
	if h.slowest != nil {
		h.slowest(crowd, span{started, time.Since(crowd.start)})
	}
	crowd.verdict(p)
	release()
	p.stop()
}
