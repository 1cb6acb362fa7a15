// Package e2e holds the promises against the real firstcome: processes of their
// own on free ports, killed, starved of disk and of connections, and crowded. It
// has tests only.
//
// TestMain builds the binary once, without cgo, as it is released. A server is a
// process; what clients were answered is kept in a crowd and audited in the end
// with internal/audit. SOAK=1 makes the rounds many. They need
// Linux: namespaces, strace, and a server that ends when its test does.
package e2e
