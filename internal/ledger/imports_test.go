package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// list returns codes from a number on.
func list(prefix string, first, count int) (all []string) {
	for n := range count {
		all = append(all, fmt.Sprintf("%s-%d", prefix, first+n))
	}
	return all
}

// vouchers makes the campaign c: two drinks, a coupon of our own, and vouchers for the rest of the quantity.
func vouchers(t *testing.T, l *ledger.Ledger, quantity int64) {
	t.Helper()
	stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", firstcome.Terms{Name: "c", Quantity: quantity, Answer: firstcome.Recorded, Prizes: []firstcome.Prize{
		{ID: "drink", Name: "A drink", Quantity: 2, Imported: true}, {ID: "own", Name: "Our own", Quantity: 1}, {ID: "voucher", Name: "A voucher", Imported: true},
	}}))
}

// imports returns the result of an import as text.
func imports(t *testing.T, l *ledger.Ledger, prize firstcome.PrizeID, list []string) string {
	t.Helper()
	return importsTo(t, l, "c", prize, list)
}

func importsTo(t *testing.T, l *ledger.Ledger, id firstcome.CampaignID, prize firstcome.PrizeID, list []string) string {
	t.Helper()
	done, err := l.Codes.Import(t.Context(), "test", id, prize, list)
	var twice *codes.DuplicateError
	for _, known := range []error{firstcome.ErrNoList, firstcome.ErrNoCampaign, firstcome.ErrImportRunning, firstcome.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.As(err, &twice) {
		return fmt.Sprint(twice.Codes)
	}
	stage.Must(t, err)
	return fmt.Sprintf("%d added, %d entries", done.Added, done.Entries)
}

// codeOf returns the code of a number by its coupon's terms.
func codeOf(t *testing.T, l *ledger.Ledger, number int64) string {
	t.Helper()
	c := firstcome.Coupon{Campaign: "c", Number: number, Code: "own", Recorded: true}
	terms := status(t, l).Terms
	code, err := l.Codes.CodeOf(t.Context(), &c, &terms)
	switch {
	case errors.Is(err, codes.ErrNoEntry):
		return "no entry"
	case errors.Is(err, codes.ErrDamaged):
		return "damaged"
	}
	stage.Must(t, err)
	return code
}

// entries returns how many rows of entries there are.
func entries(t *testing.T, name string) (n int) {
	t.Helper()
	stage.Must(t, services.Beside(t, name).QueryRow(`SELECT COUNT(*) FROM code_entries`).Scan(&n))
	return n
}

func TestP11AnImportAppendsAllItsCodesOrNone(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		vouchers(t, l, 9)
		stage.Must(t, l.Campaigns.Create(t.Context(), "test", "d", firstcome.Terms{Name: "d", Quantity: 5, Answer: firstcome.Recorded, Imported: true}))
		create(t, l, "plain", 5)
		same := func(what, want, got string) {
			t.Helper()
			stage.Same(t, what, want, got)
		}
		same("a prize with codes of our own", firstcome.ErrNoList.Error(), imports(t, l, "own", list("A", 1, 2)))
		same("no prize", firstcome.ErrNoList.Error(), imports(t, l, "", list("A", 1, 2)))
		same("a campaign without lists", firstcome.ErrNoList.Error(), importsTo(t, l, "plain", "", list("A", 1, 2)))
		same("no campaign", firstcome.ErrNoCampaign.Error(), importsTo(t, l, "none", "", list("A", 1, 2)))
		same("three parts", "1200 added, 1200 entries", imports(t, l, "voucher", list("A", 1, 1200)))
		same("the same again", "0 added, 1200 entries", imports(t, l, "voucher", list("A", 1, 1200)))
		same("a part of it again", "0 added, 1200 entries", imports(t, l, "voucher", list("A", 700, 501)))
		same("another campaign's", "1 added, 1 entries", importsTo(t, l, "d", "", list("D", 1, 1)))
		same("codes that are there", "[{600 c voucher 5} {602 d  1}]", imports(t, l, "voucher", append(list("B", 1, 600), "A-5", "B-601", "D-1")))
		same("the end, and more", fmt.Sprintf("[{0 c voucher %d}]", 1200), imports(t, l, "voucher", []string{"A-1200", "A-1201"}))
		same("codes that were refused beside others", "600 added, 1800 entries", imports(t, l, "voucher", list("B", 1, 600)))
		if n := entries(t, name); n != 1801 {
			t.Errorf("there are %d entries", n)
		}
		same("the other list", "2 added, 2 entries", imports(t, l, "drink", []string{"D1", "d1"})) // byte for byte
		var got []string
		for _, number := range []int64{1, 2, 3, 4, 5, 1203, 1204, 1803, 1804} {
			got = append(got, codeOf(t, l, number))
		}
		same("the codes", "D1 d1 own A-1 A-2 A-1200 B-1 B-600 no entry", strings.Join(got, " "))
		stage.Same(t, "the audit log", []string{"codes.import", "codes.import", "codes.import", "campaign.create"}, actions(t, l, "c"))
		at, err := l.Codes.ByImported(t.Context(), "B-600")
		stage.Must(t, err)
		stage.Same(t, "where a code is", codes.At{Campaign: "c", Prize: "voucher", Entry: 1800}, at)
		if _, err := l.Codes.ByImported(t.Context(), "b-600"); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("a code in another spelling: %v", err)
		}
		stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangeClose)))
		same("a closed campaign", firstcome.ErrClosed.Error(), imports(t, l, "voucher", list("C", 1, 1)))
	})
}

