//go:build !check && (!race || soak)

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF07WithoutRoomForASecondCopyNothingIsFrozen puts 5,000 coupons in force into the ledger. A rebuild must need memory for at least half of them, first
// while Redis also has the coupons, and then after it has lost them.
func TestF07WithoutRoomForASecondCopyNothingIsFrozen(t *testing.T) {
	server := services.Redis.Server(t)
	r := &rewind{desk: newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil)}
	r.reaches("c", r.ledger.Campaigns.Create(t.Context(), "test", "c", stage.Terms(10_000)))
	for n := range 50 {
		r.issue("c", people("user-"+strconv.Itoa(n)+"-", 100)...)
	}
	r.records()
	for _, lost := range []string{"nothing", "holders"} {
		r.do("CONFIG", "SET", "maxmemory", "0")
		if lost == "holders" {
			r.do("DEL", r.key("holders"))
		}
		r.do("CONFIG", "SET", "maxmemory", "1")
		before, used := r.status(), r.used()
		_, err := r.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{})
		var full *recovery.NoRoomError
		if !errors.As(err, &full) || full.Bytes < used+2500*128 {
			t.Errorf("with %s lost: a rebuild beside %d bytes, without room, ends with %v, %+v", lost, used, err, full)
		}
		stage.Same(t, "what the ledger says", before.Epoch, r.status().Epoch)
		if n, err := r.frozen(); n != 0 || err != nil {
			t.Errorf("the gate is frozen: %d, %v", n, err)
		}
		r.do("CONFIG", "SET", "maxmemory", "0")
		r.rebuilt(r.rebuilder())
		stage.Same(t, "who has a coupon", "already_issued:1", r.claims("user-0-0")[0])
	}
	r.do("CONFIG", "SET", "maxmemory", "1gb")
	r.rebuilt(r.rebuilder())
	stage.Same(t, "who has a coupon", []string{"already_issued:5000"}, r.claims(firstcome.UserID("user-49-99")))
}

// frozen returns 1 if the campaign is frozen.
func (r *rewind) frozen() (int64, error) {
	answer := r.do("HEXISTS", r.key("campaign"), "frozen")
	return answer.AsInt64()
}

// used returns how many bytes Redis uses.
func (r *rewind) used() (bytes int64) {
	r.t.Helper()
	answer := r.do("INFO", "memory")
	text, err := answer.ToString()
	stage.Must(r.t, err)
	_, of, _ := strings.Cut(text, "used_memory:")
	if _, err := fmt.Sscan(of, &bytes); err != nil {
		r.t.Fatal(err)
	}
	return bytes
}
