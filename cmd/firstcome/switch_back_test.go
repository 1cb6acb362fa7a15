//go:build !check

package main

import (
	"fmt"
	"maps"
	"testing"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// switchedBack are the ways in which a Redis returns to an older state and stays the same process. Each returns the URL of the Redis, and a function that
// takes it back to its state at the call of keep.
var switchedBack = map[string]func(t *testing.T) (url string, keep func(d *desk) (back func())){
	"it follows a replica that lagged, and leads again": func(t *testing.T) (string, func(*desk) func()) {
		p := services.RedisPair(t, "--appendfsync", "always")
		return p.Primary.URL(), func(*desk) func() {
			stage.Must(t, p.Lag(t.Context()))
			return func() {
				stage.Must(t, p.Promote(t.Context()))
				stage.Must(t, p.Follow(t.Context()))
				stage.Must(t, p.Promote(t.Context()))
			}
		}
	},
	"Sentinel switches over, and back": func(t *testing.T) (string, func(*desk) func()) {
		p, at := services.SentinelPair(t, "--appendfsync", "always")
		return at, func(d *desk) func() {
			older := dump(t, d, p.Primary.URL())
			return func() {
				stage.Must(t, p.SwitchOver(t.Context()))
				restore(t, p.Primary.URL(), older) // like a replica that lagged
				stage.Await(t, "the other one follows", true, func() bool {
					return maps.Equal(read(t, d, p.Primary.URL()), read(t, d, p.Replica.URL()))
				})
				stage.Must(t, p.SwitchOver(t.Context()))
			}
		}
	},
	"older keys are put back": func(t *testing.T) (string, func(*desk) func()) {
		server := services.Redis.Server(t, "--appendfsync", "always")
		return server.URL(), func(d *desk) func() {
			older := dump(t, d, server.URL())
			return func() { restore(t, server.URL(), older) }
		}
	},
}

// dump returns the keys of a desk's campaign, each with its value as Redis dumps it.
func dump(t *testing.T, d *desk, url string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, key := range d.keys("c") {
		answer, err := askRedis(url, "DUMP", key)
		stage.Must(t, err)
		values[key], err = answer.ToString()
		stage.Must(t, err)
	}
	return values
}

// read is dump, but the fields of the campaign are in one order. They are a hash table, whose dump has an order of each server's own.
func read(t *testing.T, d *desk, url string) map[string]string {
	t.Helper()
	values, key := dump(t, d, url), d.key("campaign")
	answer, err := askRedis(url, "HGETALL", key)
	stage.Must(t, err)
	fields, err := answer.AsStrMap()
	stage.Must(t, err)
	values[key] = fmt.Sprint(fields)
	return values
}

func restore(t *testing.T, url string, values map[string]string) {
	t.Helper()
	for key, value := range values {
		stage.Must(t, stage.Err(askRedis(url, "RESTORE", key, "0", value, "REPLACE")))
	}
}

// TestF35WhatANodeWasToldIsNotGivenAgain takes a Redis that has issued twenty coupons back to its state after ten. No user claims in between, and the ledger
// has only the first five coupons. No claim is decided until the campaign is rebuilt. A node without earlier answers notices it, too, unless older keys
// were put back: then nothing at the server shows that they are old.
func TestF35WhatANodeWasToldIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	for name, way := range switchedBack {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, keep := way(t)
			d := newDesk(t, url, services.Ledgers[services.SQLite](t), nil, "c")
			other := d.opened(url).AsGate()
			issued := d.issue("c", people("user-", 10)...)
			d.settle(d.record(issued[:5]...))
			back := keep(d)
			d.issue("c", people("later-", 10)...)
			back()
			if name != "older keys are put back" {
				refuses(t, other, gate.ErrUnverified) // although it got no earlier answers
			}
			d.needs(gate.ErrUnverified)
			r := d.watch()
			r.Suspect("c", gate.ErrUnverified)
			stage.Same(t, "a rebuild, and the lost numbers", recovery.Stats{Finished: 1, Lost: 90}, d.decides(r))
			stage.Same(t, "the first who had a coupon, and the next one", []string{"already_issued:1", "issued:101"}, d.claims("user-0", "new"))
		})
	}
}
