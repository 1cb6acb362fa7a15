package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/doctor"
)

const (
	// At slowTrip a transaction, about four round trips, takes half of the time that a claim should take.
	slowTrip = time.Millisecond
	// examineTimeout bounds an examination of a server. It is far more than one takes at a server that answers.
	examineTimeout = 30 * time.Second
)

// Examine says whether the ledger's server, or its file and this machine's disk, will do for firstcome. It
// changes nothing. It compares a server's clock with this machine's, and a server's limits with what a node
// needs.
func Examine(ctx context.Context, name string) doctor.Findings {
	const what = "ledger"
	if !OnServer(name) {
		return examineFile(ctx, name)
	}
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	e := &exam{ctx: ctx}
	u, err := parseServer(name)
	if err != nil {
		e.Add(doctor.Fail, what, "see firstcome serve --help", "%v", err)
		return e.Findings
	}
	e.d = serverDialect(u.Scheme)
	if err := e.open(u); err != nil {
		e.Add(doctor.Fail, what, "see docs/operate.md", "%v", err)
		return e.Findings
	}
	defer func() { _ = e.db.Close() }() // it was only read
	if !e.reach(Masked(name)) {
		return e.Findings
	}
	e.d.examine(e)
	e.session(overridden(e.d.session(e.p), u))
	e.clock()
	if e.schema() {
		e.rights()
	}
	return e.Findings
}

// An exam examines one server.
type exam struct {
	doctor.Findings
	ctx context.Context
	db  *sql.DB
	d   *Dialect
	p   patience // of its sessions
}

// unknown adds a warning that something could not be read.
func (e *exam) unknown(what string, err error) {
	e.Add(doctor.Warn, what, "let this user read it, or ask whoever runs the server", "this cannot be read: %v", err)
}

// open connects to a server that takes writes, as a node does. If there is none, it connects to a read-only
// server, and the examination then finds that.
func (e *exam) open(u *url.URL) (err error) {
	for _, p := range []patience{concluding, reading} {
		e.p = p
		if e.db, err = e.d.open(u, p); err != nil {
			return err
		}
		e.db.SetMaxOpenConns(1)
		if err = e.db.PingContext(e.ctx); !errors.Is(err, errStandby) {
			break
		}
		_ = e.db.Close()
	}
	return nil
}

// reach connects, and measures how long the server takes to answer.
func (e *exam) reach(name string) bool {
	const what = "ledger"
	if err := e.db.PingContext(e.ctx); err != nil {
		err = e.d.advised(err)
		e.Add(doctor.Fail, what, "check host, port, user, password and database, and that the server runs", "%s does not answer: %v", name, err)
		return false
	}
	took, err := doctor.Median(func() error {
		_, err := e.db.ExecContext(e.ctx, `SELECT 1`)
		return err
	})
	if err != nil {
		e.unknown(what, err)
		return false
	}
	e.Hold(took <= slowTrip, doctor.Warn, what, "bring nodes and database closer together: a transaction takes several round trips",
		"%s answers in %v (median of %d)", name, took, doctor.Rounds)
	return true
}

// settings returns the rows of a query as a map from name to value.
func (e *exam) settings(query string) (map[string]string, error) {
	return namedValues(e.ctx, e.db, query)
}

// namedValues returns the rows of a query as a map from name to value. Names are in lower case.
func namedValues(ctx context.Context, db *sql.DB, query string) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, query)
	all := map[string]string{}
	return all, EachRow(rows, err, func(take Scan) error {
		var name, value string
		err := take(&name, &value)
		all[strings.ToLower(name)] = value
		return err
	})
}

// want compares a setting with its required value. It skips a setting that the server does not have.
func (e *exam) want(settings map[string]string, name, value string, otherwise doctor.Grade, fix string) {
	has, there := settings[name]
	if !there {
		return
	}
	e.Hold(strings.EqualFold(has, value), otherwise, name, fix, "%s", has)
}

// connections compares the server's limit with the connections that nodes take.
func (e *exam) connections(most, used int64, fix string) {
	nodes := most / serverConnections
	grade := doctor.OK
	switch {
	case nodes < 1:
		grade = doctor.Fail
	case nodes < 2:
		grade = doctor.Warn
	}
	e.Add(grade, "connections", fix, "at most %d, %d in use; a node takes up to %d, so there is room for %d nodes", most, used, serverConnections, nodes)
}

// clock compares the server's clock, which decides, with this machine's.
func (e *exam) clock() {
	const what = "the ledger's clock"
	err := e.Clock(what, "set both with NTP: the server's clock opens and closes campaigns, where the ledger decides", func() (time.Time, error) {
		var at int64
		err := e.db.QueryRowContext(e.ctx, `SELECT `+e.d.Clock).Scan(&at)
		return time.UnixMicro(at), err
	})
	if err != nil {
		e.unknown(what, err)
	}
}

