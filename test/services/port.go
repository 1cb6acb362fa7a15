package services

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A port is a loopback port that no other server of any test process gets before the port is released. This
// also holds while nobody listens on the port, because the server has not started yet or is about to restart.
// A nil *port is no port.
type port struct {
	number int
	taken  net.Listener // listens on the port's name in Linux's abstract namespace; ends with the process
}

// takePort takes a port on which nobody listens. The port is below those that the system gives to clients
// (from 32768 on): a client could take the port while the server is down, or connect to itself there. The
// port 10,000 above it, on which a master of a Redis Cluster listens for the other masters, is below 32768,
// too, and takePort takes no port in that range.
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

// Address returns an address of the loopback whose port no other server of any test process gets before this process ends.
func Address() (string, error) {
	p, err := takePort()
	if err != nil {
		return "", err
	}
	kept.Store(p, true)
	return net.JoinHostPort("127.0.0.1", p.String()), nil
}

// kept are the ports of Address: one that nobody refers to any more would be released.
var kept sync.Map

// portFor takes a port that is released when t ends, after the cleanups that t registers later.
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

// release gives the port up. It may be called again.
func (p *port) release() {
	if p != nil {
		_ = p.taken.Close() // fails only if it was released before
	}
}
