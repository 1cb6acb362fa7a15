package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// TestARecordOfMoreUsersThanAScriptServesIsOnePieceOfGarbage, in one run or in several.
func TestARecordOfMoreUsersThanAScriptServesIsOnePieceOfGarbage(t *testing.T) {
	secret, err := firstcome.NewSecret([]byte("a secret of the tests, 32 bytes and more"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ runs, users, want int }{
		{1, flow.MaxBatch, flow.MaxBatch}, {1, flow.MaxBatch + 1, 0}, {1, 19_000, 0}, {19, 1000, 0},
	} {
		run := `{"first": 1, "at": 1, "terms": 1, "users": ["u"` + strings.Repeat(`,"u"`, c.users-1) + `]}`
		value := fmt.Sprintf(`{"format": 1, "marker": "ours.1.secret", "epoch": 1, "runs": [%s]}`, run+strings.Repeat(","+run, c.runs-1))
		b, err := readBatch(secret, &kgo.Record{Key: []byte("c"), Value: []byte(value)})
		if len(b.Coupons) != c.want && err == nil || c.want == 0 && err == nil || c.want > 0 && err != nil {
			t.Errorf("%d runs of %d users: %d coupons, %v", c.runs, c.users, len(b.Coupons), err)
		}
	}
}
