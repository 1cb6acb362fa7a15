package redis

import (
	"testing"

	"github.com/firstcome/firstcome"
)

// FuzzF44EntriesAreCouponsOrGarbage decodes entries that somebody may have written.
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
