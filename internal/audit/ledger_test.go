package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// books are a ledger of one campaign in memory.
type books struct {
	campaign audit.Campaign
	changes  []audit.Change
	log      []audit.Line
	coupons  []audit.Coupon
	runs     []audit.Run
	letters  []audit.Letter
	lost     []audit.Range
	fails    error // instead of the coupons
}

// each returns a function of a source that gives all of them.
func each[T any](all *[]T) audit.List[T] {
	return func(_ context.Context, _ firstcome.CampaignID, each func(T)) error {
		for _, one := range *all {
			each(one)
		}
		return nil
	}
}

func (b *books) source() audit.Source {
	if row := b.campaign.Row; row != nil {
		for _, l := range b.letters {
			if l.Number > 0 {
				row.Letters++
			}
		}
	}
	return audit.Source{
		Campaign: func(context.Context, firstcome.CampaignID) (audit.Campaign, error) { return b.campaign, nil },
		Changes:  each(&b.changes), Log: each(&b.log), Letters: each(&b.letters), Lost: each(&b.lost), Runs: each(&b.runs),
		Coupons: func(ctx context.Context, id firstcome.CampaignID, take func(audit.Coupon)) error {
			if b.fails != nil {
				return b.fails
			}
			return each(&b.coupons)(ctx, id, take)
		},
	}
}

var (
	opening = time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	secret  = stage.Secret()
)

// at returns the instant so many seconds behind the opening.
func at(seconds int) time.Time { return opening.Add(time.Duration(seconds) * time.Second) }

// issue gives a user the next number, a second after the one before.
func (b *books) issue(user string) {
	n := int64(len(b.coupons) + 1)
	b.campaign.Issued++
	b.campaign.InForce++
	b.campaign.Position++
	b.campaign.LastNumber = n
	b.campaign.Row.DecidedAt = at(int(n - 1))
	if !b.campaign.Remote { // else its gate keeps them
		b.campaign.OpenedAt = at(0)
		b.campaign.SoldOutAt = b.campaign.SoldOut(b.campaign.InForce, at(int(n-1)))
	}
	b.coupons = append(b.coupons, audit.Coupon{Position: b.campaign.Position, RecordedAt: at(int(n - 1)), Coupon: firstcome.Coupon{
		Campaign: "c", Number: n, User: firstcome.UserID(user), Code: secret.Code("c", n),
		IssuedAt: at(int(n - 1)), TermsVersion: b.campaign.Row.TermsVersion, Recorded: true,
	}})
}

// order makes a numbered change, with its line in the audit log.
func (b *books) order(action string, c firstcome.Change, l audit.Line) {
	b.campaign.Version++
	b.campaign.Applied = b.campaign.Version
	c.Campaign, c.Version = "c", b.campaign.Version
	l.ID, l.At, l.Action, l.Number, l.User = 10*c.Version, c.At, action, c.Number, c.User
	b.changes = append(b.changes, audit.Change{Change: c, Logged: l.Detail})
	b.log = append(b.log, l)
	b.campaign.Row.DecidedAt = c.At
}

// void voids a number when the last one was issued.
func (b *books) void(number int64) {
	written := int64(0)
	if n := len(b.runs); n > 0 {
		written = b.runs[n-1].Position + b.runs[n-1].Count - 1
	}
	if count := b.campaign.Position - written; count > 0 {
		b.runs = append(b.runs, audit.Run{Position: written + 1, Count: count, Number: b.campaign.LastNumber - count + 1, Kind: firstcome.CouponIssued})
	}
	b.campaign.Position++
	b.campaign.InForce--
	b.campaign.SoldOutAt = time.Time{}
	b.runs = append(b.runs, audit.Run{Position: b.campaign.Position, Count: 1, Number: number, Kind: firstcome.CouponVoided})
	c := &b.coupons[number-1]
	c.VoidedAt, c.Reason = at(len(b.coupons)-1), "sold"
	b.order("coupon.void", firstcome.Change{Kind: firstcome.ChangeVoid, Number: number, User: c.User, At: c.VoidedAt}, audit.Line{About: audit.About{Reason: "sold"}})
	b.changes[len(b.changes)-1].Logged = ""
}