// TestP11WhatADeadImportLeftIsNotSeenAndIsFreed has an import die between its parts: its entries do not count, and the next import frees their codes.
func TestP11WhatADeadImportLeftIsNotSeenAndIsFreed(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, db := start(t, name, nil), services.Beside(t, name)
		vouchers(t, l, 9)
		stage.Same(t, "an import", "5 added, 5 entries", imports(t, l, "voucher", list("A", 1, 5)))
		stage.Same(t, "another", "1000 added, 1005 entries", imports(t, l, "voucher", list("B", 1, 1000)))
		execute(t, db, `UPDATE code_lists SET entries = 5, importing_at = 1`) // as if it had died before its last transaction
		stage.Same(t, "an entry that does not count", "no entry", codeOf(t, l, 9))
		if _, err := l.Codes.ByImported(t.Context(), "B-1"); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("a code that does not count: %v", err)
		}
		if err := resume(t, l); !errors.Is(err, firstcome.ErrCodesMissing) || !strings.Contains(err.Error(), "the prize voucher lacks 1 of 6") {
			t.Errorf("a resume: %v", err)
		}
		stage.Same(t, "the next import", "600 added, 605 entries", imports(t, l, "voucher", append(list("C", 1, 599), "B-3")))
		stage.Same(t, "a code that the dead import left", "1 added, 606 entries", imports(t, l, "voucher", list("B", 900, 1)))
		stage.Same(t, "the codes", "A-5 C-1", codeOf(t, l, 8)+" "+codeOf(t, l, 9))
	})
}

func resume(t *testing.T, l *ledger.Ledger) error {
	t.Helper()
	return stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangeResume))
}

// TestP11OfTwoImportsAtOnceEachIsWholeOrRefused wants no entry of a refused import, and none twice.
func TestP11OfTwoImportsAtOnceEachIsWholeOrRefused(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		vouchers(t, l, 9)
		var all sync.WaitGroup
		var mu sync.Mutex
		added := map[string]bool{}
		for _, prefix := range []string{"A", "B", "C", "D"} {
			all.Go(func() {
				_, err := l.Codes.Import(t.Context(), "test", "c", "voucher", list(prefix, 1, 1100))
				if err != nil && !errors.Is(err, firstcome.ErrImportRunning) && !errors.Is(err, firstcome.ErrBusy) {
					t.Errorf("an import: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				added[prefix] = err == nil
			})
		}
		all.Wait()
		has, err := l.Codes.Entries(t.Context(), "c")
		stage.Must(t, err)
		for n := int64(0); n < has["voucher"]; n += 1100 {
			prefix, _, _ := strings.Cut(codeOf(t, l, n+4), "-")
			stage.Same(t, "the first and last code of an import", prefix+"-1 "+prefix+"-1100", codeOf(t, l, n+4)+" "+codeOf(t, l, n+1103))
			if !added[prefix] {
				t.Errorf("the import %s was refused, and is there", prefix)
			}
			delete(added, prefix)
		}
		for prefix, is := range added {
			if is {
				t.Errorf("the import %s is not there", prefix)
			}
		}
	})
}

