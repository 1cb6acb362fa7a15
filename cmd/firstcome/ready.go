package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

type readyCmd struct {
	Server  serverURL     `placeholder:"URL" help:"The server (default: the server on this machine that has the same flags and variables as this command)."`
	Listen  listenAddress `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"As in serve (default: 127.0.0.1:8080)."`
	Ops     opsAddress    `placeholder:"HOST:PORT" help:"As in serve (default: the port of --listen + 1, on 127.0.0.1)."`
	Role    string        `enum:"all,api,recorder" default:"all" placeholder:"all" help:"As in serve. A recorder is asked at --ops (default: all)."`
	TLSCert string        `name:"tls-cert" placeholder:"FILE" help:"As in serve. A server with TLS is asked at --ops, because its certificate does not name this machine's loopback."`
	Timeout time.Duration `default:"2s" help:"How long the server may take to answer (default: 2s)."`
}

func (c *readyCmd) Help() string {
	return `ready sends GET /readyz, which reports only whether this node accepts requests. A node stays ready if its ledger or gate
does not answer. In a container, ready finds the server by the variables of serve:
HEALTHCHECK CMD ["/usr/bin/firstcome", "ready"].`
}

// check requires flags from which the server's address follows.
func (c *readyCmd) check(terminal) []error {
	address := c.address()
	switch {
	case c.Server != "":
	case address == "":
		return []error{errors.New("--ops off: ready asks a recorder, or a server with TLS, at the ops address: name that with --ops, or the server with --server")}
	case listenAddress(address).port() == 0:
		return []error{fmt.Errorf("%s: port 0 means any free port, which ready cannot know: name the server with --server", address)}
	}
	return nil
}

// address returns the address at which ready asks the server on this machine, or an empty string if there is none.
func (c *readyCmd) address() string {
	if c.Role == "recorder" || c.TLSCert != "" {
		return c.Ops.beside(c.Listen)
	}
	return string(c.Listen)
}

func (c *readyCmd) Run(ctx context.Context, t terminal) error {
	server := string(c.Server)
	if server == "" {
		server = "http://" + listenAddress(c.address()).here()
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := askReady(ctx, server+"/readyz"); err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	_, err := fmt.Fprintln(t.out, "ready")
	return err
}

// askReady returns nil if a firstcome server answers that it is ready.
func askReady(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{} // without a proxy
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	defer answer.Body.Close()
	const most = 4096
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	var said struct{ Status string }
	if err := json.Unmarshal(body, &said); err != nil || said.Status == "" {
		return fmt.Errorf("GET %s: %s, and the answer is not from firstcome", url, answer.Status)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s, %s", url, answer.Status, said.Status)
	}
	return nil
}
