package stage

import (
	"testing"
	"time"
)

// KeepsPace wants that never more coupons were issued, in any time, than a pace has in it and one bucket, which is 100 ms
// of it and at least one coupon. The instants are the gate's, so this is exact.
func KeepsPace(t testing.TB, issued []time.Time, perSecond int64) {
	t.Helper()
	const second = 1_000_000 // in microseconds
	bucket := max(perSecond*second/10, second)
	var behind int64 // the most by which what was issued before some coupon is less than what was due by then
	for n, at := range issued {
		due := at.Sub(issued[0]).Microseconds() * perSecond
		behind = max(behind, due-int64(n)*second)
		if over := int64(n+1)*second - due + behind - bucket; over > 0 {
			t.Errorf("with coupon %d, %d too many were issued for a pace of %d a second", n+1, (over+second-1)/second, perSecond)
			return
		}
	}
}
