package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Grade says how bad a Finding is.
type Grade string

// The grades.
const (
	OK   Grade = "OK"
	Warn Grade = "WARN" // it works, and something is not as it should be, or cannot be known
	Fail Grade = "FAIL" // serve would not start, or would not keep a promise
)

// A Finding is what there is to say of one thing, and what mends it.
type Finding struct {
	Grade            Grade
	What, Found, Fix string
}

const (
	// slowTrip is half of what a claim should take: a transaction is about four round trips.
	slowTrip = time.Millisecond
	trips    = 11
	// tolerated is how far the server's clock may be from this machine's.
	tolerated = time.Second
	// examineTimeout bounds each question to the server.
	examineTimeout = 5 * time.Second
)

// Examine says of the ledger's server whether firstcome can stand on it. It changes
// nothing. The server's clock and limits are held against this machine's and one node's.
func Examine(ctx context.Context, name string) []Finding {
	const what = "ledger"
	u, err := parseServer(name)
	if err != nil {
		return []Finding{{Fail, what, err.Error(), "see firstcome serve --help"}}
	}
	d := serverDialect(u.Scheme)
	db, err := d.open(u, reading)
	if err != nil {
		return []Finding{{Fail, what, err.Error(), "see docs/operate.md"}}
	}
	defer func() { _ = db.Close() }() // it was only read
	db.SetMaxOpenConns(1)
	e := &exam{ctx: ctx, db: db, d: d}
	if !e.reach(Masked(name)) {
		return e.findings
	}
	d.examine(e)
	e.clock()
	if e.schema() {
		e.rights()
	}
	return e.findings
}

// An exam looks at one server.
type exam struct {
	ctx      context.Context
	db       *sql.DB
	d        *dialect
	findings []Finding
}

func (e *exam) add(g Grade, what, fix, found string, args ...any) {
	if g == OK {
		fix = ""
	}
	e.findings = append(e.findings, Finding{g, what, fmt.Sprintf(found, args...), fix})
}

// hold adds a finding that is OK if a condition holds, and else has a grade.
func (e *exam) hold(condition bool, otherwise Grade, what, fix, found string, args ...any) {
	if condition {
		otherwise = OK
	}
	e.add(otherwise, what, fix, found, args...)
}

// unknown adds that something cannot be known.
func (e *exam) unknown(what string, err error) {
	e.add(Warn, what, "let this user read it, or ask who runs the server", "it cannot be told: %v", err)
}

// reach connects, and measures how long an answer takes.
func (e *exam) reach(name string) bool {
	const what = "ledger"
	ctx, cancel := context.WithTimeout(e.ctx, examineTimeout)
	defer cancel()
	took := make([]time.Duration, trips)
	if err := e.db.PingContext(ctx); err != nil {
		err = e.d.advised(err)
		e.add(Fail, what, "host, port, user, password and database are right, and the server runs?", "%s does not answer: %v", name, err)
		return false
	}
	for n := range took {
		started := time.Now()
		if _, err := e.db.ExecContext(ctx, `SELECT 1`); err != nil {
			e.unknown(what, err)
			return false
		}
		took[n] = time.Since(started)
	}
	slices.Sort(took)
	e.hold(took[trips/2] <= slowTrip, Warn, what, "bring nodes and database closer together: a transaction is several of them",
		"%s answers in %v (median of %d)", name, took[trips/2].Round(10*time.Microsecond), trips)
	return true
}

// settings returns the rows of a query as a map from name to value.
func (e *exam) settings(query string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(e.ctx, examineTimeout)
	defer cancel()
	rows, err := e.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[strings.ToLower(name)] = value
	}
	return all, rows.Err()
}

// want holds a setting against what it has to be. One that the server does not have is passed over.
func (e *exam) want(settings map[string]string, name, value string, otherwise Grade, fix string) {
	has, there := settings[name]
	if !there {
		return
	}
	e.hold(strings.EqualFold(has, value), otherwise, name, fix, "%s", has)
}

// connections holds the server's limit against what nodes take.
func (e *exam) connections(most, used int64, fix string) {
	const each = serverWriters + serverReaders
	nodes := most / each
	grade := OK
	switch {
	case nodes < 1:
		grade = Fail
	case nodes < 2:
		grade = Warn
	}
	e.add(grade, "connections", fix, "at most %d, %d in use; a node takes up to %d, so there is room for %d nodes", most, used, each, nodes)
}

