// Package httpd is the HTTP server: it listens, bounds the connections, and stops. It knows nothing of coupons.
//
// # The life of a connection
//
//	                 a request that is not plain,
//	accepted → lane ──── or not short ────→ net/http → closed
//	            │                            (with its 64th answer at the latest)
//	            └→ closed
//
// A lane (a fast path) reads the requests of a connection itself, and calls the handler for those that are plain (plain.go) and short
// ([Config].Short), at a fraction of net/http's cost. The first request of any other kind goes to net/http permanently, with the connection and all
// bytes that were read. So a connection has one reader at any time, and each byte belongs to one request. A connection is closed once net/http has
// answered 64 requests on it, so that a proxy that mixes all kinds of requests returns to a lane.
//
// A handler may take the connection from a lane or from net/http ([Detach]). It then no longer belongs to the server, and has no goroutine. One
// goroutine of the handler writes to all such connections, without blocking.
//
// With TLS, or if [Config].Short is empty, net/http has connections from the beginning.
//
// # Room
//
// A connection is at work while the handler runs and neither reads the request's body nor writes the
// answer. Otherwise it waits for its client. When there is no room for a new connection, those that have
// waited longest are closed; only if all are at work is the new one turned away.
package httpd