// TestP11StockOfImportedCodesDoesNotComeBack voids coupons: the quantity falls, and a raised quantity needs more codes.
func TestP11StockOfImportedCodesDoesNotComeBack(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		vouchers(t, l, 4)
		stage.Same(t, "a claim", "paused:0", claim(t, l.Gate, "c", "a"))
		if err := resume(t, l); !errors.Is(err, firstcome.ErrCodesMissing) || !strings.Contains(err.Error(), "the prize drink lacks 2 of 2, the prize voucher lacks 1 of 1") {
			t.Errorf("a resume: %v", err)
		}
		if err := l.Campaigns.MayIssue(t.Context(), "c"); !errors.Is(err, firstcome.ErrCodesMissing) {
			t.Errorf("a direct issue: %v", err)
		}
		imports(t, l, "drink", list("D", 1, 2))
		if err := resume(t, l); !errors.Is(err, firstcome.ErrCodesMissing) {
			t.Errorf("a resume: %v", err)
		}
		imports(t, l, "voucher", list("V", 1, 1))
		stage.Must(t, l.Campaigns.MayIssue(t.Context(), "c"))
		stage.Must(t, resume(t, l))
		stage.Same(t, "claims", "issued:1 issued:2 issued:3 issued:4 sold_out:0", claim(t, l.Gate, "c", "a", "b", "c", "d", "e"))
		void(t, l, "c", 1)
		void(t, l, "c", 3) // of our own code, too: gates know no prizes
		stage.Same(t, "claims after voids", "sold_out:0 sold_out:0", claim(t, l.Gate, "c", "a", "e"))
		s := status(t, l)
		if s.Quantity != 2 || s.InForce != 2 || s.Terms.Burnt != 2 {
			t.Errorf("the quantity is %d, %d are in force, %d burnt", s.Quantity, s.InForce, s.Terms.Burnt)
		}
		set := func(quantity int64) error {
			return stage.Err(l.Campaigns.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) {
				stage.Same(t, "the quantity that is changed", int64(2), terms.Quantity)
				terms.Quantity = quantity
			}))
		}
		if err := set(3); !errors.Is(err, firstcome.ErrCodesMissing) || !strings.Contains(err.Error(), "the prize voucher lacks 1 of 2") {
			t.Errorf("a raised quantity: %v", err)
		}
		imports(t, l, "voucher", list("V", 2, 1))
		stage.Must(t, set(3))
		stage.Await(t, "a claim after more codes", "issued:5 sold_out:0", func() string { // servers keep added stock back for a moment
			return strings.Replace(claim(t, l.Gate, "c", "e", "a"), "already_issued:5", "issued:5", 1)
		})
		stage.Same(t, "the code", "V-2", codeOf(t, l, 5))
		found, err := audit.Ledger(t.Context(), l.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		for _, b := range found.Breaches.Shown {
			t.Errorf("%s: %s", b.Promise, b.Text)
		}
		execute(t, services.Beside(t, name), `UPDATE campaigns SET quantity = quantity + 1`) // as if stock had come back
		found, err = audit.Ledger(t.Context(), l.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		if found.Breaches.Total == 0 {
			t.Error("the audit does not find stock that came back")
		}
	})
}

// TestP11ACouponWithoutACodeIsNotRecorded sends coupons of another gate, of which one has no code.
func TestP11ACouponWithoutACodeIsNotRecorded(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		vouchers(t, l, 9)
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false))
		imports(t, l, "drink", list("D", 1, 1))
		keep := func(number int64) error {
			return stage.Err(l.Recorder.Record(t.Context(), record.Batch{Campaign: "c", Epoch: 1, Coupons: []firstcome.Coupon{stage.Coupon("c", number)}}))
		}
		stage.Must(t, keep(1))
		if err := keep(2); !errors.Is(err, record.ErrRefused) || !strings.Contains(err.Error(), "no code was imported") {
			t.Errorf("it is %v", err)
		}
		imports(t, l, "drink", list("D", 2, 1))
		stage.Must(t, keep(2))
		stage.Must(t, keep(3)) // of our own code
	})
}

