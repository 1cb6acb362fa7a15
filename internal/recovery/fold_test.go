package recovery_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A scribbled record is "EPOCH/GENERATION.TICKET USER @SECOND", with "began N" if the epoch began with another generation, and "left" if the user
// gave the ticket back. Its offset is its index in the list.
func scribbled(t *testing.T, log ...string) iter.Seq2[int64, line.Record] {
	t.Helper()
	return func(yield func(int64, line.Record) bool) {
		for offset, text := range log {
			var r line.Record
			var second int64
			words := strings.Fields(text)
			if _, err := fmt.Sscanf(words[0]+" "+words[2], "%d/%d.%d @%d", &r.Epoch, &r.Generation, &r.Number, &second); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			r.User, r.CampaignUID, r.At, r.Began = firstcome.UserID(words[1]), "ours", at(second), r.Generation
			for n, word := range words {
				switch word {
				case "left":
					r.Left = true
				case "began":
					_, _ = fmt.Sscan(words[n+1], &r.Began)
				case "foreign":
					r.CampaignUID = "another's"
				}
			}
			if !yield(int64(offset), r) {
				return
			}
		}
	}
}

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func TestTheLogSaysWhoIsInLine(t *testing.T) {
	direct := func(user firstcome.UserID, second int64, voided bool) firstcome.Coupon {
		c := firstcome.Coupon{User: user, IssuedAt: at(second), Direct: true}
		if voided {
			c.VoidedAt = at(1000)
		}
		return c
	}
	served := func(user firstcome.UserID, generation, ticket int64) firstcome.Coupon {
		return firstcome.Coupon{User: user, IssuedAt: at(0), VoidedAt: at(1000), Generation: generation, Ticket: ticket}
	}
	for _, c := range []struct {
		name    string
		log     []string
		epochs  map[int64]int64
		ended   int64
		coupons []firstcome.Coupon
		want    string // people, then the last ticket and how many were passed over
	}{
		{"nobody", nil, nil, 0, nil, "0 0"},
		{"everybody, by ticket", []string{"1/1.2 b @2", "1/1.1 a @1", "1/1.2 b @2"}, map[int64]int64{1: 0}, 0, nil, "a1 b2 2 0"},
		{"another campaign's", []string{"1/1.1 a @1 foreign"}, map[int64]int64{1: 0}, 0, nil, "0 0"},
		{"before the epoch's beginning", []string{"1/1.1 a @1", "1/1.2 b @2"}, map[int64]int64{1: 1}, 0, nil, "b2 2 0"},
		{"behind the next epoch's beginning", []string{"1/1.1 a @1", "1/1.2 b @2"}, map[int64]int64{1: 0, 2: 1}, 0, nil, "a1 1 0"},
		{"behind a forgotten epoch's record", []string{"1/1.1 a @1", "2/2.3 c @3", "1/1.2 b @2"}, map[int64]int64{1: 0}, 0, nil, "a1 c3 3 0"},
		{"a forgotten epoch from its first record", []string{"1/1.1 a @1", "1/1.2 b @1", "2/2.3 c @3"}, map[int64]int64{1: 0}, 0, nil, "a1 b2 c3 3 0"},
		{"a generation later than the beginning", []string{"1/1.1 a @1", "2/2.1 a @2", "2/3.1 b @3 began 2"}, map[int64]int64{1: 0, 2: 1}, 0, nil, "b1 1 0"},
		{"the beginning's generation, and the epochs before", []string{"1/1.1 a @1", "2/2.2 b @2", "3/3.3 c @3"}, map[int64]int64{1: 0, 2: 1, 3: 2}, 0, nil, "a1 b2 c3 3 0"},
		{"a late record of an earlier generation", []string{"1/2.1 a @2 began 1", "1/1.1 b @1"}, map[int64]int64{1: 0}, 0, nil, "a1 1 0"},
		{"sold out or closed", []string{"1/1.1 a @1"}, map[int64]int64{1: 0}, 1, nil, "0 0"},
		{"sold out after the epoch began", []string{"1/1.1 a @1", "2/2.2 b @2"}, map[int64]int64{1: 0, 2: 1}, 2, nil, "0 0"},
		{"left", []string{"1/1.1 a @1", "1/1.1 a @2 left", "1/1.2 b @2"}, map[int64]int64{1: 0}, 0, nil, "b2 2 0"},
		{"left twice, and the earlier time is logged last", []string{"1/1.1 a @1", "1/1.3 a @2", "1/1.3 a @3 left", "1/1.1 a @3 left"}, map[int64]int64{1: 0}, 0, nil, "3 0"},
		{"left, and joined again", []string{"1/1.1 a @1", "1/1.2 a @2", "1/1.1 a @2 left"}, map[int64]int64{1: 0}, 0, nil, "a2 2 0"},
		{"left in the next epoch", []string{"1/1.1 a @1", "2/2.1 a @2 left"}, map[int64]int64{1: 0, 2: 1}, 0, nil, "1 0"},
		{"holds a coupon", []string{"1/1.1 a @1"}, map[int64]int64{1: 0}, 0, []firstcome.Coupon{direct("a", 0, false)}, "1 1"},
		{"served, and voided", []string{"1/1.1 a @1"}, map[int64]int64{1: 0}, 0, []firstcome.Coupon{served("a", 1, 1)}, "1 1"},
		{"served in the next epoch", []string{"1/1.1 a @1"}, map[int64]int64{1: 0, 2: 1}, 0, []firstcome.Coupon{served("a", 2, 1)}, "1 1"},
		{"served, voided, and joined again", []string{"1/1.1 a @1", "1/1.2 a @3"}, map[int64]int64{1: 0}, 0, []firstcome.Coupon{served("a", 1, 1)}, "a2 2 0"},
		{"issued directly after, and voided", []string{"1/1.1 a @1"}, map[int64]int64{1: 0}, 0, []firstcome.Coupon{direct("a", 2, true)}, "1 1"},
		{"issued directly before, and voided", []string{"1/1.1 a @3"}, map[int64]int64{1: 0}, 0, []firstcome.Coupon{direct("a", 2, true)}, "a1 1 0"},
		{"two users of one ticket", []string{"1/1.1 a @1", "1/1.2 b @1", "2/2.2 c @2"}, nil, 0, nil, "a1 c2 b3 3 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := recovery.Fold("ours", recovery.LineHistory{Epochs: c.epochs}, scribbled(t, c.log...))
			for _, coupon := range c.coupons {
				f.Coupon(coupon)
			}
			people, last, passed := f.People(c.ended)
			got := ""
			for _, one := range people {
				got += fmt.Sprintf("%s%d ", one.User, one.Ticket)
			}
			if diff := cmp.Diff(c.want, got+fmt.Sprint(last, passed)); diff != "" {
				t.Errorf("in line are (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoJoinedEarlierIsSaidToHaveDoneSo logs places late, and gives two users the same ticket.
func TestWhoJoinedEarlierIsSaidToHaveDoneSo(t *testing.T) {
	f := recovery.Fold("ours", recovery.LineHistory{}, scribbled(t, "1/1.2 b @3", "1/1.1 a @9", "1/1.3 c @5", "2/2.3 d @7"))
	people, _, _ := f.People(0)
	var joined []int64
	for _, one := range people {
		joined = append(joined, one.At.Unix())
	}
	if diff := cmp.Diff([]int64{3, 3, 7, 7}, joined); diff != "" {
		t.Errorf("they joined (-want +got):\n%s", diff)
	}
}

func TestTheLogSaysWhatIsHighest(t *testing.T) {
	f := recovery.Fold("ours", recovery.LineHistory{Epochs: map[int64]int64{1: 0, 2: 2}}, scribbled(t, "1/1.1 a @5", "1/2.1 b @9 began 1", "1/7.2 c @7 began 1", "2/3.1 b @8"))
	if f.Epoch != 2 || f.Generation != 7 || !f.Latest.Equal(at(9)) {
		t.Errorf("the highest epoch, generation and instant are %d, %d and %v, want 2, 7 and %v", f.Epoch, f.Generation, f.Latest, at(9))
	}
}
