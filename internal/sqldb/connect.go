package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A patience is how long connections wait.
type patience struct {
	// answer is how long the server may take to answer, or between two parts of an answer. If it is 0, only the
	// caller's limit applies.
	answer time.Duration
	// idle is how long a transaction may do nothing before the server ends it. So a node that stalls in a
	// transaction does not block a campaign for the other nodes. If it is 0, the server's own setting applies.
	idle time.Duration
	// primary is true if the connection must be to a primary, not to a read-only server.
	primary bool
}

var (
	deciding   = patience{answer: 2 * lockTimeout, idle: 10 * time.Second, primary: true}
	concluding = deciding
	reading    = patience{answer: 30 * time.Second} // a long export also waits for its client
	migrating  = patience{primary: true}            // a statement may rewrite a table
)

// errStandby means that a server must not be used, because it may lack writes to the primary.
var errStandby = errors.New("the server is a standby, or takes no writes for another reason: name the primary, or wait until there is one")

// An impatient connection fails if the next part of an answer takes too long. It is for a driver that only
// knows deadlines of whole calls. A deadline that the driver sets takes precedence.
type impatient struct {
	net.Conn
	answer time.Duration

	mu      sync.Mutex // guards driving and the connection's deadline
	driving bool       // the driver has set a deadline
}

// Read reads, and fails if nothing arrives in time.
func (c *impatient) Read(b []byte) (int, error) {
	c.mu.Lock()
	var err error
	if !c.driving {
		err = c.Conn.SetReadDeadline(time.Now().Add(c.answer))
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetDeadline sets the driver's deadline. The zero time removes it.
func (c *impatient) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.driving = !at.IsZero()
	return c.Conn.SetDeadline(at)
}

// openServer opens the ledger on a server, and migrates it if migrates is set. concludes and reads set how long the
// connections of these pools wait, and which servers they accept.
func openServer(ctx context.Context, name string, migrates bool, concludes, reads patience) (*DB, error) {
	d, err := connectServer(name, concludes, reads)
	if err != nil {
		return nil, err
	}
	check, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if migrates {
		err = migrateServer(check, d.Dialect, name)
	} else if err = reach(check, d.Conclude.DB); err == nil {
		err = checkVersion(check, d.Dialect, d.Conclude.DB)
	}
	if err == nil {
		err = d.Dialect.schema.check(check, d.Conclude.DB)
	}
	if err == nil {
		err = d.identify(check, migrates)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledger %s: %w", Masked(name), d.Dialect.advised(err)), d.Close())
	}
	return d, nil
}

// reach connects before anything else. So a starting node waits for another node's migration, but not for a server
// that hangs.
func reach(ctx context.Context, db *sql.DB) error {
	within, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := db.PingContext(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the server did not answer within %v: %w", connectTimeout, err)
	}
	return err
}

const (
	// serverWriters bounds the concurrent transactions of a node: one for each campaign that is being
	// claimed. The transactions of one campaign run one after another anyway.
	serverWriters = 16
	// serverConcluders bounds the concurrent reads that decisions depend on. Each reads a few rows, except
	// the read of all holders of a campaign that is sold out.
	serverConcluders = 8
	// serverReaders bounds all other concurrent reads, exports included, so that they never take a connection
	// from decisions.
	serverReaders = 8
	// serverAuditors bounds the concurrent checks of an audit. One check may take minutes.
	serverAuditors = 2
	// serverConnections is how many connections a node takes at most.
	serverConnections = serverWriters + serverConcluders + serverReaders + serverAuditors
	// idleFor is less than deciding.idle, so that a node never uses a connection that the server has ended.
	idleFor = 5 * time.Second
)

// connectServer returns a database with its connection pools. Connections open at first use.
func connectServer(name string, concludes, reads patience) (*DB, error) {
	u, err := parseServer(name)
	if err != nil {
		return nil, err
	}
	d := newDB(serverDialect(u.Scheme))
	for _, p := range []struct {
		db   **sql.DB
		p    patience
		most int
	}{
		{&d.Write, deciding, serverWriters},
		{&d.Conclude.DB, concludes, serverConcluders},
		{&d.Read.DB, reads, serverReaders},
		{&d.Audits.DB, patience{primary: reads.primary}, serverAuditors},
	} {
		db, err := d.Dialect.open(u, p.p)
		if err != nil {
			return nil, err // the name is wrong: the first pool failed, and none is open
		}
		db.SetMaxOpenConns(p.most)
		db.SetMaxIdleConns(p.most)
		db.SetConnMaxIdleTime(idleFor)
		*p.db = db
	}
	return d, nil
}
