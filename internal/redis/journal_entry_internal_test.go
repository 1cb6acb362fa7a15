package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// TestAnEntryOfMoreUsersThanAScriptServesIsOnePieceOfGarbage: it becomes one dead letter, not one for each user.
func TestAnEntryOfMoreUsersThanAScriptServesIsOnePieceOfGarbage(t *testing.T) {
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	for users, want := range map[int][2]int{gate.MaxBatch: {gate.MaxBatch, 0}, gate.MaxBatch + 1: {0, 1}, 19_000: {0, 1}} {
		names := make([]string, users)
		for n := range names {
			names[n] = fmt.Sprint("u", n)
		}
		e := item{"1-1", map[string]string{"format": "1", "epoch": "1", "at": "1700000000000000", "terms": "1", "first": "1", "users": strings.Join(names, separator)}}
		all := shares("redis:x", "c", "m", secret, []item{e}, 10)
		if len(all) != 1 || len(all[0].Coupons) != want[0] || len(all[0].Garbage) != want[1] {
			t.Errorf("%d users are %d coupons and %d pieces of garbage", users, len(all[0].Coupons), len(all[0].Garbage))
		}
	}
}

// FuzzF44EntriesAreCouponsOrGarbage decodes entries that another program may have written.
func FuzzF44EntriesAreCouponsOrGarbage(f *testing.F) {
	f.Add("1", "1", "1700000000000000", "1", "1", "a\nb")
	f.Add("1", "1", "1700000000000000", "1", "9007199254740991", "a\nb")
	f.Add("2", "", "-1", "1e9", "0", "\n\n")
	f.Add("1", "1", "1", "1", "1", "a\na")
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, format, epoch, at, terms, first, users string) {
		e := item{"1-1", map[string]string{"format": format, "epoch": epoch, "at": at, "terms": terms, "first": first, "users": users}}
		all := shares("redis:x", "c", "m", secret, []item{e, e}, 10)
		got := 0
		for _, s := range all {
			got += len(s.entries)
			if len(s.Garbage) > 0 && len(s.Coupons) > 0 {
				t.Error("one entry is both coupons and garbage")
			}
			for n, c := range s.Coupons {
				_, err := firstcome.ParseUserID(string(c.User))
				if err != nil || c.Number < 1 || s.Epoch < 1 || c.TermsVersion < 1 || n > 0 && c.Number <= s.Coupons[n-1].Number {
					t.Errorf("coupon %d is %+v: %v", n, c, err)
				}
			}
			for _, g := range s.Garbage {
				if g.Source != "redis:x/c/1-1" || g.Cause == "" || len(g.Payload) > maxPayload {
					t.Errorf("the garbage is %+v", g)
				}
			}
		}
		if got != 2 {
			t.Errorf("%d of 2 entries are left", got)
		}
	})
}
