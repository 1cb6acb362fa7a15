package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAFactWhoseCouponIsGoneHasItsNumberOnly(t *testing.T) {
	path := file(t)
	l := start(t, path, nil)
	create(t, l, "c", 9)
	claim(t, l.Gate, "c", "a", "b", "d", "e")
	void(t, l, "c", 2)
	claim(t, l.Gate, "c", "f")
	execute(t, services.Beside(t, path), `DELETE FROM coupons WHERE number IN (1, 3, 5)`)
	var got []string
	for after := range int64(7) { // each page of one, and the whole
		limit := 1
		if after == 6 {
			after, limit = 0, 100
		}
		err := l.Reads.Facts(t.Context(), "c", after, limit, func(f firstcome.Fact) error {
			got = append(got, fmt.Sprintf("%d %s %d by %q", f.Position, f.Kind, f.Coupon.Number, f.Coupon.User))
			return nil
		})
		stage.Must(t, err)
	}
	all := []string{
		`1 coupon.issued 1 by ""`, `2 coupon.issued 2 by "b"`, `3 coupon.issued 3 by ""`, `4 coupon.issued 4 by "e"`,
		`5 coupon.voided 2 by "b"`, `6 coupon.issued 5 by ""`,
	}
	if diff := cmp.Diff(append(all, all...), got); diff != "" {
		t.Error(diff)
	}
}

func TestChangesAreListedInTheirOrder(t *testing.T) {
	l := start(t, file(t), nil)
	create(t, l, "c", 9)
	create(t, l, "other", 9)
	claim(t, l.Gate, "c", "a", "b")
	for _, to := range []firstcome.ChangeKind{firstcome.ChangePause, firstcome.ChangeResume} {
		stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "c", 0, to)))
	}
	void(t, l, "c", 2)
	var got []string
	each := func(c firstcome.Change, refused bool) error {
		got = append(got, fmt.Sprintf("%s %d %s %t %d %q %d", c.Campaign, c.Version, c.Kind, refused, c.Terms.Quantity, c.User, c.Number))
		return nil
	}
	stage.Must(t, l.Reads.Changes(t.Context(), "c", 0, 2, each))
	stage.Must(t, l.Reads.Changes(t.Context(), "c", 2, 9, each))
	want := []string{`c 1 terms false 9 "" 0`, `c 2 pause false 0 "" 0`, `c 3 resume false 0 "" 0`, `c 4 void false 0 "b" 2`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
