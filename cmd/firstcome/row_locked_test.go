//go:build !check

package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF51ACampaignWhoseRowSomebodyKeepsLockedHoldsUpNoOther locks a campaign's row, like an operator who leaves a transaction open, while a recorder drains
// this campaign and another.
func TestF51ACampaignWhoseRowSomebodyKeepsLockedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel() // they wait for locks
			name := kind.Database(t)
			d := newDesk(t, services.Redis.Database(t), name, nil, "c", "d")
			told := make(stage.Alarms, 1000)
			journal := d.far.Journal.Consumer(redis.ConsumerOptions{Active: d.ledger.Recorder.Active})
			// A single failure that counts would open the breaker.
			recorder := record.NewRecorder(journal, d.ledger.Recorder, record.Options{Workers: 1, Failures: 1, Probe: time.Hour, OnAlarm: told.Raise})
			waiter := issue.NewWaiter(d.remote.gate)
			release := lockRow(t, name, "c")
			stage.Run(t, recorder.Run, waiter.Run)
			locked := d.issue("c", "user-1", "user-2")
			if err := stage.Next[error](t, "word of the lock", told); !errors.Is(err, record.ErrRowLocked) {
				t.Fatalf("told otherwise: %v", err)
			}
			for _, other := range d.issue("d", stage.Users("u-", 1, 20)...) {
				stage.Must(t, recorded(t, waiter, other))
			}
			release()
			stage.Must(t, recorded(t, waiter, locked[1]))
			s := recorder.Stats()
			if s.Breaker != "closed" || s.Coupons != 22 || s.Retries == 0 {
				t.Errorf("the recorder's counters are %+v", s)
			}
		})
	}
}

// lockRow locks a campaign's row until release.
func lockRow(t *testing.T, name string, id firstcome.CampaignID) (release func()) {
	t.Helper()
	db, err := services.Open(name)
	stage.Must(t, err)
	hand, err := db.BeginTx(context.Background(), nil)
	stage.Must(t, err)
	var version int
	stage.Must(t, hand.QueryRow(`SELECT version FROM campaigns WHERE id = '`+string(id)+`' FOR UPDATE`).Scan(&version))
	release = sync.OnceFunc(func() { _ = hand.Rollback() })
	t.Cleanup(func() {
		release()
		_ = db.Close()
	})
	return release
}
