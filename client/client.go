// Package client calls the HTTP API of firstcome.
//
// Every call takes a context and returns the answer, a *Problem when the server answered other than 2xx, or a wrapped transport error. A claim's
// refusal is an answer, not an error. Every call may be repeated: a repeated claim finds the coupon that the first claim got.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Client calls one server. Its methods may be called from many goroutines.
type Client struct {
	server string
	key    string
	http   *http.Client
}

const (
	// connections is how many connections a Client keeps open: as many as a busy worker pool uses.
	connections = 256
	// answerTimeout is the longest wait for an answer's first byte. It exceeds the server's own time-outs and the longest wait for facts.
	answerTimeout = 90 * time.Second
	// maxProblem is the most bytes of an error that are read. A request may have a thousand mistakes.
	maxProblem = 1 << 20
)

// New returns a Client of the server at a URL like http://127.0.0.1:8080. The
// key is an API key or a user's token; empty in development mode.
func New(server, key string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = connections
	transport.MaxIdleConns = connections
	transport.ResponseHeaderTimeout = answerTimeout
	return &Client{server: strings.TrimRight(server, "/"), key: key, http: &http.Client{Transport: transport}}
}

// WithHTTP returns a Client that calls the same server through h: for proxies, tracing, or a transport that a program has already. A time-out of h
// should be longer than claims wait at the server, 20 s by default.
func (c *Client) WithHTTP(h *http.Client) *Client {
	with := *c
	with.http = h
	return &with
}

// CloseIdle closes the connections that are kept open for the next call.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// A request is a request of do.
type request struct {
	method, path string
	query        url.Values
	body         any       // nil if there is none
	file         io.Reader // a body that is no JSON, whose type is in header
	header       http.Header
}

// do sends a request, and decodes its answer into into, unless that is nil.
func (c *Client) do(ctx context.Context, r request, into any) error {
	response, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return problem(response)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}
	// Read to the end of the stream, or the connection cannot be reused.
	_, _ = io.Copy(io.Discard, response.Body)
	return nil
}

// ask sends a request, and returns its decoded answer.
func ask[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	err = c.do(ctx, r, &answer)
	return answer, err
}

// send sends a request and returns the answer, whatever its status.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	target := c.server + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	body := r.file
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(text)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.header {
		sent.Header[name] = values
	}
	if c.key != "" {
		sent.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(sent)
	if err != nil {
		var failed *url.Error // its text has the URL, whose query may have a coupon code
		if errors.As(err, &failed) {
			failed.URL, _, _ = strings.Cut(failed.URL, "?")
		}
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	return response, nil
}

// problem returns the *Problem of an answer other than 2xx. An answer that breaks off is a transport error, because it does not show whether the
// claim was refused.
func problem(response *http.Response) error {
	p := &Problem{}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("read the answer, which is %s: %w", response.Status, err)
	}
	if json.Unmarshal(text, p) != nil {
		p = &Problem{Title: http.StatusText(response.StatusCode), Detail: strings.TrimSpace(string(text))}
	}
	p.Status, p.Challenge = response.StatusCode, response.Header.Get("WWW-Authenticate")
	if s, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil {
		p.RetryAfter = time.Duration(s) * time.Second
	}
	return p
}

// query returns parameters from alternating names and values, without those with empty values.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return q
}

// number formats a limit, or returns "" if it is not positive.
func number(limit int) string {
	if limit <= 0 {
		return ""
	}
	return strconv.Itoa(limit)
}

// include returns "include" or "", for a parameter.
func include(is bool) string { return map[bool]string{true: "include"}[is] }

// campaignPath returns the path of a campaign, or of something below it.
func campaignPath(id string, below ...string) string {
	path := "/v1/campaigns/" + url.PathEscape(id)
	for _, segment := range below {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

// Ready returns nil if the server accepts requests.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, request{method: http.MethodGet, path: "/readyz"}, nil)
}

// refused returns the answer of a refused claim, or the error itself. After a 5xx the outcome is unknown, whatever its body has.
func refused(err error) (Answer, error) {
	var p *Problem
	if errors.As(err, &p) && p.Outcome != "" && p.Status < 500 {
		return Answer{Outcome: p.Outcome, Refusal: p}, nil
	}
	return Answer{}, err
}