// clock holds the server's clock, which decides, against this machine's.
func (e *exam) clock() {
	const what = "the ledger's clock"
	ctx, cancel := context.WithTimeout(e.ctx, examineTimeout)
	defer cancel()
	var at int64
	before := time.Now()
	if err := e.db.QueryRowContext(ctx, `SELECT `+e.d.clock).Scan(&at); err != nil {
		e.unknown(what, err)
		return
	}
	middle := before.Add(time.Since(before) / 2)
	apart := time.UnixMicro(at).Sub(middle)
	e.hold(apart.Abs() <= tolerated, Warn, what, "set both with NTP: the server's clock opens and closes campaigns, where the ledger decides",
		"%v from this machine's", apart.Round(time.Millisecond))
}

// schema says whether the tables are there, of this binary's version, and keep ids byte by byte.
func (e *exam) schema() (there bool) {
	const what, migrate = "tables", "firstcome migrate, as a user who may make tables"
	ctx, cancel := context.WithTimeout(e.ctx, examineTimeout)
	defer cancel()
	found, err := tablesOf(ctx, e.d, e.db)
	if err != nil {
		e.unknown(what, err)
		return false
	}
	if !slices.Contains(found, "campaigns") || !slices.Contains(found, "goose_db_version") {
		if foreign := foreigners(found); len(foreign) > 0 {
			e.add(Fail, what, "create database firstcome, for the ledger alone", "the database has tables of something else: %s", strings.Join(foreign, ", "))
		} else {
			e.add(Fail, what, migrate, "there are none yet")
		}
		return false
	}
	if err := checkVersion(ctx, e.d, e.db); err != nil {
		fix := migrate
		if !errors.Is(err, errOlderSchema) {
			fix = "run the newer firstcome"
		}
		e.add(Fail, what, fix, "%v", err)
		return true
	}
	e.add(OK, what, "", "they are those of this firstcome")
	err = e.d.schema.check(ctx, e.db)
	if err != nil {
		e.add(Fail, "ids", "the statement that is named", "%v", err)
	} else {
		e.add(OK, "ids", "", "the columns and the database keep them byte by byte")
	}
	return true
}

// written are the tables that a node inserts into, with a column of each; changed are
// those that it updates.
var written = map[string]string{
	"campaigns": "id", "coupons": "campaign_id", "facts": "campaign_id", "changes": "campaign_id",
	"dead_letters": "source", "lost": "campaign_id", "audit_log": "actor", "api_keys": "id",
}

var changed = []string{"campaigns", "coupons", "changes", "dead_letters", "api_keys"}

// rights tries statements that touch no row.
func (e *exam) rights() {
	const what, fix = "rights", "grant SELECT, INSERT and UPDATE on all tables of the ledger"
	var missing []string
	for _, right := range rightsTried() {
		ctx, cancel := context.WithTimeout(e.ctx, examineTimeout)
		_, err := e.db.ExecContext(ctx, right.try)
		cancel()
		switch {
		case e.d.denied(err):
			missing = append(missing, right.name)
		case err != nil && e.d.classify(err) == unreachable:
			e.add(Fail, what, "the primary, with room for writes: is this a replica?", "%s: %v", right.name, err)
			return
		}
	}
	if len(missing) > 0 {
		e.add(Fail, what, fix, "the user may not %s", strings.Join(missing, ", "))
		return
	}
	e.add(OK, what, "", "the user may read and write the ledger's rows; only firstcome migrate makes tables")
}

// A right is one that serving needs, and a statement that needs it and touches no row.
type right struct{ name, try string }

func rightsTried() []right {
	var all []right
	for _, table := range tables {
		all = append(all, right{"SELECT " + table, fmt.Sprintf(`SELECT 1 FROM %s WHERE 1 = 0`, table)})
		if column := written[table]; column != "" {
			all = append(all, right{"INSERT " + table, fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM %s WHERE 1 = 0`, table, column, column, table)})
		}
		if slices.Contains(changed, table) {
			all = append(all, right{"UPDATE " + table, fmt.Sprintf(`UPDATE %s SET %s = %s WHERE 1 = 0`, table, written[table], written[table])})
		}
	}
	return all
}
