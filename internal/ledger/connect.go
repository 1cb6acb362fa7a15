package ledger

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
	// answer is how long the server may take to answer, or between two parts of an
	// answer. 0: as long as the caller waits.
	answer time.Duration
	// idle is after how long the server ends a transaction that does nothing, so that
	// a node that is frozen in it does not keep a campaign from the others. 0: as the server has it.
	idle time.Duration
	// primary tells that a server which only reads is of no use.
	primary bool
}

var (
	deciding   = patience{answer: 2 * lockTimeout, idle: 10 * time.Second, primary: true}
	concluding = deciding
	reading    = patience{answer: 30 * time.Second} // a long export waits for its client, too
	migrating  = patience{primary: true}            // a statement may rewrite a table
)

// errStandby says that a server may not be asked, because it may not have what was written.
var errStandby = errors.New("the server is a standby, or takes no writes for another reason: name the primary, or wait until there is one")

// An impatient connection fails where an answer takes too long, for a driver that
// knows deadlines of whole calls only. Such a deadline stands over it.
type impatient struct {
	net.Conn
	answer time.Duration

	mu      sync.Mutex // guards what follows, and the connection's deadline
	driving bool       // the driver has set a deadline
}

// Read reads what comes in time.
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

// SetDeadline sets the driver's deadline; the zero time takes it away.
func (c *impatient) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.driving = !at.IsZero()
	return c.Conn.SetDeadline(at)
}

// openServer opens the ledger on a server, and migrates it if wanted. concludes and reads are
// how long the connections of these pools wait, and at which servers.
func openServer(ctx context.Context, name string, o Options, migrates bool, concludes, reads patience) (*Ledger, error) {
	l, err := connectServer(name, o, concludes, reads)
	if err != nil {
		return nil, err
	}
	check, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if migrates {
		l.fingerprint = o.Secret.Fingerprint()
		err = migrateServer(check, l.dialect, name)
	} else if err = reach(check, l.conclude.db); err == nil {
		err = checkVersion(check, l.dialect, l.conclude.db)
	}
	if err == nil {
		err = l.dialect.schema.check(check, l.conclude.db)
	}
	if err == nil {
		err = l.identify(check, migrates)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledger %s: %w", Masked(name), l.dialect.advised(err)), l.Close())
	}
	return l, nil
}

// reach connects first, so that a start waits for another that migrates, but not for a server that hangs.
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
	// serverWriters bounds the transactions of a node at once: one a campaign that
	// is being claimed, and those of one campaign follow one another anyway.
	serverWriters = 16
	// serverConcluders bounds the reads from which something is concluded: each is of a few
	// rows, but for the holders of a campaign that is sold out.
	serverConcluders = 8
	// serverReaders bounds what else reads, exports too, so that it never takes another's place.
	serverReaders = 8
	// serverConnections are those of a node.
	serverConnections = serverWriters + serverConcluders + serverReaders
	// idleFor is less than deciding.idle, so that no connection is used that the server
	// has ended.
	idleFor = 5 * time.Second
)

// connectServer returns a ledger with its connections, which open when first used.
func connectServer(name string, o Options, concludes, reads patience) (*Ledger, error) {
	u, err := parseServer(name)
	if err != nil {
		return nil, err
	}
	l := newLedger(serverDialect(u.Scheme), o)
	for _, p := range []struct {
		db   **sql.DB
		p    patience
		most int
	}{{&l.write, deciding, serverWriters}, {&l.conclude.db, concludes, serverConcluders}, {&l.read.db, reads, serverReaders}} {
		db, err := l.dialect.open(u, p.p)
		if err != nil {
			return nil, err // it is of the name, so that none was opened before
		}
		db.SetMaxOpenConns(p.most)
		db.SetMaxIdleConns(p.most)
		db.SetConnMaxIdleTime(idleFor)
		*p.db = db
	}
	return l, nil
}
