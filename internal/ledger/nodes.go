package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome/internal/sqldb"
)

// A NodeRow is a row of the table nodes, in which a node reports its state.
type NodeRow struct {
	Host, Listen, Role, Version string
	StartedAt                   time.Time // by the ledger's clock, as all times here
	SeenAt                      time.Time
	StoppedAt                   time.Time // zero if the node has not reported that it stops
	Now                         time.Time // when the row was read
	Counts                      []byte    // JSON: see figures.Board
	Forgotten                   bool      // the node was silent for so long that another node may take its row
}

// Clock returns the time by the ledger's clock.
func (d *Deployment) Clock(ctx context.Context) (time.Time, error) {
	at, err := d.db.ReadNow(ctx)
	return at, sqldb.Wrap(err, "read the clock")
}

// forgottenNode is how long a silent node keeps its row. After that, another node may take it. On SQLite one process
// has the ledger, so all other nodes are gone.
const forgottenNode = time.Hour

// ErrNodeTaken means that another node has taken the node's row, because the node was silent for too long.
var ErrNodeTaken = errors.New("another node has taken this node's row")

// TakeNode assigns a row to a node and returns the counts in it, or nil if the row is new. The node gets its own
// row if it ran before, or else the row of a forgotten node. Nodes have no right to delete rows, so reuse keeps
// the table small.
func (d *Deployment) TakeNode(ctx context.Context, n NodeRow) (counts []byte, err error) {
	rows, err := d.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, old := range rows {
		if old.Host == n.Host && old.Listen == n.Listen {
			return old.Counts, nil
		}
	}
	for _, old := range rows {
		if !old.Forgotten {
			continue
		}
		taken, err := d.changeNodes(ctx, `UPDATE nodes SET host = ?, listen = ?, seen_at = `+d.nodeClock()+` WHERE host = ? AND listen = ? AND seen_at = ?`,
			n.Host, n.Listen, old.Host, old.Listen, old.SeenAt.UnixMicro())
		if err != nil || taken > 0 { // another node may have been faster
			return old.Counts, sqldb.Wrap(err, "take the row of a node that is gone")
		}
	}
	_, err = d.changeNodes(ctx, `INSERT INTO nodes (host, listen, role, version, started_at, counts, seen_at) VALUES (?, ?, ?, ?, ?, ?, `+d.nodeClock()+`)`,
		n.Host, n.Listen, n.Role, n.Version, n.StartedAt.UnixMicro(), "{}")
	return nil, sqldb.Wrap(err, "say that there is a node")
}

// WriteNode writes a node's report into the row that it took. stopped is true if the node is about to stop.
func (d *Deployment) WriteNode(ctx context.Context, n NodeRow, stopped bool) error {
	stoppedAt := `NULL`
	if stopped {
		stoppedAt = d.nodeClock()
	}
	rows, err := d.changeNodes(ctx, `UPDATE nodes SET role = ?, version = ?, started_at = ?, counts = ?, seen_at = `+d.nodeClock()+`, stopped_at = `+stoppedAt+` WHERE host = ? AND listen = ?`,
		n.Role, n.Version, n.StartedAt.UnixMicro(), string(n.Counts), n.Host, n.Listen)
	if err == nil && rows == 0 {
		return ErrNodeTaken
	}
	return sqldb.Wrap(err, "say what the node is")
}

// changeNodes runs a statement that writes a row, and returns how many it wrote.
func (d *Deployment) changeNodes(ctx context.Context, query string, args ...any) (int64, error) {
	var rows int64
	if err := d.db.Update(ctx, func(t *sqldb.Tx) (err error) { rows, err = t.Change(query, args...); return err }); err != nil {
		return 0, err // the writer may still be writing rows
	}
	return rows, nil
}

// nodeClock returns the SQL expression of the clock for these rows. SQLite's clock has whole milliseconds.
func (d *Deployment) nodeClock() string {
	if d.db.Dialect.Shared {
		return d.db.Dialect.Clock
	}
	return `CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000`
}

// Nodes returns the rows of all nodes, including forgotten nodes.
func (d *Deployment) Nodes(ctx context.Context) ([]NodeRow, error) {
	rows, err := d.db.Conclude.QueryContext(ctx, `SELECT host, listen, role, version, started_at, seen_at, stopped_at, `+d.nodeClock()+`, counts FROM nodes ORDER BY host, listen`)
	all, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (n NodeRow, err error) {
		var counts string
		err = take(&n.Host, &n.Listen, &n.Role, &n.Version, sqldb.Time(&n.StartedAt), sqldb.Time(&n.SeenAt), sqldb.Time(&n.StoppedAt), sqldb.Time(&n.Now), &counts)
		n.Counts, n.Forgotten = []byte(counts), !d.db.Dialect.Shared || n.Now.Sub(n.SeenAt) >= forgottenNode
		return n, err
	})
	return all, sqldb.Wrap(err, "read the nodes")
}
