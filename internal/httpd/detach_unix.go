//go:build unix

package httpd

import (
	"errors"
	"syscall"
)

// Detaches reports whether connections can be detached on this system.
const Detaches = true

// writeNow writes as much as the kernel takes without blocking.
func writeNow(raw syscall.RawConn, part []byte) (written int, err error) {
	over := raw.Write(func(fd uintptr) bool {
		for written < len(part) && err == nil {
			var n int
			if n, err = syscall.Write(int(fd), part[written:]); n > 0 {
				written += n
			}
			if errors.Is(err, syscall.EINTR) {
				err = nil
			}
		}
		return true
	})
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return written, errors.Join(over, err)
}

// hasEnded discards received bytes without blocking, and reports whether the client has closed the connection.
func hasEnded(raw syscall.RawConn) (ended bool) {
	over := raw.Read(func(fd uintptr) bool {
		var dropped [512]byte
		n, err := syscall.Read(int(fd), dropped[:])
		ended = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
		return true
	})
	return ended || over != nil
}
