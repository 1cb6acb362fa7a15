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

// A fleet is the servers that claims are sent to.
type fleet struct {
	key     string
	prefix  string // of a body, up to the user's index
	nodes   []node
	workers atomic.Int64 // that there are
}

// A node is one server of a fleet.
type node struct {
	campaign string // the campaign's URL, with a slash behind it
	claims   string // the URL of its claims
	client   *fasthttp.HostClient
}

func newFleet(c Config) (*fleet, error) {
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

// maxIdle is how long a connection may be idle before it is closed: less than
// after what servers close one, so that they do not as a claim is sent.
const maxIdle = 4 * time.Second

// newClient returns a client with a connection for each worker, and for each look. It sends nothing
// twice: that would look like a breach.
func newClient(c Config, u *url.URL) *fasthttp.HostClient {
	isTLS := u.Scheme == "https"
	connections := c.Concurrency
	if c.Follow {
		connections *= 2 // as many claim, and as many follow
	}
	return &fasthttp.HostClient{
		Addr: fasthttp.AddMissingPort(u.Host, isTLS), IsTLS: isTLS, Name: "firstcome-load",
		MaxConns: connections, MaxIdleConnDuration: maxIdle, MaxIdemponentCallAttempts: 1,
		ReadTimeout: c.Timeout, WriteTimeout: c.Timeout, MaxResponseBodySize: 1 << 20,
		Dial: func(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, c.Timeout) },
	}
}

// worker returns a worker's way to ask: one node after the other. Workers begin at
// different nodes, and share the connections, which close ends.
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

// trouble names the cause of a lost answer, without what differs each time, such as ports.
func trouble(err error) string {
	var timeout interface{ Timeout() bool } // fasthttp's is no net.Error
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