// take gives the campaign other terms.
func (b *books) take(terms firstcome.Terms, at time.Time) {
	action := "campaign.update"
	if b.campaign.Version == 0 {
		action = "campaign.create"
	}
	b.order(action, firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms, At: at}, audit.Line{Detail: fmt.Sprint(terms)})
	b.campaign.Terms, b.campaign.Row.TermsVersion = terms, b.campaign.Version
	b.campaign.SoldOutAt = b.campaign.SoldOut(b.campaign.InForce, at)
}

// direct has a number issued directly, which the audit log says.
func (b *books) direct(number int64) {
	b.coupons[number-1].Direct = true
	b.log = append(b.log, audit.Line{ID: 1000 + number, Action: "coupon.issue", About: audit.About{Issued: 1, LastNumber: number}})
}

func (b *books) turn(kind firstcome.ChangeKind, at time.Time) {
	b.order("campaign."+string(kind), firstcome.Change{Kind: kind, At: at}, audit.Line{Detail: "{}"})
	b.campaign.Paused = kind == firstcome.ChangePause || kind == firstcome.ChangeClose && b.campaign.Paused
	b.campaign.Closed = kind == firstcome.ChangeClose
	if b.campaign.Closed {
		b.campaign.ClosedAt = at
	}
}

// sound returns books without a breach: number 2 is voided, and its user has
// number 4 since.
func sound() *books {
	b := &books{campaign: audit.Campaign{Epoch: 1, Secret: secret.Fingerprint(), Row: &audit.Row{}}}
	b.campaign.ID, b.campaign.CreatedAt = "c", at(-60)
	b.take(firstcome.Terms{Name: "c", Quantity: 3, OpensAt: opening, ClosesAt: opening.Add(time.Hour), Answer: firstcome.Recorded}, at(-60))
	b.issue("a")
	b.issue("b")
	b.issue("c")
	b.void(2)
	b.issue("b")
	return b
}

func TestADirectIssueMayComeBeforeTheOpeningAndInAPause(t *testing.T) {
	for name, plant := range map[string]func(*books){
		"before the opening": func(b *books) {
			b.coupons[0].IssuedAt, b.coupons[0].RecordedAt, b.campaign.OpenedAt = at(-1), at(-1), at(1)
			b.direct(1)
		},
		"all before it opened": func(b *books) {
			for n := range b.coupons {
				b.coupons[n].IssuedAt, b.coupons[n].RecordedAt = at(n-20), at(n-20)
				b.direct(int64(n + 1))
			}
			b.changes[1].At, b.log[1].At, b.coupons[1].VoidedAt = at(-18), at(-18), at(-18)
			b.campaign.OpenedAt, b.campaign.SoldOutAt, b.campaign.Row.DecidedAt = time.Time{}, at(-18), at(-17)
		},
		"in a pause": func(b *books) {
			b.turn(firstcome.ChangePause, at(2))
			b.direct(4)
			b.campaign.Row.DecidedAt = at(3)
		},
		"first, while it is open": func(b *books) { b.direct(1) },
	} {
		b := sound()
		plant(b)
		if got := auditOf(t, b); got.Breaches.Total != 0 {
			t.Errorf("%s: %v", name, got.Breaches)
		}
	}
}

func auditOf(t *testing.T, b *books) audit.Report {
	t.Helper()
	report, err := audit.Ledger(t.Context(), b.source(), "c", &secret)
	stage.Must(t, err)
	return report
}

