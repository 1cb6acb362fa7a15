package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
)

type migrateCmd struct{ ledgerFlag }

// Run migrates the ledger. It is for who wants to do so before serve does; one
// that is killed half-way goes on where it was.
func (c *migrateCmd) Run(ctx context.Context, t terminal) error {
	if err := makeLedger(ctx, c.Ledger.path(), "migrating it"); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "The ledger %s has the schema of this firstcome.\n", c.Ledger.path())
	return err
}

// noSecret is for opening a ledger without deciding a claim in it.
func noSecret() firstcome.Secret {
	secret, _ := firstcome.NewSecret(make([]byte, firstcome.MinSecret)) // long enough
	return secret
}
