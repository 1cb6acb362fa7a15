package client

import (
	"context"
	"net/http"
	"net/url"
)

// A Readiness is what a server says of itself.
type Readiness struct {
	Status  string `json:"status"`  // ready, draining or mismatch
	Version string `json:"version"` // of firstcome; empty: it does not say
	Ledger  string `json:"ledger"`  // ok, or what is wrong with it; empty: it does not say
	Gate    string `json:"gate"`    // what is wrong with the gate beside the ledger; empty: nothing known
}

// Readiness asks a server whether it takes requests, which version it is, and whether its ledger answers.
// If the server drains, or decides none of the open campaigns, the error is a *Problem with status 503.
func (c *Client) Readiness(ctx context.Context) (Readiness, error) {
	return ask[Readiness](ctx, c, request{method: http.MethodGet, path: "/readyz", query: url.Values{"verbose": {""}}})
}
