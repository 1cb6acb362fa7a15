package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

type migrateCmd struct{ ledgerFlag }

// Run migrates the ledger. It is for operators who want to do so before serve
// does; if it is killed half-way, the next run goes on from there.
func (c *migrateCmd) Run(ctx context.Context, t terminal) error {
	// A step is one statement to the database, which does not say how far it is.
	done := showProgress(ctx, t, "migrate", func() course { return course{} })
	err := makeLedger(ctx, c.Ledger.path(), "migrating it")
	done()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "The ledger %s has a schema that this firstcome serves on.\n", sqldb.Masked(c.Ledger.path()))
	return err
}

// noSecret is for opening a ledger without deciding a claim in it.
func noSecret() firstcome.Secret {
	secret, _ := firstcome.NewSecret(make([]byte, firstcome.MinSecret)) // long enough
	return secret
}
