//go:build !unix

package httpd

import (
	"net/http"
	"syscall"
)

// Detaches reports whether connections can be detached on this system.
const Detaches = false

func writeNow(syscall.RawConn, []byte) (int, error) { return 0, http.ErrNotSupported }

func hasEnded(syscall.RawConn) bool { return true }
