package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key, and print it this once. Servers accept it within a second."`
	List   keyListCmd   `cmd:"" help:"List the ids, roles and names of the keys. The keys themselves are not stored."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key permanently. Servers refuse it within a second."`
}

type keyCreateCmd struct {
	ledgerFlag
	outputFlag
	Name string `required:"" placeholder:"NAME" help:"The person or the program that uses the key."`
	Role string `variable:"none" enum:"admin,operator,support,viewer,service,shop" default:"service" placeholder:"service" help:"admin: everything; operator: campaigns, exports, dead letters, audit log; support: one user or code at a time, and voids; viewer: campaigns and counts, no user ids; service: claims and reads for any user; shop: like service, and also facts, direct issues and voids, for a shop's backend (default: service)."`
}

func (c *keyCreateCmd) Run(ctx context.Context, t terminal) error {
	plain, key, err := createKey(ctx, c.Ledger.path(), c.Name, firstcome.Role(c.Role))
	if err != nil {
		return err
	}
	row := rowOf(key)
	row.Key = plain
	return c.print(t, row, func(w io.Writer) {
		fmt.Fprintf(w, "Key %s (%s) for %s. Nodes accept it within a second. A node that was started without any key requires none until it is restarted.\nThe key is shown only this once. Keep it as FIRSTCOME_KEY:\n%s\n", key.ID, key.Role, key.Name, plain)
	})
}

// createKey creates a key and adds it to the ledger at path.
func createKey(ctx context.Context, path, name string, role firstcome.Role) (plain string, key firstcome.Key, err error) {
	plain, key, err = auth.NewKey(name, role)
	if err != nil {
		return "", key, usageError{err}
	}
	err = writeLedger(ctx, path, func(l *ledger.Ledger) error { return l.Deployment.AddKey(ctx, actor(), key) })
	return plain, key, err
}

type keyListCmd struct {
	ledgerFlag
	outputFlag
}

func (c *keyListCmd) Run(ctx context.Context, t terminal) error {
	var keys []firstcome.Key
	err := readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) (err error) {
		keys, err = l.Deployment.Keys(ctx)
		return err
	})
	if err != nil {
		return err
	}
	rows := make([]keyRow, 0, len(keys))
	for _, k := range keys {
		rows = append(rows, rowOf(k))
	}
	return c.print(t, rows, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tROLE\tNAME\tCREATED\tREVOKED")
		for _, r := range rows {
			revoked := "-"
			if r.RevokedAt != nil {
				revoked = r.RevokedAt.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Role, r.Name, r.CreatedAt.Format(time.RFC3339), revoked)
		}
	})
}

type keyRevokeCmd struct {
	ledgerFlag
	outputFlag
	ID string `arg:"" help:"The key's id, as printed by key list."`
}

func (c *keyRevokeCmd) Run(ctx context.Context, t terminal) error {
	if err := mustExist(c.Ledger.path()); err != nil {
		return err
	}
	err := writeLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error { return l.Deployment.RevokeKey(ctx, actor(), c.ID) })
	if errors.Is(err, ledger.ErrNoKey) {
		return fmt.Errorf("%w: firstcome key list%s shows the ids", err, c.Ledger.flag())
	}
	if err != nil {
		return err
	}
	return c.print(t, map[string]string{"id": c.ID, "state": "revoked"}, func(w io.Writer) { fmt.Fprintf(w, "Key %s is revoked.\n", c.ID) })
}

// A keyRow is a key in printed form.
type keyRow struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Role      firstcome.Role `json:"role"`
	CreatedAt time.Time      `json:"created_at"`
	RevokedAt *time.Time     `json:"revoked_at"`
	Key       string         `json:"key,omitempty"`
}

func rowOf(k firstcome.Key) keyRow {
	row := keyRow{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: k.CreatedAt}
	if !k.RevokedAt.IsZero() {
		row.RevokedAt = &k.RevokedAt
	}
	return row
}

// actor returns the machine's user, as named in the audit log.
func actor() string {
	if u, err := user.Current(); err == nil {
		return "local:" + u.Username
	}
	return "local"
}