func TestASoundLedgerHasNoBreach(t *testing.T) {
	want := audit.Report{Campaign: "c", Coupons: 4, InForce: 3, Voided: 1, Facts: 5, Held: []string{"P1", "P3", "P4", "P5"}}
	if diff := cmp.Diff(want, auditOf(t, sound())); diff != "" {
		t.Error(diff)
	}
}

// TestWhatMayBeOfOneInstantIsNoBreach has changes at the instants of issues, in either order.
func TestWhatMayBeOfOneInstantIsNoBreach(t *testing.T) {
	b := sound()
	b.turn(firstcome.ChangePause, at(3))
	b.turn(firstcome.ChangeResume, at(4))
	b.issue("d")
	more := b.campaign.Terms
	more.Quantity = 9
	b.take(more, at(4))
	b.issue("e")
	b.turn(firstcome.ChangeClose, at(5))
	b.coupons[4].TermsVersion = 5
	if found := auditOf(t, b).Breaches; found.Total != 0 {
		t.Error(found.Shown)
	}
}

func TestEveryBreachOfALedgerIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(b *books)
		promise string
		text    string
	}{
		"more in force than the quantity": {func(b *books) { b.campaign.Quantity = 2 }, "P1 changes", "3 coupons are in force, the quantity is 2"},
		"more in force at an instant": {func(b *books) {
			b.changes[0].Terms.Quantity, b.campaign.Quantity = 2, 2
		}, "P1 counters", "number 3 made 3 coupons in force, the quantity was 2"},
		"issued counter":   {func(b *books) { b.campaign.Issued++ }, "counters", "counts 5 coupons issued"},
		"in force counter": {func(b *books) { b.campaign.InForce-- }, "counters", "counts 2 coupons in force"},
		"drained counter":  {func(b *books) { b.campaign.Drained = 2 }, "counters", "drained up to 2, and without a remote gate none are"},
		"position counter": {func(b *books) { b.campaign.Position++ }, "P1 counters facts", "issues number 3 again"},
		"a far position":   {func(b *books) { b.campaign.Position = 1 << 40 }, "counters facts", "last position is 1099511627776, the facts end at 4"},
		"number counter":   {func(b *books) { b.campaign.LastNumber-- }, "counters facts", "last number is 3, that of its coupons and dead letters 4"},
		"a user twice":     {func(b *books) { b.coupons[2].User = "a" }, "P3", "number 3 while number 1 was in force"},
		"a user twice until a void": {func(b *books) {
			b.coupons[1].VoidedAt, b.changes[1].At, b.log[1].At, b.campaign.Row.DecidedAt = at(4), at(4), at(4), at(4)
		}, "P3 counters", "number 4 while number 2 was in force"},
		"a number is missing": {func(b *books) {
			b.coupons[3].Number, b.campaign.LastNumber, b.coupons[3].Code = 6, 6, secret.Code("c", 6)
		}, "P4", "the numbers 4 to 5 are missing"},
		"a number twice": {func(b *books) { b.coupons[2].Number, b.coupons[2].Code = 2, b.coupons[1].Code }, "P4 P5 counters facts", "number 2 names two coupons"},
		"time goes back": {func(b *books) {
			b.coupons[2].IssuedAt, b.coupons[2].RecordedAt = opening, opening
		}, "P4 counters", "before number 2"},
		"recorded at another instant": {func(b *books) { b.coupons[2].RecordedAt = at(3) }, "P5", "number 3 was issued at 2026-12-24T10:00:02.000000Z and recorded at"},
		"terms go back": {func(b *books) {
			b.take(b.campaign.Terms, at(4))
			b.coupons[0].TermsVersion = 3
		}, "P4", "older than those"},
		"terms before their time": {func(b *books) {
			b.take(b.campaign.Terms, at(4))
			b.coupons[3].TermsVersion = 3
		}, "P4", "number 4 was issued at 2026-12-24T10:00:03.000000Z and has the terms of version 3"},
		"terms after their time": {func(b *books) {
			b.take(b.campaign.Terms, at(2))
		}, "P4 counters", "number 4 was issued at 2026-12-24T10:00:03.000000Z and has the terms of version 1"},
		"terms that are none":    {func(b *books) { b.coupons[0].TermsVersion = 0 }, "changes", "number 1 has the terms of version 0"},
		"the terms of a void":    {func(b *books) { b.coupons[3].TermsVersion = 2 }, "changes counters", "number 4 has the terms of version 2"},
		"voided before issued":   {func(b *books) { b.coupons[1].VoidedAt, b.changes[1].At, b.log[1].At = opening, opening, opening }, "P4", "was voided at"},
		"voided at another time": {func(b *books) { b.coupons[1].VoidedAt = at(1) }, "changes", "and no change says so"},
		"voided for other reasons": {func(b *books) {
			b.coupons[1].Reason = "bought"
		}, "log", `number 2 was voided because of "bought"`},
		"a reason in force":      {func(b *books) { b.coupons[3].Reason = "bought" }, "changes", "number 4 is in force"},
		"another user's void":    {func(b *books) { b.coupons[1].User = "x" }, "changes", `number 2 of the user "x" was voided`},
		"issued while paused":    {func(b *books) { b.turn(firstcome.ChangePause, at(2)) }, "P7 counters", "number 4 was issued at 2026-12-24T10:00:03.000000Z, after the pause at 2026-12-24T10:00:02.000000Z"},
		"issued after the close": {func(b *books) { b.turn(firstcome.ChangeClose, at(2)) }, "P7 counters", "after the close at"},
		"issued before the opening": {func(b *books) {
			b.coupons[0].IssuedAt, b.coupons[0].RecordedAt = at(-1), at(-1)
		}, "P7 counters", "before the opening"},
		"issued at the closing": {func(b *books) {
			b.coupons[3].IssuedAt, b.coupons[3].RecordedAt, b.campaign.Row.DecidedAt = at(3600), at(3600), at(3600)
		}, "P7 counters", "not before the closing"},
		"issued directly after the close": {func(b *books) {
			b.turn(firstcome.ChangeClose, at(2))
			b.direct(4)
		}, "P7 counters", "after the close at"},
		"issued directly at the closing": {func(b *books) {
			b.coupons[3].IssuedAt, b.coupons[3].RecordedAt, b.campaign.Row.DecidedAt = at(3600), at(3600), at(3600)
			b.direct(4)
		}, "P7 counters", "not before the closing"},
		"issued directly, not logged": {func(b *books) { b.coupons[1].Direct = true }, "log", "number 2 was issued directly, and no line"},
		"logged, not issued directly": {func(b *books) {
			b.direct(1)
			b.direct(2)
			b.coupons[1].Direct = false
		}, "log", "number 2 was issued directly by the audit log"},
		"opened after a claim": {func(b *books) {
			b.direct(1)
			b.campaign.OpenedAt = at(2)
		}, "counters", "the campaign opened at"},
		"another campaign's coupon": {func(b *books) { b.coupons[0].Campaign = "d" }, "identity", `campaign "d"`},
		"a user that is none":       {func(b *books) { b.coupons[0].User = "a\n" }, "identity", "control"},
		"a code that is none":       {func(b *books) { b.coupons[0].Code = "ILOU" }, "identity", "Crockford"},
		"a code of another number":  {func(b *books) { b.coupons[0].Code = b.coupons[1].Code }, "identity", "secret"},
		"another secret":            {func(b *books) { b.campaign.Secret = "x" }, "identity", "the secret with the fingerprint x"},

		"a position is missing":     {func(b *books) { b.runs[1].Position++; b.campaign.Position++ }, "facts", "position 5 follows position 3"},
		"runs overlap":              {func(b *books) { b.runs[0].Count = 4 }, "P1 counters facts", "position 4 follows position 4"},
		"a run of nothing":          {func(b *books) { b.runs[0].Count = 0 }, "counters facts", "a run of 0 facts"},
		"a run without end":         {func(b *books) { b.runs[0].Count = 1<<63 - 1 }, "counters facts", "a run of 9223372036854775807 facts"},
		"a run of no numbers":       {func(b *books) { b.runs[0].Number = 1<<63 - 1 }, "counters facts", "are about numbers from 9223372036854775807 on"},
		"an unknown kind":           {func(b *books) { b.runs[1].Kind = "coupon.eaten" }, "P1 counters facts", "coupon.eaten"},
		"another position":          {func(b *books) { b.coupons[3].Position = 4 }, "facts", "position 5 issues number 4, whose coupon says that it was position 4"},
		"a coupon that no fact has": {func(b *books) { b.runs[0].Count, b.runs[1].Position = 2, 3; b.campaign.Position-- }, "counters facts", "no position issues number 3"},
		"an issue twice":            {func(b *books) { b.runs[0].Count, b.runs[1].Position = 4, 5; b.campaign.Position++ }, "P1 counters facts", "issues number 4 again"},
		"a coupon that is gone":     {func(b *books) { b.coupons = slices.Delete(b.coupons, 2, 3) }, "P4 P5 counters", "position 3 issued number 3, and the ledger does not have it"},
		"the last coupon is gone":   {func(b *books) { b.coupons = b.coupons[:3] }, "P5 counters", "position 5 issued number 4, and the ledger does not have it"},
		"a void of no coupon":       {func(b *books) { b.runs[1].Number = 9 }, "facts", "voids number 9, which no coupon has"},
		"a void before its issue":   {func(b *books) { b.runs[1].Number = 4 }, "facts", "not issued by then"},
		"a void twice":              {func(b *books) { b.runs[1].Count = 2; b.campaign.Position++ }, "counters facts", "voids number 3, which is in force"},
		"a voided coupon, no fact":  {func(b *books) { b.runs[1].Number = 3 }, "facts", "no position voids number 2"},

		"no change":               {func(b *books) { b.changes = nil }, "changes log", "there is no change"},
		"a change is gone":        {func(b *books) { b.changes = b.changes[:1] }, "changes counters log", "its changes end at 1"},
		"the first change":        {func(b *books) { b.changes = b.changes[1:] }, "changes log", "the changes begin with version 2"},
		"a version set back":      {func(b *books) { b.campaign.Version, b.campaign.Applied = 1, 1 }, "changes", "at version 1, its changes end at 2"},
		"versions with a gap":     {func(b *books) { b.changes[1].Version, b.campaign.Version, b.campaign.Applied = 3, 3, 3 }, "changes", "version 3 follows version 1"},
		"changes out of order":    {func(b *books) { b.changes[1].At, b.log[1].At, b.coupons[1].VoidedAt = at(-90), at(-90), at(-90) }, "P4 changes", "before the version before it"},
		"made at another instant": {func(b *books) { b.campaign.CreatedAt = at(-61) }, "changes", "the campaign was made at"},
		"paused":                  {func(b *books) { b.campaign.Paused = true }, "changes", "the campaign is paused, by its changes it is neither"},
		"closed":                  {func(b *books) { b.campaign.Closed = true }, "changes", "the campaign is closed"},
		"a window":                {func(b *books) { b.campaign.OpensAt = at(1) }, "changes", "the campaign's window is from"},
		"terms of a version":      {func(b *books) { b.campaign.Row.TermsVersion = 2 }, "changes", "has the terms of version 2, by its changes those of 1"},
		"terms that cannot be":    {func(b *books) { b.changes[0].Terms.Answer = "never" }, "changes", "version 1 has terms that no campaign may have"},
		"a refusal":               {func(b *books) { b.changes[1].Refused = true }, "changes", "version 2 was refused"},
		"not applied":             {func(b *books) { b.campaign.Applied = 1 }, "changes", "the changes up to 1 of 2"},
		"an epoch":                {func(b *books) { b.campaign.Epoch = 2 }, "changes", "the epoch is 2"},
		"resumed without a pause": {func(b *books) { b.turn(firstcome.ChangeResume, at(3)) }, "changes", "version 3, a resume, changes nothing"},
		"a void of nothing":       {func(b *books) { b.changes[1].Number, b.log[1].Number = 3, 3 }, "changes", "version 2 voids number 3, and neither"},
		"a retired ledger":        {func(b *books) { b.campaign.Row.RetiredAt = at(9999) }, "changes counters log", "retired at"},
		"forgotten, not retired":  {func(b *books) { b.campaign.Row.ForgottenAt = at(9999) }, "changes", "before it was retired"},
		"the clock before":        {func(b *books) { b.campaign.Row.DecidedAt = at(2) }, "counters", "the gate's last instant is 2026-12-24T10:00:02.000000Z, and something is of"},
		"the clock behind":        {func(b *books) { b.campaign.Row.DecidedAt = at(4) }, "counters", "and nothing is of later than"},
		"not readable":            {func(b *books) { b.changes[1].Wrong = errors.New("no JSON") }, "unreadable", "version 2: no JSON"},

		"a line is gone":         {func(b *books) { b.log = b.log[1:] }, "log", "no line of the audit log is about version 1"},
		"the last line is gone":  {func(b *books) { b.log = b.log[:1] }, "log", "no line of the audit log is about version 2"},
		"a line too many":        {func(b *books) { b.log = append(b.log, audit.Line{ID: 9, Action: "campaign.pause"}) }, "log", "line 9 of the audit log, campaign.pause"},
		"a line of other terms":  {func(b *books) { b.log[0].Detail = "x" }, "log", "line 10 of the audit log says otherwise than version 1"},
		"a line of another user": {func(b *books) { b.log[1].User = "x" }, "log", "line 20 of the audit log says otherwise than version 2"},
		"a letter's line": {func(b *books) {
			b.log = append(b.log, audit.Line{ID: 9, Action: "dead_letter.replay", About: audit.About{Letter: 4}})
		}, "log", "resolves the dead letter 4"},
	} {
		t.Run(name, func(t *testing.T) {
			b := sound()
			test.spoil(b)
			expectBreaches(t, auditOf(t, b).Breaches, strings.Fields(test.promise), test.text)
		})
	}
}

