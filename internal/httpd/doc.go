// Package httpd is the HTTP server: it listens, bounds the connections, and stops. It knows no coupons.
//
// # The life of a connection
//
//	                 a request that is not plain,
//	accepted → lane ──── or not short ────→ net/http → closed
//	            │                            (with its 64th answer at the latest)
//	            └→ closed
//
// A lane reads the requests of a connection itself, and has the handler answer those that are plain
// (plain.go) and short ([Config].Short): that costs a fraction of what net/http takes for a request. The
// first request that is anything else goes to net/http, with all bytes that were read and the
// connection, for good. So a connection has one reader at any time, and each byte belongs to one request.
// A connection that net/http answered for 64 requests is closed, so that a proxy which puts all
// kinds of requests on its connections comes back to a lane.
//
// With TLS, and where [Config].Short is empty, connections are net/http's from the beginning.
//
// # Room
//
// A connection is at work while the handler runs and neither reads the request's body nor
// writes the answer. Else it waits for its client. Where there is no room for a new connection, those that
// have waited longest are closed; only if all are at work, the new one is turned away.
package httpd
