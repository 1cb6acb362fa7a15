package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// books are a ledger of one campaign in memory.
type books struct {
	campaign  audit.Campaign
	terms     map[int64]firstcome.Terms
	coupons   []firstcome.Coupon
	facts     []firstcome.Fact
	meanwhile func()                              // runs before the facts are read
	more      func(position int64) firstcome.Fact // nil: there are no more facts
}

func (b *books) source() audit.Source {
	return audit.Source{
		Campaign: func(context.Context, firstcome.CampaignID) (audit.Campaign, error) { return b.campaign, nil },
		Terms: func(_ context.Context, _ firstcome.CampaignID, version int64) (firstcome.Terms, error) {
			terms, ok := b.terms[version]
			if !ok {
				return terms, firstcome.ErrNoCampaign
			}
			return terms, nil
		},
		Coupons: func(_ context.Context, _ firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			for _, c := range b.coupons {
				if err := each(c); err != nil {
					return err
				}
			}
			return nil
		},
		Facts: func(_ context.Context, _ firstcome.CampaignID, each func(firstcome.Fact) error) error {
			if b.meanwhile != nil {
				b.meanwhile()
			}
			for _, f := range b.facts {
				if err := each(f); err != nil {
					return err
				}
			}
			for n := int64(len(b.facts) + 1); b.more != nil; n++ {
				if err := each(b.more(n)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var (
	opening = time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	secret  = must(firstcome.NewSecret(make([]byte, 32)))
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// issue gives a user the next number, a second after the one before.
func (b *books) issue(user string) {
	n := int64(len(b.coupons) + 1)
	c := firstcome.Coupon{
		Campaign: "c", Number: n, User: firstcome.UserID(user), Code: secret.Code("c", n),
		IssuedAt: opening.Add(time.Duration(n-1) * time.Second), TermsVersion: 1, Recorded: true,
	}
	b.coupons = append(b.coupons, c)
	b.campaign.Issued++
	b.campaign.InForce++
	b.tell(firstcome.CouponIssued, c)
}

func (b *books) void(number int64) {
	c := &b.coupons[number-1]
	c.VoidedAt = opening.Add(time.Duration(len(b.coupons)-1) * time.Second)
	b.campaign.InForce--
	b.tell(firstcome.CouponVoided, *c)
}

func (b *books) tell(kind firstcome.FactKind, c firstcome.Coupon) {
	b.campaign.Position++
	b.facts = append(b.facts, firstcome.Fact{Position: b.campaign.Position, Kind: kind, Coupon: c})
}

// sound returns books without a breach: number 2 is voided, and its user has
// number 4 since.
func sound() *books {
	terms := firstcome.Terms{Name: "c", Quantity: 3, OpensAt: opening, ClosesAt: opening.Add(time.Hour)}
	b := &books{terms: map[int64]firstcome.Terms{1: terms}}
	b.campaign.Campaign = firstcome.Campaign{ID: "c", Terms: terms, Version: 1}
	b.issue("a")
	b.issue("b")
	b.issue("c")
	b.void(2)
	b.issue("b")
	return b
}

func auditOf(t *testing.T, b *books) audit.Report {
	t.Helper()
	report, err := audit.Ledger(t.Context(), b.source(), "c", &secret)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestASoundLedgerHasNoBreach(t *testing.T) {
	want := audit.Report{Campaign: "c", Coupons: 4, InForce: 3, Voided: 1, Facts: 5}
	if diff := cmp.Diff(want, auditOf(t, sound())); diff != "" {
		t.Error(diff)
	}
}

func TestEveryBreachOfALedgerIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(b *books)
		promise []string
		text    string
	}{
		"more in force than the quantity": {func(b *books) {
			b.campaign.Quantity = 2
		}, []string{"P1"}, "3 coupons are in force, the quantity is 2"},
		"more in force at an instant": {func(b *books) {
			terms := b.terms[1]
			terms.Quantity = 2
			b.terms[1] = terms
		}, []string{"P1"}, "number 3 made 3 coupons in force, the quantity was 2"},
		"issued counter": {func(b *books) { b.campaign.Issued++ }, []string{"counters"}, "counts 5 coupons issued"},
		"in force counter": {func(b *books) {
			b.campaign.InForce--
		}, []string{"counters"}, "counts 2 coupons in force"},
		"settled counter": {func(b *books) {
			b.campaign.Remote, b.campaign.Settled = true, 2
		}, []string{"counters"}, "the campaign says so only up to 2"},
		"position counter": {func(b *books) { b.campaign.Position++ }, []string{"counters"}, "last position is 6"},
		"a user twice":     {func(b *books) { b.coupons[2].User = "a" }, []string{"P3"}, "number 3 while number 1 was in force"},
		"a user twice until a void": {func(b *books) {
			b.coupons[1].VoidedAt = b.coupons[3].IssuedAt.Add(time.Second)
		}, []string{"P3"}, "number 4 while number 2 was in force"},
		"a number is missing": {func(b *books) {
			b.coupons[3].Number, b.facts[4].Coupon.Number = 6, 6
			b.coupons[3].Code = secret.Code("c", 6)
		}, []string{"P4"}, "the numbers 4 to 5 are missing"},
		"a number twice": {func(b *books) {
			b.coupons[2].Number = 2
			b.coupons[2].Code = b.coupons[1].Code
		}, []string{"P4", "facts"}, "number 2 names two coupons"},
		"time goes back": {func(b *books) {
			b.coupons[2].IssuedAt = opening
		}, []string{"P4"}, "before number 2"},
		"terms go back": {func(b *books) {
			b.terms[2] = b.terms[1]
			b.coupons[0].TermsVersion = 2
		}, []string{"P4"}, "older than those"},
		"voided before issued": {func(b *books) {
			b.coupons[1].VoidedAt = opening
		}, []string{"P4"}, "was voided at"},
		"issued before the opening": {func(b *books) {
			b.coupons[0].IssuedAt = opening.Add(-time.Microsecond)
		}, []string{"P7"}, "before the opening"},
		"issued at the closing": {func(b *books) {
			b.coupons[3].IssuedAt = opening.Add(time.Hour)
		}, []string{"P7"}, "not before the closing"},
		"another campaign's coupon": {func(b *books) { b.coupons[0].Campaign = "d" }, []string{"identity"}, `campaign "d"`},
		"a user that is none":       {func(b *books) { b.coupons[0].User = "a\n" }, []string{"identity"}, "control"},
		"a code that is none":       {func(b *books) { b.coupons[0].Code = "ILOU" }, []string{"identity"}, "Crockford"},
		"a code of another number":  {func(b *books) { b.coupons[0].Code = b.coupons[1].Code }, []string{"identity"}, "secret"},
		"a position is missing": {func(b *books) {
			for n := 3; n < 5; n++ {
				b.facts[n].Position++
			}
			b.campaign.Position++
		}, []string{"facts"}, "position 5 follows position 3"},
		"an unknown kind": {func(b *books) {
			b.facts = append(b.facts, firstcome.Fact{Position: 6, Kind: "coupon.eaten"})
			b.campaign.Position++
		}, []string{"facts"}, "coupon.eaten"},
		"a coupon that no fact issues": {func(b *books) {
			b.facts = b.facts[:4]
			b.campaign.Position, b.campaign.Issued, b.campaign.InForce = 4, 3, 2
		}, []string{"facts"}, "no position issues number 4"},
		"an issue twice": {func(b *books) {
			b.facts[4].Coupon.Number = 3
		}, []string{"facts"}, "issues number 3 again"},
		"an issue of no coupon": {func(b *books) {
			b.coupons = b.coupons[:3]
		}, []string{"facts"}, "issues number 4, which no coupon has"},
		"a coupon that is gone": {func(b *books) {
			b.coupons = append(b.coupons[:2], b.coupons[3])
			b.facts[2].Coupon = firstcome.Coupon{Campaign: "c", Number: 3}
		}, []string{"P4", "P5"}, "position 3 issued number 3, and the ledger does not have it"},
		"the last coupon is gone": {func(b *books) {
			b.coupons = b.coupons[:3]
			b.facts[4].Coupon = firstcome.Coupon{Campaign: "c", Number: 4}
		}, []string{"P5"}, "position 5 issued number 4, and the ledger does not have it"},
		"a position out of all reason": {func(b *books) {
			b.campaign.Position = 1 << 40
			b.more = func(n int64) firstcome.Fact {
				return firstcome.Fact{Position: n, Kind: firstcome.CouponIssued, Coupon: firstcome.Coupon{Campaign: "c", Number: n}}
			}
		}, []string{"P5", "counters"}, "last position is 1099511627776"},
		"a void of no coupon": {func(b *books) {
			b.facts[3].Coupon.Number = 9
		}, []string{"facts"}, "voids number 9, which no coupon has"},
		"a void before its issue": {func(b *books) {
			b.facts[3].Coupon.Number = 4
		}, []string{"facts"}, "not issued by then"},
		"a void twice": {func(b *books) {
			b.tell(firstcome.CouponVoided, b.coupons[1])
			b.campaign.InForce--
		}, []string{"facts"}, "voids number 2 again"},
		"a void of a coupon in force": {func(b *books) {
			b.coupons[1].VoidedAt = time.Time{}
			b.coupons[3].User = "d"
			b.campaign.Quantity = 4
		}, []string{"facts"}, "voids number 2, which is in force"},
		"a voided coupon that no fact voids": {func(b *books) {
			b.coupons[0].VoidedAt = opening.Add(time.Minute)
		}, []string{"facts"}, "no position voids number 1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := sound()
			test.spoil(b)
			found := auditOf(t, b).Breaches
			if diff := cmp.Diff(test.promise, found.Promises()); diff != "" {
				t.Errorf("promises broken: %s%v", diff, found.Shown)
			}
			if !mentions(found, test.text) {
				t.Errorf("no breach says %q: %v", test.text, found.Shown)
			}
		})
	}
}

func TestALedgerInUseIsHeldAgainstItsCountersAsTheyWereRead(t *testing.T) {
	b := sound()
	source := b.source()
	asRead := b.campaign
	source.Campaign = func(context.Context, firstcome.CampaignID) (audit.Campaign, error) { return asRead, nil }
	b.meanwhile = func() {
		b.void(3)
		b.issue("d")
	}
	report, err := audit.Ledger(t.Context(), source, "c", &secret)
	if err != nil {
		t.Fatal(err)
	}
	if report.Breaches.Total != 0 {
		t.Errorf("breaches: %v", report.Breaches.Shown)
	}
}

func TestALedgerThatCannotBeReadIsAnError(t *testing.T) {
	b := sound()
	delete(b.terms, 1)
	if _, err := audit.Ledger(t.Context(), b.source(), "c", nil); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("got %v, want that the terms are missing", err)
	}
}

func BenchmarkLedger(b *testing.B) {
	big := sound()
	terms := big.terms[1]
	terms.Quantity, terms.ClosesAt = firstcome.Unlimited, time.Time{}
	big.terms[1], big.campaign.Terms = terms, terms
	for n := range 1_000_000 {
		big.issue(fmt.Sprint("user-", n))
	}
	for b.Loop() {
		report, err := audit.Ledger(b.Context(), big.source(), "c", &secret)
		if err != nil || report.Breaches.Total != 0 {
			b.Fatal(err, report.Breaches.Shown)
		}
	}
}
