package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

type migrateCmd struct{ ledgerFlag }

// Run migrates the ledger, for operators who want to do this before serve does. If it is killed half-way, the next run continues from there.
func (c *migrateCmd) Run(ctx context.Context, t terminal) error {
	// A step is one statement, whose progress the database does not report.
	done := showProgress(ctx, t, "migrate", func() course { return course{} })
	err := makeLedger(ctx, c.Ledger.path(), "migrating it")
	done()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "The ledger %s has a schema that this firstcome serves on.\n", sqldb.Masked(c.Ledger.path()))
	return err
}

// noSecret returns a secret for opening a ledger in which no claim is decided.
func noSecret() firstcome.Secret {
	secret, _ := firstcome.NewSecret(make([]byte, firstcome.MinSecret)) // long enough
	return secret
}
