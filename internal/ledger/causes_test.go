package ledger_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// TestEachRefusalHasItsCauseCode records a coupon that the ledger refuses for each reason, and buries it with the words of the refusal, as a recorder does.
func TestEachRefusalHasItsCauseCode(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 2)
		create(t, l, "d", 2)
		recordIn(t, l, stage.Coupon("c", 1))
		want := map[string]string{}
		buries := func(code string, b record.Batch) {
			t.Helper()
			_, err := l.Recorder.Record(t.Context(), b)
			if err == nil {
				t.Fatalf("%s: it is recorded", code)
			}
			stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), b, err.Error())))
			all := letters(t, l, ledger.Letters{})
			last := all[len(all)-1]
			want[last.Source] = code
		}
		changed := func(number int64, change func(*firstcome.Coupon)) record.Batch {
			c := stage.Coupon("c", number)
			change(&c)
			return given(c)
		}
		buries("number_taken", changed(1, func(c *firstcome.Coupon) { c.User = "another" }))
		buries("user_holds_another", changed(2, func(c *firstcome.Coupon) { c.User = "user-1" }))
		buries("unknown_terms", changed(3, func(c *firstcome.Coupon) { c.TermsVersion = 99 }))
		buries("malformed", changed(4, func(c *firstcome.Coupon) { c.Code = "short" }))
		buries("malformed", changed(5, func(c *firstcome.Coupon) { c.Ticket = 7 }))
		buries("malformed", changed(6, func(c *firstcome.Coupon) { c.User = "\n" }))
		other := given(stage.Coupon("c", 7))
		other.Epoch = 0
		buries("other_epoch", other)
		buries("above_ceiling", changed(2_000_000_000, func(*firstcome.Coupon) {}))
		recordIn(t, l, stage.Coupon("c", 7)) // its letter names another epoch, so it does not take this number
		buries("over_quantity", given(stage.Coupon("c", 8)))
		bury(t, l, "a trial", stage.Coupon("c", 9))
		want[letters(t, l, ledger.Letters{})[len(want)].Source] = "other"
		stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), record.Batch{Campaign: "d", Garbage: []record.Garbage{{Source: "journal/1", Payload: "?", Cause: "its user 3: number 1 is over the quantity of 2"}}}, "")))
		want["journal/1"] = "unreadable"

		got, counts := map[string]string{}, map[string]int64{}
		for _, d := range letters(t, l, ledger.Letters{}) {
			got[d.Source] = d.CauseCode
			counts[d.CauseCode]++
			if !slices.Contains(ledger.CauseCodes(), d.CauseCode) {
				t.Errorf("%q is no code", d.CauseCode)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the codes (-want +got):\n%s", diff)
		}
		causes, err := l.Reads.LetterCauses(t.Context(), "")
		stage.Must(t, err)
		for _, c := range causes {
			if c.Open != counts[c.Code] || c.Campaign == "d" != (c.Code == "unreadable") {
				t.Errorf("of %d letters it counts %+v", counts[c.Code], c)
			}
		}
		stage.Same(t, "causes", len(counts), len(causes))
		of, err := l.Reads.LetterCauses(t.Context(), "d")
		stage.Must(t, err)
		stage.Same(t, "causes of another campaign", []ledger.LetterCause{{Campaign: "d", Code: "unreadable", Open: 1, Through: letters(t, l, ledger.Letters{Campaign: "d"})[0].ID}}, of)
		bad := letters(t, l, ledger.Letters{Cause: "malformed"})
		stage.Same(t, "of one cause", 3, len(bad))
		some, all, err := l.Reads.LettersToResolve(t.Context(), ledger.Letters{Campaign: "c", Cause: "malformed", After: bad[0].ID, Through: bad[1].ID, Limit: 5})
		stage.Must(t, err)
		if all != 1 || len(some) != 1 || some[0].ID != bad[1].ID {
			t.Errorf("between the first and the second there are %d: %+v", all, some)
		}
	})
}
