package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// A schema describes how a dialect's tables are created and checked.
type schema struct {
	goose  goose.Dialect
	tables string // query that returns the names of the existing tables
	// The following fields are for servers.
	// A server sets locker or alone, so that one node migrates at a time. A lock ends with its connection.
	// locker is goose's own lock. alone is held during all of goose's work: on MySQL, goose creates its version
	// table before it takes its own lock, and two nodes that do so at once would each insert version 0.
	locker func() (lock.SessionLocker, error)
	alone  func(context.Context, *sql.DB) (release func(), err error)
	// check returns an error that says what to do if the tables do not compare IDs byte by byte.
	check func(context.Context, *sql.DB) error
}

// migrateTimeout is how long a node waits for another node's migration.
const migrateTimeout = 5 * time.Minute

// A table is a table of the ledger: its name, one of its columns, and the rights to its rows that a serving node
// needs in addition to SELECT.
type table struct{ name, column, rights string }

// tables are the tables of the ledger and of goose.
var tables = []table{
	{"campaigns", "id", "INSERT UPDATE"},
	{"coupons", "number", "INSERT UPDATE"},
	{"tickets", "ticket", "INSERT UPDATE"},
	{"past_lines", "generation", "INSERT"},
	{"facts", "position", "INSERT"},
	{"changes", "version", "INSERT UPDATE"},
	{"dead_letters", "source", "INSERT UPDATE"},
	{"lost", "number", "INSERT"},
	{"code_lists", "entries", "INSERT UPDATE"},
	{"code_entries", "entry", "INSERT UPDATE"},
	{"proofs", "campaign_id", "INSERT UPDATE"},
	{"gate_runs", "run", "INSERT UPDATE"},
	{"journals", "topic", "INSERT UPDATE"},
	{"followers", "name", "INSERT UPDATE"},
	{"cursors", "position", "INSERT UPDATE"},
	{"audit_log", "actor", "INSERT"},
	{"api_keys", "id", "INSERT UPDATE"},
	{"identity", "id", "INSERT"},
	{"nodes", "host", "INSERT UPDATE"},
	{"compatibility", "id", ""},
	{"schema_checksums", "version", ""},
	{versionTable, "version_id", ""},
}

// versionTable is goose's table of the schema's versions.
const versionTable = "goose_db_version"

func migrationsOf(d *Dialect) (fs.FS, error) { return fs.Sub(migrations, "migrations/"+d.name) }

func migrator(d *Dialect, db *sql.DB) (*goose.Provider, error) {
	dir, err := migrationsOf(d)
	if err != nil {
		return nil, err
	}
	var options []goose.ProviderOption
	if d.schema.locker != nil {
		locker, err := d.schema.locker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(d.schema.goose, db, summed{dir}, options...)
}

// migrateServer runs migrate with connections of its own.
func migrateServer(ctx context.Context, d *Dialect, name string) error {
	u, err := parseServer(name)
	if err != nil {
		return err
	}
	db, err := d.open(u, migrating)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := reach(ctx, db); err != nil {
		return err
	}
	return migrate(ctx, d, db)
}

// migrate upgrades the schema to this binary's version, or checks that the binary may serve on a newer schema. It
// refuses a database that belongs to another application. If the schema is current, migrate needs only the right to
// read. A migration that was killed continues at the next call: on SQLite and PostgreSQL each step is one
// transaction, and on MySQL the statements of a step may run again.
func migrate(ctx context.Context, d *Dialect, db *sql.DB) error {
	there, err := tablesOf(ctx, d, db)
	if err != nil {
		return err
	}
	if isLedger(there) {
		switch err := checkVersion(ctx, d, db); {
		case err == nil || !errors.Is(err, errOlderSchema):
			return err
		}
	} else if foreign := foreigners(there); len(foreign) > 0 {
		return fmt.Errorf("the database has tables of something else (%s): create database firstcome for the ledger alone, or name another file", strings.Join(foreign, ", "))
	}
	m, err := migrator(d, db)
	if err != nil {
		return err
	}
	if d.schema.alone != nil {
		release, err := d.schema.alone(ctx, db)
		if err != nil {
			return err
		}
		defer release()
	}
	switch _, err = m.Up(ctx); {
	case d.denied(err):
		return fmt.Errorf("the ledger's database user lacks the right to make its tables: run firstcome migrate as a user who owns the database: %w", err)
	case err != nil:
		return err
	}
	return checkVersion(ctx, d, db) // isLedger does not recognize the tables of a very old ledger
}

// isLedger reports whether tables are a ledger's tables. It needs several names, because other applications may also
// use goose, or have a table of campaigns.
func isLedger(there []string) bool {
	for _, table := range []string{versionTable, "campaigns", "coupons", "compatibility"} {
		if !slices.Contains(there, table) {
			return false
		}
	}
	return true
}

// foreigners returns at most five tables that cannot belong to a ledger whose first migration was interrupted. A
// migration creates goose's table first. Without that table, all tables belong to another application, even if they
// have a ledger's names.
func foreigners(there []string) []string {
	begun := slices.Contains(there, versionTable)
	foreign := slices.DeleteFunc(slices.Clone(there), func(name string) bool {
		return begun && slices.ContainsFunc(tables, func(t table) bool { return t.name == name })
	})
	return foreign[:min(len(foreign), 5)]
}

func tablesOf(ctx context.Context, d *Dialect, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, d.schema.tables)
	return AllRows(rows, err, One[string])
}