// TestTheGatesClockMayBeOfAClaimThatOpenedOrClosedTheWindow has a claim that was refused: nothing else happened at that instant.
func TestTheGatesClockMayBeOfAClaimThatOpenedOrClosedTheWindow(t *testing.T) {
	b := sound()
	b.campaign.Row.DecidedAt = at(3601)
	if found := auditOf(t, b).Breaches; found.Total != 0 {
		t.Error(found.Shown)
	}
}

// TestWhatCannotBeReadIsABreachAndNoEnd is of a campaign; any other trouble ends the audit.
func TestWhatCannotBeReadIsABreachAndNoEnd(t *testing.T) {
	b := sound()
	b.fails = fmt.Errorf("number 3: %w", audit.ErrUnreadable)
	if found := auditOf(t, b).Breaches; found.Count["unreadable"] != 1 || !mentions(found, "number 3") {
		t.Error(found.Shown)
	}
	b.fails = context.DeadlineExceeded
	if _, err := audit.Ledger(t.Context(), b.source(), "c", &secret); !errors.Is(err, b.fails) {
		t.Errorf("got %v", err)
	}
}

func TestACampaignWhoseRowIsGoneIsABreach(t *testing.T) {
	source := sound().source()
	source.Campaign = func(context.Context, firstcome.CampaignID) (audit.Campaign, error) {
		return audit.Campaign{}, firstcome.ErrNoCampaign
	}
	report, err := audit.Ledger(t.Context(), source, "c", &secret)
	if err != nil || report.Breaches.Count["P5"] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
