package ledger

import (
	"context"
	"time"
)

// A NodeRow is what a node said of itself in the table nodes, which only ledgers on a server have.
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

// WriteNode says what a node says of itself, as of now; stopped tells that it ends. Nodes have no right to delete, so a row
// stays until its host and address come again.
func (l *Ledger) WriteNode(ctx context.Context, n NodeRow, stopped bool) error {
	stoppedAt := `NULL`
	if stopped {
		stoppedAt = l.dialect.clock
	}
	updated, err := l.write.ExecContext(ctx, l.dialect.rebind(`UPDATE nodes SET role = ?, version = ?, started_at = ?, seen_at = `+l.dialect.clock+`, stopped_at = `+stoppedAt+`, counts = ?
		WHERE host = ? AND listen = ?`), n.Role, n.Version, n.StartedAt.UnixMicro(), string(n.Counts), n.Host, n.Listen)
	if err != nil {
		return wrap(err, "say what the node is")
	}
	if rows, err := updated.RowsAffected(); err != nil || rows > 0 {
		return wrap(err, "say what the node is")
	}
	_, err = l.write.ExecContext(ctx, l.dialect.rebind(`INSERT INTO nodes (host, listen, role, version, started_at, seen_at, stopped_at, counts)
		VALUES (?, ?, ?, ?, ?, `+l.dialect.clock+`, `+stoppedAt+`, ?)`), n.Host, n.Listen, n.Role, n.Version, n.StartedAt.UnixMicro(), string(n.Counts))
	return wrap(err, "say that there is a node")
}

// forgottenNode is how long a row is told of: a node that said nothing for so long is no news.
const forgottenNode = 24 * time.Hour

// Nodes returns what each node said of itself within a day.
func (l *Ledger) Nodes(ctx context.Context) ([]NodeRow, error) {
	rows, err := l.conclude.QueryContext(ctx, `SELECT host, listen, role, version, started_at, seen_at, stopped_at, `+l.dialect.clock+`, counts FROM nodes ORDER BY host, listen`)
	all, err := allRows(rows, err, func(take scan) (n NodeRow, err error) {
		var counts string
		err = take(&n.Host, &n.Listen, &n.Role, &n.Version, when(&n.StartedAt), when(&n.SeenAt), when(&n.StoppedAt), when(&n.Now), &counts)
		n.Counts = []byte(counts)
		return n, err
	})
	if err != nil {
		return nil, wrap(err, "read the nodes")
	}
	var fresh []NodeRow
	for _, n := range all {
		if n.Now.Sub(n.SeenAt) < forgottenNode {
			fresh = append(fresh, n)
		}
	}
	return fresh, nil
}
