//go:build !linux

package api

import "net"

// refuseNew does nothing: elsewhere the few connections that wait to be accepted
// when the listener is closed are reset.
func refuseNew(net.Listener) {}

// unaccepted is not known elsewhere.
func unaccepted(net.Listener) int { return 0 }
