package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// A fleet is the servers that get the claims.
type fleet struct {
	key     string
	prefix  string // start of a body, up to the user's index
	nodes   []node
	workers atomic.Int64 // number of workers
}

// A node is one server of a fleet.
type node struct {
	campaign string // the campaign's URL, with a slash at the end
	claims   string // the URL of its claims
	client   *fasthttp.HostClient
}

func newFleet(c Options) (*fleet, error) {
	prefix, err := json.Marshal(c.Prefix)
	if err != nil {
		return nil, fmt.Errorf("the prefix: %w", err)
	}
	f := &fleet{key: c.Key, prefix: `{"user_id":` + strings.TrimSuffix(string(prefix), `"`)}
	for _, server := range append([]string{c.Server}, c.Nodes...) {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("the server is a URL like http://127.0.0.1:8080, not %q", server)
		}
		campaign := u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/v1/campaigns/" + c.Campaign + "/"
		f.nodes = append(f.nodes, node{campaign, campaign + "claims", newClient(c, u)})
	}
	return f, nil
}

// maxIdle is how long a connection may be idle before the client closes it. It is shorter than servers' idle time-outs, so that a server does not
// close a connection just as a claim is sent.
const maxIdle = 4 * time.Second

// newClient returns a client with a connection for each worker, and for each look. It never repeats a request, which would look like a breach.
func newClient(c Options, u *url.URL) *fasthttp.HostClient {
	isTLS := u.Scheme == "https"
	connections := c.Concurrency
	if c.Follow {
		connections *= 2 // as many for claims, and as many for looks
	}
	return &fasthttp.HostClient{
		Addr: fasthttp.AddMissingPort(u.Host, isTLS), IsTLS: isTLS, Name: "firstcome-load",
		MaxConns: connections, MaxIdleConnDuration: maxIdle, MaxIdemponentCallAttempts: 1,
		ReadTimeout: c.Timeout, WriteTimeout: c.Timeout, MaxResponseBodySize: 1 << 20,
		Dial: func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, c.Timeout) },
	}
}

// worker returns the Ask of a worker, which uses one node after another. Workers begin at different nodes, and share connections, which close ends.
func (f *fleet) worker() Ask {
	var request fasthttp.Request
	var response fasthttp.Response
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	if f.key != "" {
		request.Header.Set("Authorization", "Bearer "+f.key)
	}
	body, next := []byte(f.prefix), int(f.workers.Add(1))-1
	return func(user int) Answer {
		next++
		to := &f.nodes[next%len(f.nodes)]
		body = append(strconv.AppendInt(body[:len(f.prefix)], int64(user), 10), '"', '}')
		request.SetRequestURI(to.claims)
		request.SetBodyRaw(body)
		if err := to.client.Do(&request, &response); err != nil {
			return Answer{Trouble: trouble(err)}
		}
		return ParseAnswer(response.StatusCode(), response.Body())
	}
}

// close closes the connections.
func (f *fleet) close() {
	for _, n := range f.nodes {
		n.client.CloseIdleConnections()
	}
}

// trouble returns the cause of a lost answer, without details that differ each time, such as ports.
func trouble(err error) string {
	var timeout interface{ Timeout() bool } // fasthttp's is not a net.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, fasthttp.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}