// TestP11ADamagedEntryIsOneWinnersOnly damages a sealed code.
func TestP11ADamagedEntryIsOneWinnersOnly(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, db := start(t, name, nil), services.Beside(t, name)
		vouchers(t, l, 9)
		imports(t, l, "voucher", list("V", 1, 3))
		execute(t, db, `UPDATE code_entries SET sealed = mac WHERE entry = 2`)
		stage.Same(t, "the codes", "V-1 damaged V-3", codeOf(t, l, 4)+" "+codeOf(t, l, 5)+" "+codeOf(t, l, 6))
	})
}

// TestP11NumbersThatAreLostInTheMiddleLowerTheQuantity rebuilds a gate that gave the numbers 3 and 4 to nobody who is known: their entries are burnt,
// because number 5 was told its own.
func TestP11NumbersThatAreLostInTheMiddleLowerTheQuantity(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		vouchers(t, l, 9)
		imports(t, l, "drink", list("D", 1, 2))
		imports(t, l, "voucher", list("V", 1, 6))
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 1}, false))
		stage.Must(t, resume(t, l))
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 2}, false))
		stage.Must(t, stage.Err(l.Recorder.Record(t.Context(), record.Batch{Campaign: "c", Epoch: 1, Coupons: append(stage.Coupons("c", 1, 2), stage.Coupon("c", 5))})))
		r, err := l.Epochs.BeginRebuild(t.Context(), "test", "c", 0)
		stage.Must(t, err)
		mark, err := l.Epochs.Refills(t.Context(), "c", func(firstcome.Coupon) error { return nil })
		stage.Must(t, err)
		fill, err := l.Epochs.FinishRebuild(t.Context(), r, recovery.Loaded{Mark: mark}, recovery.Frozen{})
		stage.Must(t, err)
		s := status(t, l)
		if s.Quantity != 7 || s.Terms.Burnt != 2 || fill.Quantity != 7 || !strings.Contains(fill.Codes, `"prize":"voucher","entries":6`) {
			t.Errorf("the quantity is %d, %d burnt, at the gate %d with the lists %s", s.Quantity, s.Terms.Burnt, fill.Quantity, fill.Codes)
		}
		stage.Same(t, "the codes", "V-2 V-3", codeOf(t, l, 5)+" "+codeOf(t, l, fill.LastNumber+1)) // the next one has rank 6
		stage.Must(t, l.Campaigns.MayIssue(t.Context(), "c"))
		found, err := audit.Ledger(t.Context(), l.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		for _, b := range found.Breaches.Shown {
			t.Errorf("%s: %s", b.Promise, b.Text)
		}
		r, err = l.Epochs.BeginRebuild(t.Context(), "test", "c", 0)
		stage.Must(t, err)
		adopt := func(codes string) error {
			return stage.Err(l.Epochs.Adopt(t.Context(), r, recovery.GateState{Payload: fill.Payload, Quantity: 7, Codes: codes}, nil, false))
		}
		for what, codes := range map[string]string{"more codes": strings.Replace(fill.Codes, `"entries":6`, `"entries":7`, 1), "other codes": strings.Replace(fill.Codes, `"digest":"`, `"digest":"0`, 1)} {
			if err := adopt(codes); !errors.Is(err, recovery.ErrOtherCodes) {
				t.Errorf("a reconcile with a gate that was resumed with %s: %v", what, err)
			}
		}
		same := strings.Replace(fill.Codes, `"lists":[`, `"lists":[{"prize":"none","entries":0,"digest":""},`, 1) // and a list that needs no code
		if err := adopt(same); errors.Is(err, recovery.ErrOtherCodes) {
			t.Errorf("a reconcile with the same codes: %v", err)
		}
	})
}
