package services

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// A port is a loopback port that no other server of a test gets before it is released,
// whichever process the test is of: also while nobody listens there, because the server has
// not started yet, or is to start again. A nil one is none.
type port struct {
	number int
	taken  net.Listener // at its name in the abstract namespace of Linux; ends with the process
}

// takePort takes a port on which nobody listens. It is below those that the system
// gives to clients (from 32768 on): one of them could take the port while the server
// is down, or connect to itself there. So is the port 10,000 above, at which masters of a
// Redis Cluster listen to each other; none of those is ever taken.
func takePort() (*port, error) {
	var err error
	for range 100 {
		p := &port{number: 15000 + rand.IntN(22768-15000)}
		if p.taken, err = net.Listen("unix", "@firstcome-test-port-"+p.String()); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", p.String())); err == nil {
			return p, l.Close()
		}
		p.release()
	}
	return nil, fmt.Errorf("no free port: %w", err)
}

// portFor takes a port that is released when t ends, after all that is made for t later.
func portFor(t testing.TB) int {
	t.Helper()
	p, err := takePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return p.number
}

func (p *port) String() string { return strconv.Itoa(p.number) }

// release lets others have the port. It may be called again.
func (p *port) release() {
	if p != nil {
		_ = p.taken.Close() // fails only if it was released
	}
}