var errOlderSchema = errors.New("run firstcome migrate")

// checkVersion returns an error that says what to do if this binary may not serve on the schema.
func checkVersion(ctx context.Context, d *Dialect, db *sql.DB) error {
	m, err := migrator(d, db)
	if err != nil {
		return err
	}
	var has sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&has); err != nil {
		switch {
		case !d.Shared && !isOther(err):
			return fmt.Errorf("read the ledger's schema: %w. The user needs the right to write the file and its directory, where SQLite keeps FILE-wal and FILE-shm: also to read", err)
		case d.Shared && (d.Classify(err) != broken || d.advice(err) != "" || d.denied(err)):
			return d.explain(`SELECT`, err) // the query did not get as far as the tables
		}
		return fmt.Errorf("this is not a ledger of firstcome, or an empty one: %w", err)
	}
	if err := checkSums(ctx, d, db, m, has.Int64); err != nil {
		return err
	}
	sources := m.ListSources()
	switch wants := sources[len(sources)-1].Version; {
	case has.Int64 > wants:
		return checkNewer(ctx, db, has.Int64, wants)
	case has.Int64 < wants:
		return fmt.Errorf("the ledger's schema is version %d and this firstcome needs %d: %w", has.Int64, wants, errOlderSchema)
	}
	return nil
}

// idColumns are the columns that identify campaigns, users and coupons, with the number of bytes that each must hold.
var idColumns = map[string]int64{
	"campaigns.id": 63, "coupons.campaign_id": 63, "coupons.user_id": 128, "coupons.code": 16,
	"facts.campaign_id": 63, "tickets.campaign_id": 63, "tickets.user_id": 128, "past_lines.campaign_id": 63, "changes.campaign_id": 63, "lost.campaign_id": 63, "cursors.campaign_id": 63,
	"dead_letters.campaign_id": 63, "dead_letters.user_id": 128, "audit_log.campaign_id": 63, "audit_log.user_id": 128,
}

// checkColumns checks the columns that a query lists (table, column, collation, length) against idColumns. Each must
// be long enough, and must have the given collation, which compares bytes.
func checkColumns(ctx context.Context, db *sql.DB, query, collation, advice string) error {
	rows, err := db.QueryContext(ctx, query)
	var errs []error
	err = EachRow(rows, err, func(take Scan) error {
		var table, column, has string
		var length int64
		if err := take(&table, &column, &has, &length); err != nil {
			return err
		}
		name := table + "." + column
		if least := idColumns[name]; least > 0 && (has != collation || length < least) {
			errs = append(errs, fmt.Errorf("the ledger's column %s has the collation %q and %d bytes, so it would take different ids for the same: "+advice, name, has, length, table, column))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// checkNewer returns nil if a binary that knows the schema up to version wants may serve on the newer version has.
// The ledger stores the lowest version that a binary must know. If that cannot be read, checkNewer returns an error.
func checkNewer(ctx context.Context, db *sql.DB, has, wants int64) error {
	var from int64
	if err := db.QueryRowContext(ctx, `SELECT compatible_from FROM compatibility`).Scan(&from); err != nil {
		return fmt.Errorf("%w (which binaries it is compatible with cannot be read: %w)", newerSchema(has, wants), err)
	}
	if from > wants {
		return fmt.Errorf("%w; it is compatible with binaries that know version %d", newerSchema(has, wants), from)
	}
	return nil
}

func newerSchema(has, wants int64) error {
	return fmt.Errorf("the ledger's schema is version %d and this firstcome knows only %d: run the newer firstcome that migrated it", has, wants)
}
