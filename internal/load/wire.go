package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// A wire makes the workers' connections to one server.
type wire struct {
	address string
	tls     bool
	path    string
	key     string
	head    []byte // of a body, up to the user's index
	timeout time.Duration
}

func newWire(c Config) (*wire, error) {
	u, err := url.Parse(c.Server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the server is a URL like http://127.0.0.1:8080, not %q", c.Server)
	}
	w := &wire{address: u.Host, tls: u.Scheme == "https", key: c.Key, timeout: c.Timeout}
	if u.Port() == "" {
		w.address = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[w.tls])
	}
	w.path = strings.TrimSuffix(u.Path, "/") + "/v1/campaigns/" + c.Campaign + "/claims"
	prefix, err := json.Marshal(c.Prefix)
	if err != nil {
		return nil, fmt.Errorf("the prefix: %w", err)
	}
	w.head = append([]byte(`{"user_id":`), bytes.TrimSuffix(prefix, []byte(`"`))...)
	return w, nil
}

// worker returns a worker's way to ask: over one connection of its own, which
// stays open between claims, with one request that is filled in anew. Close ends it.
func (w *wire) worker() (ask Ask, closed func()) {
	host := &fasthttp.HostClient{
		Addr: w.address, IsTLS: w.tls, MaxConns: 1,
		Name: "firstcome-load", NoDefaultUserAgentHeader: true,
		ReadTimeout: w.timeout, WriteTimeout: w.timeout,
		MaxResponseBodySize: 1 << 20,
		DialTimeout: func(address string, _ time.Duration) (net.Conn, error) {
			return net.DialTimeout("tcp", address, w.timeout)
		},
		RetryIfErr:                func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
		DisablePathNormalizing:    true,
		MaxIdemponentCallAttempts: 1, // a claim that was sent twice would look like a breach
	}
	request, response := &fasthttp.Request{}, &fasthttp.Response{}
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.Header.SetHost(w.address)
	request.SetRequestURI(w.path)
	request.URI().SetHost(w.address)
	if w.tls {
		request.URI().SetScheme("https")
	}
	if w.key != "" {
		request.Header.Set("Authorization", "Bearer "+w.key)
	}
	body := append([]byte(nil), w.head...)
	ask = func(user int) Answer {
		body = strconv.AppendInt(body[:len(w.head)], int64(user), 10)
		body = append(body, '"', '}')
		request.SetBodyRaw(body)
		if err := host.DoTimeout(request, response, w.timeout); err != nil {
			return Answer{Trouble: trouble(err)}
		}
		return ParseAnswer(response.StatusCode(), response.Body())
	}
	return ask, host.CloseIdleConnections
}

// trouble names the cause of a lost answer, without what differs from one to the
// next, such as ports.
func trouble(err error) string {
	var timeout net.Error
	var operation *net.OpError
	switch {
	case errors.Is(err, fasthttp.ErrTimeout), errors.Is(err, fasthttp.ErrDialTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, fasthttp.ErrConnectionClosed):
		return "the server closed the connection"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}