// schema adds whether there are tables, whether they have this binary's version, and whether they compare ids
// byte by byte.
func (e *exam) schema() (there bool) {
	const what = "tables"
	grade, migrate := doctor.Fail, "firstcome migrate, as a user who may make tables"
	if e.mayMakeTables() {
		grade, migrate = doctor.Warn, "nothing: this user may make tables, so the first start of serve does it, or firstcome migrate"
	}
	found, err := tablesOf(e.ctx, e.d, e.db)
	if err != nil {
		e.unknown(what, err)
		return false
	}
	if !isLedger(found) {
		if foreign := foreigners(found); len(foreign) > 0 {
			e.Add(doctor.Fail, what, "create database firstcome, for the ledger alone", "the database has tables of something else: %s", strings.Join(foreign, ", "))
		} else {
			e.Add(grade, what, migrate, "there are none yet")
		}
		return false
	}
	if err := checkVersion(e.ctx, e.d, e.db); err != nil {
		fix := migrate
		switch {
		case errors.Is(err, errDevelopment):
			grade, fix, err = doctor.Fail, adviceDevelopment, errDevelopment
		case !errors.Is(err, errOlderSchema):
			grade, fix = doctor.Fail, "run the newer firstcome"
		}
		e.Add(grade, what, fix, "%v", err)
		return true
	}
	if !slices.Contains(found, "identity") {
		e.Add(doctor.Fail, what, adviceRestored, "%v", errNoIdentity)
		return true
	}
	e.Add(doctor.OK, what, "", "they are those of this firstcome")
	err = e.d.schema.check(e.ctx, e.db)
	if err != nil {
		e.Add(doctor.Fail, "ids", "the statement that is named", "%v", err)
	} else {
		e.Add(doctor.OK, "ids", "", "the columns and the database keep them byte by byte")
	}
	return true
}

// mayMakeTables reports whether the user surely has the right to make tables.
func (e *exam) mayMakeTables() (may bool) {
	err := e.db.QueryRowContext(e.ctx, e.d.mayMakeTables).Scan(&may)
	return err == nil && may
}

// rights tries statements that need the rights and touch no row.
func (e *exam) rights() {
	const what, fix = "rights", "grant SELECT, INSERT and UPDATE on all tables of the ledger"
	var missing []string
	for _, right := range rightsTried() {
		_, err := e.db.ExecContext(e.ctx, right.try)
		switch {
		case e.d.denied(err):
			missing = append(missing, right.name)
		case err != nil && e.d.Classify(err) == unreachable:
			e.Add(doctor.Fail, what, "the primary, with room for writes: is this a replica?", "%s: %v", right.name, err)
			return
		}
	}
	if len(missing) > 0 {
		e.Add(doctor.Fail, what, fix, "the user may not %s", strings.Join(missing, ", "))
		return
	}
	e.Add(doctor.OK, what, "", "the user may read and write the ledger's rows; only firstcome migrate makes tables")
}

// A right is a right that a serving node needs, with a statement that needs it and touches no row.
type right struct{ name, try string }

func rightsTried() []right {
	var all []right
	for _, t := range tables {
		for _, verb := range append([]string{"SELECT"}, strings.Fields(t.rights)...) {
			try := map[string]string{
				"SELECT": `SELECT %[2]s FROM %[1]s WHERE 1 = 0`,
				"INSERT": `INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM %[1]s WHERE 1 = 0`,
				"UPDATE": `UPDATE %[1]s SET %[2]s = %[2]s WHERE 1 = 0`,
			}[verb]
			all = append(all, right{verb + " " + t.name, fmt.Sprintf(try, t.name, t.column)})
		}
	}
	return all
}

// An oldTransaction keeps the server from removing old versions of rows.
type oldTransaction struct {
	who string
	age time.Duration
}

// oldTransactions returns the transactions of at least an age that this user may see, the oldest first.
func (d *Dialect) oldTransactions(ctx context.Context, db *sql.DB, least time.Duration) ([]oldTransaction, error) {
	if d.old == "" {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, d.Rebind(d.old), least.Seconds())
	return AllRows(rows, err, func(take Scan) (o oldTransaction, err error) {
		var seconds int64
		err = take(&o.who, &seconds)
		o.age = time.Duration(seconds) * time.Second
		return o, err
	})
}

// OldTransaction returns the oldest transaction, of at least an age, that keeps the server from removing old versions of
// rows: who has it, and its age. who is empty if there is none, or if this user may not see it.
func (d *DB) OldTransaction(ctx context.Context, least time.Duration) (who string, age time.Duration, err error) {
	all, err := d.Dialect.oldTransactions(ctx, d.Conclude.DB, least)
	if err != nil || len(all) == 0 {
		return "", 0, Wrap(err, "look for old transactions")
	}
	return all[0].who, all[0].age, nil
}
