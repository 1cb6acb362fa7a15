package httpd

import (
	"net"
	"testing"
)

// DetachedNow returns how many connections are detached.
func (s *Server) DetachedNow() int64 { return s.conns.detached.Load() }

func TestDetachedConnectionsLeaveDescriptorsToTheOthers(t *testing.T) {
	all := descriptors()
	for wanted, want := range map[int]int{-1: 1, 0: 1, 1: 1, 5: 5, all: (all - reservedDescriptors) / 3 * 2} {
		if got := DetachedRoom(wanted); got != want {
			t.Errorf("of %d that are wanted, %d may be detached, and should %d", wanted, got, want)
		}
	}
}

// TestDetachedConnectionsTakeOfTheRoomThatTheDescriptorsLeave detaches three connections while the descriptors allow four.
func TestDetachedConnectionsTakeOfTheRoomThatTheDescriptorsLeave(t *testing.T) {
	c := &conns{most: 4, room: 4, open: map[*conn]struct{}{}}
	add := func() *conn {
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		added, ok := c.add(here)
		if !ok {
			t.Fatal("a connection was turned away")
		}
		return added
	}
	for range 3 {
		c.letGo(add())
	}
	add()
	if c.evicted.Load() != 0 {
		t.Error("one was evicted though there was room")
	}
	add()
	if len(c.open) != 1 || c.evicted.Load() != 1 {
		t.Errorf("%d are open, and %d were evicted", len(c.open), c.evicted.Load())
	}
}
