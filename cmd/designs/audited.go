package main

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"

	"github.com/firstcome/firstcome/designs/verdict"
)

// A breach is an error that holds the breaches found by firstcome's audit.
type breach struct{ error }

// audited runs firstcome's own audit as a user would, and returns the numbers that the ledger lists as lost. If the audit finds a breach, the error is
// of type breach.
func (u setUp) audited(ctx context.Context, program string, db *sql.DB, ledger, gate, campaign string) (named []verdict.Places, err error) {
	cmd := exec.CommandContext(ctx, program, "audit", campaign, "--ledger", ledger)
	if u.gate {
		cmd.Args = append(cmd.Args, "--gate", gate)
	}
	cmd.Env = append(cmd.Env, "FIRSTCOME_SECRET="+secret)
	if said, err := cmd.CombinedOutput(); err != nil {
		err = fmt.Errorf("firstcome audit: %w: %s", err, said)
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitWrong {
			return nil, breach{err}
		}
		return nil, err
	}
	found, err := db.QueryContext(ctx, fmt.Sprintf("SELECT number, count FROM lost WHERE campaign_id = '%s'", campaign))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var first, count int64
		if err := found.Scan(&first, &count); err != nil {
			return nil, err
		}
		named = append(named, verdict.Places{First: first, Last: first + count - 1})
	}
	return named, found.Err()
}
