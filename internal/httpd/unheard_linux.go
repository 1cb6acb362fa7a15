package httpd

import (
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const userTimeout = 18

// giveUpUnheard makes the kernel end a connection whose other end confirms nothing for the given time.
func giveUpUnheard(raw syscall.RawConn, long time.Duration) (err error) {
	over := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(long.Milliseconds()))
	})
	if over != nil {
		return over
	}
	return err
}
