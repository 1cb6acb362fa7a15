package auth

import (
	"net"
	"net/http"
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

// IsProxied reports whether a request came through a proxy, as far as proxies tell: nginx talks HTTP/1.0 unless it is told otherwise.
// Where no request needs credentials, everybody behind a proxy on this machine would be admin.
func IsProxied(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}
