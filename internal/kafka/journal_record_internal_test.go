package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// TestARecordSaysWhatWasIssuedDirectly has a directly issued coupon between two claimed ones.
func TestARecordSaysWhatWasIssuedDirectly(t *testing.T) {
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	var coupons []firstcome.Coupon
	for n := range int64(6) {
		coupons = append(coupons, firstcome.Coupon{
			Campaign: "c", Number: n + 1, User: firstcome.UserID(fmt.Sprint("u", n)), Code: secret.Code("c", n+1),
			IssuedAt: time.UnixMicro(9).UTC(), TermsVersion: 1, Direct: n/2 == 1,
		})
	}
	records, err := recordsOf(record.Batch{Campaign: "c", CampaignUID: "m", Epoch: 1, Coupons: coupons}, mostBytes)
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if got, err := readBatch(secret, records[0]); err != nil || !slices.Equal(got.Coupons, coupons) {
		t.Errorf("it is read as %+v, %v", got.Coupons, err)
	}
}

// TestARecordOfMoreUsersThanAScriptServesIsOnePieceOfGarbage covers a record with one run, and one with several.
func TestARecordOfMoreUsersThanAScriptServesIsOnePieceOfGarbage(t *testing.T) {
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ runs, users, want int }{
		{1, gate.MaxBatch, gate.MaxBatch}, {1, gate.MaxBatch + 1, 0}, {1, 19_000, 0}, {19, 1000, 0},
	} {
		run := `{"first": 1, "at": 1, "terms": 1, "users": ["u"` + strings.Repeat(`,"u"`, c.users-1) + `]}`
		value := fmt.Sprintf(`{"format": 1, "campaign_uid": "ours.1.secret", "epoch": 1, "runs": [%s]}`, run+strings.Repeat(","+run, c.runs-1))
		b, err := readBatch(secret, &kgo.Record{Key: []byte("c"), Value: []byte(value)})
		if len(b.Coupons) != c.want && err == nil || c.want == 0 && err == nil || c.want > 0 && err != nil {
			t.Errorf("%d runs of %d users: %d coupons, %v", c.runs, c.users, len(b.Coupons), err)
		}
	}
}
