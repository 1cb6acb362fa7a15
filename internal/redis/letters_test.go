package redis_test

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
)

// TestASettlingMovesNoMoreBytesWhenManyDeadLettersAreOpen has somebody listen and wait
// meanwhile.
func TestASettlingMovesNoMoreBytesWhenManyDeadLettersAreOpen(t *testing.T) {
	s := newShop(t, services.Redis.Server(t).URL(), firstcome.Unlimited)
	heard := make(chan flow.Settled, 10)
	watch(t, s.gate, func(_ firstcome.CampaignID, settled flow.Settled) { heard <- settled })
	letter := int64(1)
	settle := func(letters int64) {
		t.Helper()
		settled := flow.Settled{Through: 100_000 + letter, Order: letter + 1, Since: letter, Epoch: 1}
		if letter == 1 {
			settled.Since = 0
		}
		for range letters {
			settled.Unrecorded = append(settled.Unrecorded, 100_000+letter)
			letter++
		}
		settled.Order = letter
		if err := s.gate.Settle(t.Context(), "c", settled); err != nil {
			t.Fatal(err)
		}
		<-heard
	}
	work := func() int64 {
		t.Helper()
		before := s.moved()
		for range 5 {
			settle(1)
			if _, err := s.gate.SettledThrough(t.Context(), "c", []int64{1, 100_001}); err != nil {
				t.Fatal(err)
			}
		}
		return s.moved() - before
	}
	settle(200) // more than a message holds
	few := work()
	settle(20_000)
	many := work()
	// The client says now and then that it is there, and numbers have as many digits.
	if many > few+500 {
		t.Errorf("%d bytes with 200 dead letters, %d with 20,000", few, many)
	}
}

// moved returns the bytes that Redis has read and written.
func (s *shop) moved() (bytes int64) {
	s.t.Helper()
	text, err := s.do("INFO", "stats").ToString()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "total_net_input_bytes" || name == "total_net_output_bytes" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			bytes += n
		}
	}
	return bytes
}

// TestADeadLetterIsNotTakenAsRecordedWhereRedisGoesBackWhileItIsRead empties Redis, or takes
// it back, between what is read of it.
func TestADeadLetterIsNotTakenAsRecordedWhereRedisGoesBackWhileItIsRead(t *testing.T) {
	for name, back := range map[string][]string{
		"emptied": {"DEL", keysOf[0], keysOf[1], keysOf[2], keysOf[3]},
		"stale":   {"EVAL", "redis.call('DEL', KEYS[2]) return redis.call('HSET', KEYS[1], 'settled', 0, 'letters_order', 0)", "2", keysOf[0], keysOf[3]},
	} {
		t.Run(name, func(t *testing.T) {
			url := services.Redis.Database(t)
			s := newShop(t, url, firstcome.Unlimited)
			s.issue(0, 2)
			if err := s.gate.Settle(t.Context(), "c", flow.Settled{Through: 2, Order: 1, Unrecorded: []int64{2}, Epoch: 1}); err != nil {
				t.Fatal(err)
			}
			behind := open(t, before(t, url, "SMISMEMBER", func() { s.do(back...) }))
			if got, err := behind.SettledThrough(t.Context(), "c", []int64{1, 2}); err == nil {
				t.Errorf("it was read as %+v", got)
			}
		})
	}
}

// before returns the URL of a Redis through which something is done before a command is passed on.
func before(t *testing.T, at, command string, do func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	pass := func(to, from net.Conn, each func([]byte)) {
		defer to.Close()
		defer from.Close()
		part := make([]byte, 64<<10)
		for {
			n, err := from.Read(part)
			each(part[:n])
			if _, failed := to.Write(part[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address(t, at))
			if err != nil {
				_ = client.Close()
				return
			}
			all.Go(func() {
				pass(server, client, func(part []byte) {
					if bytes.Contains(part, []byte(command)) {
						do()
					}
				})
			})
			all.Go(func() { pass(client, server, func([]byte) {}) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return strings.Replace(at, address(t, at), listener.Addr().String(), 1)
}
