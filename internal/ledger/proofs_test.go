package ledger_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheProofThatEndedLastIsKept has two nodes prove at once: the one that began first ends last.
func TestTheProofThatEndedLastIsKept(t *testing.T) {
	for kind, of := range services.Ledgers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := start(t, of(t), nil)
			create(t, l, "c", 5)
			at := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
			proof := func(id firstcome.CampaignID, by string, minute int) ledger.Proof {
				ended := at.Add(time.Duration(minute) * time.Minute)
				return ledger.Proof{Campaign: id, By: by, Began: at, Ended: ended, Read: int64(minute), Found: []byte(`{"Ledger":{"coupons":5}}`)}
			}
			last := map[string]ledger.Proof{}
			for _, p := range []ledger.Proof{proof("c", "first", 3), proof("c", "slow", 2), proof("d", "other", 1), proof("c", "last", 7)} {
				stage.Must(t, l.Deployment.KeepProof(t.Context(), p))
				kept, err := l.Deployment.Proofs(t.Context(), []firstcome.CampaignID{"c", "none", "d"})
				stage.Must(t, err)
				for _, k := range kept {
					last[string(k.Campaign)] = k
				}
				if p.By == "slow" {
					stage.Same(t, "behind a slow one", proof("c", "first", 3), last["c"])
				}
			}
			stage.Same(t, "the last ones", map[string]ledger.Proof{"c": proof("c", "last", 7), "d": proof("d", "other", 1)}, last)
		})
	}
}
