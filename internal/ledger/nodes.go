package ledger

import (
	"context"
	"slices"
	"time"
)

// A NodeRow is what a node reported of itself in the table nodes, which only ledgers on a server have.
type NodeRow struct {
	Host, Listen, Role, Version string
	StartedAt                   time.Time // by the server's clock, as all instants here
	SeenAt                      time.Time
	StoppedAt                   time.Time // zero: it runs, as far as it said
	Now                         time.Time // when the row was read
	Counts                      []byte    // JSON: see figures.Board
}

// Clock returns the instant by the ledger's clock.
func (l *Ledger) Clock(ctx context.Context) (time.Time, error) {
	at, err := l.readNow(ctx)
	return at, wrap(err, "read the clock")
}

// forgottenNode is how long a silent node is still listed. Then another node may take over its row.
const forgottenNode = time.Hour

// WriteNode writes what a node reports of itself; stopped says that it stops. Nodes may not delete rows, so a new node takes
// over a forgotten one's.
func (l *Ledger) WriteNode(ctx context.Context, n NodeRow, stopped bool) error {
	stoppedAt := `NULL`
	if stopped {
		stoppedAt = l.dialect.clock
	}
	values := []any{n.Host, n.Listen, n.Role, n.Version, n.StartedAt.UnixMicro(), string(n.Counts)}
	update := `UPDATE nodes SET host = ?, listen = ?, role = ?, version = ?, started_at = ?, counts = ?, seen_at = ` + l.dialect.clock + `, stopped_at = ` + stoppedAt + ` WHERE host = ? AND listen = ?`
	write := func(query string, args ...any) (rows int64, err error) {
		done, err := l.write.ExecContext(ctx, l.dialect.rebind(query), append(values, args...)...)
		if err != nil {
			return 0, err
		}
		return done.RowsAffected()
	}
	if rows, err := write(update, n.Host, n.Listen); err != nil || rows > 0 {
		return wrap(err, "say what the node is")
	}
	old, found, err := l.forgotten(ctx)
	if err == nil && found {
		var rows int64
		if rows, err = write(update+` AND seen_at = ?`, old.Host, old.Listen, old.SeenAt.UnixMicro()); rows > 0 {
			return nil
		}
	}
	if err == nil { // there is none to take, or another node was faster
		_, err = write(`INSERT INTO nodes (host, listen, role, version, started_at, counts, seen_at, stopped_at) VALUES (?, ?, ?, ?, ?, ?, ` + l.dialect.clock + `, ` + stoppedAt + `)`)
	}
	return wrap(err, "say that there is a node")
}

// forgotten returns the row of a forgotten node, if there is one.
func (l *Ledger) forgotten(ctx context.Context) (row NodeRow, found bool, err error) {
	rows, err := l.nodeRows(ctx)
	for _, n := range rows {
		if n.Now.Sub(n.SeenAt) >= forgottenNode {
			return n, true, err
		}
	}
	return row, false, err
}

// Nodes returns what each node reported of itself within an hour.
func (l *Ledger) Nodes(ctx context.Context) ([]NodeRow, error) {
	all, err := l.nodeRows(ctx)
	return slices.DeleteFunc(all, func(n NodeRow) bool { return n.Now.Sub(n.SeenAt) >= forgottenNode }), err
}

func (l *Ledger) nodeRows(ctx context.Context) ([]NodeRow, error) {
	rows, err := l.conclude.QueryContext(ctx, `SELECT host, listen, role, version, started_at, seen_at, stopped_at, `+l.dialect.clock+`, counts FROM nodes ORDER BY host, listen`)
	all, err := allRows(rows, err, func(take scan) (n NodeRow, err error) {
		var counts string
		err = take(&n.Host, &n.Listen, &n.Role, &n.Version, when(&n.StartedAt), when(&n.SeenAt), when(&n.StoppedAt), when(&n.Now), &counts)
		n.Counts = []byte(counts)
		return n, err
	})
	return all, wrap(err, "read the nodes")
}
