package httpd

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrSlow says that a client does not read what it is sent.
var ErrSlow = errors.New("the client does not read what it is sent")

// A Detached is a connection that a handler took from the server, to send parts of an answer that has no end. It has neither
// a goroutine nor a buffer of its own, so that thousands of them cost little and one goroutine writes to all. It is for
// one goroutine at a time.
type Detached struct {
	conn   *conn
	raw    syscall.RawConn
	closed atomic.Bool
}

const (
	// sendBuffer is what the kernel keeps of what a client has not read, at least: minutes of events, or the largest one. The
	// kernel takes twice as much.
	sendBuffer = 32 << 10
	// unheard is how long what was sent may go without the client's machine confirming it.
	unheard = 30 * time.Second
)

// Detach takes the connection of a request that is being answered from the server, and sends the head of an answer with the
// handler's headers and status 200, and the first part of its body. The handler returns without writing. The error is
// http.ErrNotSupported where the handler has to answer itself: behind TLS, with HTTP/2, and on other systems than Unix.
func Detach(w http.ResponseWriter, first []byte) (*Detached, error) {
	d := detacherOf(w)
	if d == nil {
		return nil, http.ErrNotSupported
	}
	c := d.connection()
	if c == nil {
		return nil, http.ErrNotSupported
	}
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok || !Detaches {
		return nil, http.ErrNotSupported
	}
	if err := d.detach(); err != nil {
		return nil, err
	}
	c.in.letGo(c)
	t := &Detached{conn: c}
	if err := t.begin(tcp, w.Header(), first); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// begin sends the head and the first part.
func (d *Detached) begin(tcp *net.TCPConn, header http.Header, first []byte) error {
	var err error
	if d.raw, err = tcp.SyscallConn(); err != nil {
		return err
	}
	// Deadlines are the lane's or net/http's.
	if err := errors.Join(tcp.SetDeadline(time.Time{}), tcp.SetWriteBuffer(sendBuffer), giveUpUnheard(d.raw, unheard)); err != nil {
		return err
	}
	header["Connection"] = closing // the answer ends with the connection
	return d.Send(append(appendHead(nil, http.StatusOK, header, time.Now(), -1), first...))
}

// Send sends a part at once, or returns an error: then the connection is of no use any more, but for Close. It never waits.
func (d *Detached) Send(part []byte) error {
	n, err := writeNow(d.raw, part)
	if err == nil && n < len(part) {
		return ErrSlow
	}
	return err
}

// Gone tells whether the client has closed the connection, also in its direction only. It drops what the client has sent.
func (d *Detached) Gone() bool { return hasEnded(d.raw) }

// Close ends the connection and gives its room back. Closing again does nothing. What was sent reaches a client that
// reads.
func (d *Detached) Close() {
	if !d.closed.Swap(true) {
		d.conn.in.detached.Add(-1)
		_ = d.conn.Conn.Close()
	}
}

// A detacher is a ResponseWriter whose connection a handler may take.
type detacher interface {
	connection() *conn // nil: it may not
	detach() error
}

// detacherOf returns the detacher beneath a ResponseWriter, or nil.
func detacherOf(w http.ResponseWriter) detacher {
	for {
		switch v := w.(type) {
		case detacher:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return nil
		}
	}
}

func (r *reply) connection() *conn { return r.conn }

func (r *reply) detach() error {
	r.detached = true
	return nil
}

func (a *attended) connection() *conn {
	if a.request.TLS != nil || a.request.ProtoMajor != 1 {
		return nil
	}
	return a.conn
}

func (a *attended) detach() error {
	_, _, err := http.NewResponseController(a.ResponseWriter).Hijack()
	return err
}

// DetachedRoom returns how many connections may be detached at once if as many as most are wanted: at most two
// thirds of what the file descriptors allow.
func DetachedRoom(most int) int { return max(1, min(most, (descriptors()-reservedDescriptors)/3*2)) }
