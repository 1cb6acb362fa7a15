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
	Server  serverURL     `placeholder:"URL" help:"The server (default: the one that has the flags and variables of this command, on this machine)."`
	Listen  listenAddress `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"As of serve (default: 127.0.0.1:8080)."`
	Ops     opsAddress    `placeholder:"HOST:PORT" help:"As of serve (default: the port of --listen + 1, on 127.0.0.1)."`
	Role    string        `enum:"all,api,recorder" default:"all" placeholder:"all" help:"As of serve: a recorder is asked at --ops (default: all)."`
	TLSCert string        `name:"tls-cert" placeholder:"FILE" help:"As of serve: a server with TLS is asked at --ops, since its certificate does not name this machine's loopback."`
	Timeout time.Duration `default:"2s" help:"How long it may take to answer (default: 2s)."`
}

func (c *readyCmd) Help() string {
	return `It asks GET /readyz, which says of this node alone whether it takes requests; a ledger or a gate that is away does not
make it unready. In a container the variables of serve say where it is: HEALTHCHECK CMD ["/usr/bin/firstcome", "ready"].`
}

// check requires an address that the flags tell.
func (c *readyCmd) check(terminal) []error {
	address := c.address()
	switch {
	case c.Server != "":
	case address == "":
		return []error{errors.New("--ops off: a recorder, and a server with TLS, is asked at its ops address: name one, or the server with --server")}
	case listenAddress(address).port() == 0:
		return []error{fmt.Errorf("%s: port 0 is a free one, which cannot be known from here: name the server with --server", address)}
	}
	return nil
}

// address returns where the server on this machine is asked, "" for nowhere.
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

// askReady returns nil if the answer is that of a firstcome that is ready.
func askReady(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	transport := &http.Transport{} // no proxy: it is asked itself
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
		return fmt.Errorf("GET %s: %s, and what answers there is no firstcome", url, answer.Status)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s, %s", url, answer.Status, said.Status)
	}
	return nil
}
