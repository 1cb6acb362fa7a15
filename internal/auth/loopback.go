package auth

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback tells whether a Host header names this machine: a page from elsewhere
// whose name was made to resolve to it (DNS rebinding) has another.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
