package main

import (
	"context"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
)

// ledgerOnServer says whether the ledger's database may be one.
func ledgerOnServer(ctx context.Context, name string) []finding {
	var findings []finding
	for _, f := range ledger.Examine(ctx, name) {
		findings = append(findings, finding{string(f.Grade), f.What, mask(f.Found, nil), f.Fix})
	}
	return findings
}

// gateOnServer says whether Redis may be the gate, if it is meant to be.
func (c *doctorCmd) gateOnServer(ctx context.Context) []finding {
	if c.Gate.url() == "" {
		return nil
	}
	var findings []finding
	for _, f := range redis.Examine(ctx, redis.Options{URL: c.Gate.url(), AnyEviction: c.AnyEviction}) {
		findings = append(findings, finding{string(f.Grade), f.What, mask(f.Found, nil), f.Fix})
	}
	return findings
}
