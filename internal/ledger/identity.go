package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Identity returns the random name by which the ledger is told from all others. It
// is made once, and copied with the ledger; empty only of one that no node has opened yet.
func (l *Ledger) Identity() string { return l.identity }

// marker returns a campaign's: see firstcome.Change. The ledger's name tells it from a
// campaign of another ledger, the instant at which it was made from one that was made
// under the same id in a copy of this ledger.
func (l *Ledger) marker(createdAt time.Time) string {
	return l.identity + "." + strconv.FormatInt(createdAt.UnixMicro(), 10)
}

// identify reads which ledger this is, and makes it up if it is not said yet and may be. Of
// nodes that do so at once the schema lets one.
func (l *Ledger) identify(ctx context.Context, may bool) error {
	found, err := l.readIdentity(ctx)
	if err != nil || found || !may {
		return err
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	_, insert := l.write.ExecContext(ctx, l.dialect.rebind(`INSERT INTO identity (id, ledger) VALUES (1, ?)`), hex.EncodeToString(random[:]))
	found, err = l.readIdentity(ctx)
	if err == nil && !found {
		err = fmt.Errorf("say which ledger this is: %w", insert)
	}
	return err
}

func (l *Ledger) readIdentity(ctx context.Context) (found bool, err error) {
	err = l.read.QueryRowContext(ctx, `SELECT ledger FROM identity`).Scan(&l.identity)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read which ledger this is: %w", err)
	}
	return true, nil
}
