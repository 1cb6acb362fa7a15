package httpd

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrSlow means that a client does not read what it is sent.
var ErrSlow = errors.New("the client does not read what it is sent")

// A Detached is a connection that a handler took from the server, to send an answer without an end. It has neither a goroutine nor a buffer of its
// own: thousands of them cost little, and one goroutine can write to all of them. Only one goroutine at a time may use it.
type Detached struct {
	conn   *conn
	raw    syscall.RawConn
	closed atomic.Bool
}

const (
	// sendBuffer is the least that the kernel buffers of what a client has not read: minutes of events, or the largest one. The kernel reserves twice
	// as much.
	sendBuffer = 32 << 10
	// unheard is how long the client's machine may leave sent bytes unconfirmed.
	unheard = 30 * time.Second
)

// Detach takes the connection of a request from the server, and sends the head of an answer with the handler's headers and status 200, and the first
// part of its body. The handler must then return without writing. The error is http.ErrNotSupported if the handler must answer itself: with TLS, with
// HTTP/2, and on systems other than Unix.
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
	// Remove the deadlines of the lane or net/http.
	if err := errors.Join(tcp.SetDeadline(time.Time{}), tcp.SetWriteBuffer(sendBuffer), giveUpUnheard(d.raw, unheard)); err != nil {
		return err
	}
	header["Connection"] = closing // the end of the connection ends the answer
	return d.Send(append(appendHead(nil, http.StatusOK, header, time.Now(), -1), first...))
}

// Send sends a part without blocking, or returns an error. After an error only Close may be called.
func (d *Detached) Send(part []byte) error {
	n, err := writeNow(d.raw, part)
	if err == nil && n < len(part) {
		return ErrSlow
	}
	return err
}

// Gone reports whether the client has closed the connection, even in one direction only. It discards bytes that the client has sent.
func (d *Detached) Gone() bool { return hasEnded(d.raw) }

// Close ends the connection, and frees its room. Closing again does nothing. A client that keeps reading gets all that was sent.
func (d *Detached) Close() {
	if !d.closed.Swap(true) {
		d.conn.in.detached.Add(-1)
		_ = d.conn.Conn.Close()
	}
}

// A detacher is a ResponseWriter whose connection a handler may take.
type detacher interface {
	connection() *conn // nil if the handler may not take it
	detach() error
}

// detacherOf returns the detacher that a ResponseWriter wraps, or nil.
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

// DetachedRoom returns how many connections may be detached at once: most, but no more than two thirds of what the file descriptors allow.
func DetachedRoom(most int) int { return max(1, min(most, (descriptors()-reservedDescriptors)/3*2)) }
