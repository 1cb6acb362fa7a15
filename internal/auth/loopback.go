package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// IsLoopback reports whether a Host header names this machine. A page from elsewhere whose name resolves to this machine (DNS rebinding) has another
// Host.
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

// IsProxied reports whether a request came through a proxy, as far as proxies show it: nginx speaks HTTP/1.0 unless configured otherwise. If no
// request needs credentials, every client behind a proxy on this machine would be admin.
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
