package client

import (
	"context"
	"net/http"
	"net/url"
)

// A Readiness is a server's report about itself.
type Readiness struct {
	Status  string `json:"status"`  // ready, draining or mismatch
	Version string `json:"version"` // of firstcome; empty if not reported
	Ledger  string `json:"ledger"`  // ok, or what is wrong with it; empty if not reported
	Gate    string `json:"gate"`    // what is wrong with the gate beside the ledger; empty if nothing is known to be wrong
}

// Readiness asks a server whether it accepts requests, which version it is, and whether its ledger answers. If the server drains, or decides none of
// the open campaigns, the error is a *Problem with status 503.
func (c *Client) Readiness(ctx context.Context) (Readiness, error) {
	return ask[Readiness](ctx, c, request{method: http.MethodGet, path: "/readyz", query: url.Values{"verbose": {""}}})
}
