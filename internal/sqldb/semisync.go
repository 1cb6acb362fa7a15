package sqldb

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome/internal/doctor"
)

// A MariaDB or MySQL whose replication is semi-synchronous answers COMMIT once a replica has the transaction. If no
// replica confirms it within a time-out, 10 s by default, the server goes on without: replication has lapsed. Only the
// server's status says so.

// A semisync holds the settings and the status of semi-synchronous replication, by the names that MariaDB has.
type semisync map[string]string

// readSemisync returns what a server says. It needs no privilege.
func readSemisync(ctx context.Context, db *sql.DB) (semisync, error) {
	all := semisync{}
	for _, query := range []string{`SHOW GLOBAL VARIABLES LIKE 'rpl\_semi\_sync\_%'`, `SHOW GLOBAL STATUS LIKE 'rpl\_semi\_sync\_%'`} {
		some, err := namedValues(ctx, db, query)
		if err != nil {
			return nil, err
		}
		for name, value := range some {
			all[strings.NewReplacer("_source_", "_master_", "_replica", "_slave").Replace(name)] = value // the names of MySQL 8.0.26 and later
		}
	}
	return all, nil
}

func (s semisync) enabled() bool { return s["rpl_semi_sync_master_enabled"] == "ON" }

// waits reports whether the server waits for a replica although none is connected. Its commits then wait until the time-out.
func (s semisync) waits() bool { return s["rpl_semi_sync_master_wait_no_slave"] != "OFF" }

// lapsed reports whether the server is set to wait for a replica and commits without one.
func (s semisync) lapsed() bool {
	return s.enabled() && (s["rpl_semi_sync_master_status"] != "ON" || s["rpl_semi_sync_master_clients"] == "0" && !s.waits())
}

// lapsedMySQL implements Dialect.lapsed.
func lapsedMySQL(ctx context.Context, db *sql.DB) (bool, error) {
	s, err := readSemisync(ctx, db)
	return s.lapsed(), err
}

// Lapsed reports whether the server confirms commits that no replica has, although it is set to wait for one.
func (d *DB) Lapsed(ctx context.Context) (bool, error) {
	if d.Dialect.lapsed == nil {
		return false, nil
	}
	return d.Dialect.lapsed(ctx, d.Conclude.DB)
}

// leastWait is a day, in milliseconds: long enough for an operator to bring the replica back.
const leastWait = 24 * 60 * 60 * 1000

// semisync checks semi-synchronous replication, if it is on.
func (e *exam) semisync() {
	const what, lost = "semi-synchronous replication", ": else a failover loses coupons that were answered as recorded"
	s, err := readSemisync(e.ctx, e.db)
	if err != nil {
		e.unknown(what, err)
		return
	}
	if !s.enabled() {
		return
	}
	wait, _ := strconv.ParseInt(s["rpl_semi_sync_master_timeout"], 10, 64) // 0 is too short
	switch {
	case s.lapsed():
		e.Add(doctor.Fail, what, "bring a replica back that confirms (rpl_semi_sync_slave_enabled)"+lost, "it has lapsed: the status is %s, with %s replicas",
			s["rpl_semi_sync_master_status"], s["rpl_semi_sync_master_clients"])
	case wait < leastWait:
		e.Add(doctor.Warn, what, "set rpl_semi_sync_master_timeout (on MySQL rpl_semi_sync_source_timeout) to 86400000 or more"+lost, "it lapses after %d ms without a replica", wait)
	case !s.waits():
		e.Add(doctor.Warn, what, "set rpl_semi_sync_master_wait_no_slave (on MySQL rpl_semi_sync_source_wait_no_replica) to ON"+lost, "it lapses as soon as no replica is connected")
	case s["rpl_semi_sync_master_wait_point"] != "AFTER_SYNC":
		e.Add(doctor.Warn, what, "set rpl_semi_sync_master_wait_point to AFTER_SYNC: else others read a coupon that no replica has", "it waits %s", s["rpl_semi_sync_master_wait_point"])
	default:
		e.Hold(s["rpl_semi_sync_master_clients"] != "0", doctor.Warn, what, "bring a replica back that confirms (rpl_semi_sync_slave_enabled): until then nothing is committed, and claims are 503",
			"%s replicas confirm commits", s["rpl_semi_sync_master_clients"])
	}
}
