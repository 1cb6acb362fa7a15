//go:build !check && (!race || soak)

package ops_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF59ALapsedSemiSynchronousReplicationIsShown has a primary without a replica, which waits for a millisecond, and then
// a replica that comes and goes. At the end the primary would wait for a day, so it commits nothing.
func TestF59ALapsedSemiSynchronousReplicationIsShown(t *testing.T) {
	primary := services.MariaDB.Server(t, append(services.MariaDB.Fast(), "--log-bin=log", "--server-id=1", "--sync-binlog=0",
		"--rpl-semi-sync-master-enabled=ON", "--rpl-semi-sync-master-timeout=1", "--rpl-semi-sync-master-wait-point=AFTER_SYNC")...)
	name, err := primary.Database(t.Context())
	stage.Must(t, err)
	w := &watched{t: t}
	w.Monitor = ops.New(slog.New(slog.NewTextHandler(&w.log, nil)), "v9", "abc")
	w.ledger, err = ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret(), OnCommit: w.Commit})
	stage.Must(t, err)
	stage.Serve(t, w.ledger)
	w.WatchLedger(w.ledger)
	w.create("c", 3)
	shows := func(lapsed bool, grade doctor.Grade) {
		t.Helper()
		stage.Await(t, "what doctor finds", grade, func() doctor.Grade {
			for _, f := range sqldb.Examine(t.Context(), name) {
				if f.What == "semi-synchronous replication" {
					return f.Grade
				}
			}
			return ""
		})
		w.want(map[bool]string{false: `firstcome_ledger_unreplicated 0`, true: `firstcome_ledger_unreplicated 1`}[lapsed])
		if _, body := w.get("/readyz?verbose"); strings.Contains(body, "commits without the replica") != lapsed {
			t.Errorf("it has lapsed: %t, and the node says %s", lapsed, body)
		}
	}
	shows(true, doctor.Fail)

	standby, db := primary.Standby(t), services.Beside(t, primary.URL())
	stage.Must(t, services.Execute(t.Context(), standby.URL(), `SET GLOBAL rpl_semi_sync_slave_enabled = ON`, `STOP SLAVE IO_THREAD`, `START SLAVE IO_THREAD`))
	stage.Await(t, "replicas that confirm", "1", func() (clients string) {
		stage.Must(t, db.QueryRowContext(t.Context(), `SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
			WHERE VARIABLE_NAME = 'Rpl_semi_sync_master_clients'`).Scan(&clients))
		return clients
	})
	shows(true, doctor.Fail) // the server waits again once a replica has confirmed a commit
	w.create("d", 3)
	shows(false, doctor.Warn) // it would lapse after a millisecond
	stage.Must(t, services.Execute(t.Context(), primary.URL(), `SET GLOBAL rpl_semi_sync_master_timeout = 86400000`))
	shows(false, doctor.OK)
	stage.Must(t, services.Execute(t.Context(), primary.URL(), `SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_COMMIT`))
	shows(false, doctor.Warn)
	stage.Must(t, services.Execute(t.Context(), primary.URL(), `SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC`))
	shows(false, doctor.OK)
	stage.Must(t, standby.Stop())
	shows(false, doctor.Warn) // commits wait for a replica
	stage.Must(t, services.Execute(t.Context(), primary.URL(), `SET GLOBAL rpl_semi_sync_master_wait_no_slave = OFF`))
	shows(true, doctor.Fail)
}
