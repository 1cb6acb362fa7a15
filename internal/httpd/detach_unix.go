//go:build unix

package httpd

import (
	"errors"
	"syscall"
)

// Detaches tells whether connections can be detached on this system.
const Detaches = true

// writeNow writes what the kernel takes without waiting.
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

// hasEnded reads what has come, without waiting, and tells whether nothing more will.
func hasEnded(raw syscall.RawConn) (ended bool) {
	over := raw.Read(func(fd uintptr) bool {
		var dropped [512]byte
		n, err := syscall.Read(int(fd), dropped[:])
		ended = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
		return true
	})
	return ended || over != nil
}
