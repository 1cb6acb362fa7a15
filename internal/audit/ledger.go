package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
)

// A Report is the result of a campaign's audit.
type Report struct {
	Campaign firstcome.CampaignID `json:"campaign_id"`
	Coupons  int64                `json:"coupons"` // in the ledger, also voided ones
	InForce  int64                `json:"in_force"`
	Voided   int64                `json:"voided"`
	Facts    int64                `json:"facts"`
	Letters  int64                `json:"dead_letters,omitempty"` // open dead letters
	Lost     int64                `json:"lost,omitempty"`         // numbers
	LostTold int64                `json:"lost_told,omitempty"`    // the most of them that users can have been told; 0 if the campaign answers only when recorded
	Lines    int64                `json:"lost_lines,omitempty"`   // generations of its waiting line that its gate lost
	Missing  int64                `json:"missing,omitempty"`      // numbers above the drained number, on their way to the ledger
	Breaches Breaches             `json:"breaches"`
	// Held are the promises that this audit checked, and not a promise whose check could not be made. Only clients' answers show whether the others were kept: see Answers.
	Held []string `json:"held"`
}

// atATime is how many checks run at the same time.
const atATime = 2

// Ledger audits a campaign by the ledger's tables: it runs all Queries, and checks here what SQL cannot; the codes only if secret is not nil. Each
// check reads at a time of its own, so the campaign may be in use. read, if not nil, counts the coupons read. If the campaign's row is gone, or
// something of it cannot be read, that is a breach in the report. An error means that the ledger could not be read.
func Ledger(ctx context.Context, source Source, id firstcome.CampaignID, secret *firstcome.Secret, read *atomic.Int64) (Report, error) {
	a := &ledgerAudit{source: source, id: id, secret: secret, read: cmp.Or(read, new(atomic.Int64))}
	campaign, err := source.Campaign(ctx, id)
	gone := errors.Is(err, firstcome.ErrNoCampaign)
	if err != nil && !gone && !errors.Is(err, ErrUnreadable) {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	a.campaign = campaign
	var checks []check
	switch {
	case err == nil:
		checks = []check{{"P5", "", a.coupons}, {"P1", "", a.changes}, {"P5", "", a.numbers}, {"P10", "", a.ranks}}
	case !gone:
		checks = []check{{"", "", func(context.Context, *Breaches) error { return err }}}
	}
	breaches, open, err := all(ctx, append(checks, asChecks(Queries(), source, id)...))
	if err != nil {
		return Report{}, fmt.Errorf("audit %s: %w", id, err)
	}
	report := a.report(breaches)
	report.Held = slices.DeleteFunc(report.Held, func(promise string) bool { return slices.Contains(open, promise) })
	return report, nil
}

// Other audits rows that belong to no campaign: each key was created and revoked as the audit log says, and each dead letter was resolved so.
func Other(ctx context.Context, source Source) (Breaches, error) {
	letters := func(ctx context.Context, b *Breaches) error { return source.OtherLetters(ctx, b.letter) }
	b, _, err := all(ctx, append(asChecks(OfNone(), source, ""), check{run: letters}))
	if err != nil {
		return Breaches{}, fmt.Errorf("audit the rows that belong to no campaign: %w", err)
	}
	return b, nil
}

// A check adds breaches.
type check struct {
	of    string // the promise that is not checked without it
	query string // its name; empty if it is no query
	run   func(context.Context, *Breaches) error
}

func asChecks(queries []Query, source Source, id firstcome.CampaignID) (checks []check) {
	for _, q := range queries {
		checks = append(checks, check{q.of, q.Name, func(ctx context.Context, b *Breaches) error { return q.run(ctx, source, id, b) }})
	}
	return checks
}

// all runs checks, and returns their breaches in order. A row that cannot be read is a breach, and so is a check that the database does not make. open
// are the promises that were not checked because of that.
func all(ctx context.Context, checks []check) (b Breaches, open []string, err error) {
	found, failed := make([]Breaches, len(checks)), make([]bool, len(checks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for n, check := range checks {
		group.Go(func() error {
			err := check.run(ctx, &found[n])
			switch failed[n] = true; {
			case errors.Is(err, ErrNotMade):
				found[n].addBy(check.query, "unreadable", "%v", err)
			case errors.Is(err, ErrUnreadable):
				found[n].add("unreadable", "%v", err)
			default:
				failed[n] = false
				return err
			}
			return nil
		})
	}
	err = group.Wait()
	unreadable := map[string]bool{} // several checks may meet the same damaged page
	for n := range found {
		if failed[n] {
			open = append(open, checks[n].of)
		}
		if shown := found[n].Shown; found[n].Count["unreadable"] == 1 && len(shown) == 1 && shown[0].Query == "" {
			if unreadable[shown[0].Text] {
				continue
			}
			unreadable[shown[0].Text] = true
		}
		b.take(&found[n])
	}
	return b, open, err
}

// ledgerAudit checks what SQL cannot.
type ledgerAudit struct {
	source   Source
	id       firstcome.CampaignID
	secret   *firstcome.Secret
	read     *atomic.Int64
	campaign Campaign

	// set by coupons
	all, voided, beyond int64 // beyond counts coupons above the drained number
	// set by changes
	decides bool // a claim may have been answered before its coupon was recorded
	// set by numbers
	open, lost, missing, lines int64
}

func (a *ledgerAudit) report(b Breaches) Report {
	r := Report{
		Campaign: a.id, Coupons: a.all, InForce: a.all - a.voided, Voided: a.voided, Facts: a.campaign.Position,
		Letters: a.open, Lost: a.lost, Lines: a.lines, Breaches: b, Held: []string{"P1", "P3", "P4", "P5"},
	}
	if a.campaign.Remote {
		r.Missing = max(0, a.missing-a.beyond)
	}
	if a.decides {
		r.LostTold = a.lost
	}
	if line := a.campaign.Line; a.campaign.Pace != nil || line.Generation > 1 || line.LastTicket > 0 {
		r.Held = append(r.Held, "P9")
	}
	r.Held = append(r.Held, "P10")
	return r
}

// couponsOf is the query of the method coupons.
const couponsOf = `SELECT number, user_id, code, CASE WHEN voided_at IS NULL THEN '' ELSE 'voided' END FROM coupons WHERE campaign_id = ? ORDER BY number`

// coupons checks ids and codes.
func (a *ledgerAudit) coupons(ctx context.Context, b *Breaches) error {
	if a.secret != nil && a.campaign.Secret != "" {
		if wrong := compareSecret(a.campaign.Secret, *a.secret); wrong != "" {
			b.add("identity", "%s", wrong)
		}
	}
	return a.source.Each(ctx, couponsOf, []any{string(a.id)}, func(_, values []string) {
		number, _ := strconv.ParseInt(values[0], 10, 64) // the column has integers
		user, code, voided := values[1], values[2], values[3] != ""
		a.read.Add(1)
		if a.all++; voided {
			a.voided++
		}
		if number > a.campaign.Drained && number <= a.campaign.LastNumber {
			a.beyond++
		}
		if _, err := firstcome.ParseUserID(user); err != nil {
			b.add("identity", "number %d has the user %q: %v", number, user, err)
		}
		switch {
		case !wellFormedCode(code):
			b.add("identity", "number %d has the code %q, which is not 16 characters of Crockford's base 32", number, code)
		case a.secret != nil && code != a.secret.Code(a.id, number):
			b.add("identity", "number %d has a code that is not derived from the secret", number)
		}
	})
}

// compareSecret returns why the codes of a campaign, whose row has a fingerprint, are not those of a secret. It returns nothing if they are.
func compareSecret(kept string, given firstcome.Secret) string {
	switch kept {
	case given.Fingerprint():
		return ""
	case given.EarlierFingerprint():
		return "an earlier firstcome made the codes with the given secret, so this one decides nothing of the campaign: audit and serve it with the firstcome that made them"
	}
	return fmt.Sprintf("the codes are derived from the secret with fingerprint %s, but the given one has %s: a node with it decides nothing of the campaign; give the right one with FIRSTCOME_SECRET or --secret-file", kept, given.Fingerprint())
}

// wellFormedCode reports whether a code has the form of Secret.Code.
func wellFormedCode(code string) bool {
	for i := range len(code) {
		switch c := code[i]; {
		case '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U':
		default:
			return false
		}
	}
	return len(code) == 16
}

// changes checks the payloads of changes: they can be read, their terms are valid and equal the columns beside them, a line with a log keeps a log,
// and the campaign has the version and the pace of its last terms. It ignores changes after the version that the campaign's row had when it was read.
func (a *ledgerAudit) changes(ctx context.Context, b *Breaches) error {
	var last *Change // the last change whose terms apply
	err := a.source.Changes(ctx, a.id, func(c Change) {
		a.decides = a.decides || c.Wrong != nil || c.Kind == firstcome.ChangeReconcile || c.Terms.Answer == firstcome.Decided && !c.Refused
		switch {
		case c.Wrong != nil:
			b.add("unreadable", "version %d: %v", c.Version, c.Wrong)
			return
		case !c.setsTerms() || c.Refused:
			return
		}
		if err := c.Terms.Check(); err != nil {
			b.add("changes", "version %d has invalid terms: %v", c.Version, err)
		}
		if c.Quantity != c.Terms.Quantity || !c.OpensAt.Equal(c.Terms.OpensAt) || !c.ClosesAt.Equal(c.Terms.ClosesAt) {
			b.add("changes", "version %d has the quantity %s and the window from %s to %s, by its payload %s and from %s to %s", c.Version,
				quantityText(c.Quantity), text(c.OpensAt), text(c.ClosesAt), quantityText(c.Terms.Quantity), text(c.Terms.OpensAt), text(c.Terms.ClosesAt))
		}
		if last != nil && last.Terms.Log != nil && c.Terms.Log == nil {
			b.add("changes", "version %d has a line without a log, but version %d has one with a log", c.Version, last.Version)
		}
		proposed := a.campaign.Remote && c.Kind == firstcome.ChangeTerms && c.Version > a.campaign.Applied && last != nil && (c.Terms.Quantity < last.Terms.Quantity || c.Before > 0)
		if c.Version <= a.campaign.Version && !proposed {
			last = &c
		}
	})
	if err == nil && last != nil {
		a.line(&last.Terms, b)
		if is := a.campaign.TermsVersion; is != last.Version {
			b.add("changes", "the campaign has the terms of version %d, but by its changes those of version %d", is, last.Version)
		}
	}
	return err
}

// line compares pace and waitlist of the campaign's row with its terms.
func (a *ledgerAudit) line(t *firstcome.Terms, b *Breaches) {
	c := a.campaign
	if is, want := paceText(c.Pace, c.Waitlist), paceText(t.Pace, t.Waitlist); is != want {
		b.add("changes", "the campaign has %s, but by its terms %s", is, want)
	}
}

func paceText(p *firstcome.Pace, waitlist bool) string {
	text := "no pace"
	if p != nil {
		text = fmt.Sprintf("the pace %d", p.PerSecond)
	}
	if waitlist {
		text += " and waitlist"
	}
	return text
}

// numbers checks the dead letters. It also counts the numbers that are not coupons, and the generations that were lost.
func (a *ledgerAudit) numbers(ctx context.Context, b *Breaches) error {
	a.missing = max(0, a.campaign.LastNumber-a.campaign.Drained)
	beyond := func(number int64) bool { return number > a.campaign.Drained && number <= a.campaign.LastNumber }
	err := a.source.Letters(ctx, a.id, func(l Letter) {
		b.letter(l)
		if l.Open {
			a.open++
		}
		if beyond(l.Number) && (l.Open || l.Voided) {
			a.missing--
		}
	})
	if err == nil {
		err = a.source.Lost(ctx, a.id, func(r firstcome.Range) {
			if a.lost += r.Count; beyond(r.First) {
				a.missing -= r.Count
			}
		})
	}
	if err == nil {
		err = a.source.Past(ctx, a.id, func(p firstcome.PastLine) {
			if p.Reason == "lost" {
				a.lines++
			}
		})
	}
	return err
}

// letter adds a breach if the columns of a dead letter contradict each other.
func (b *Breaches) letter(l Letter) {
	if l.Wrong != "" {
		b.add("letters", "the dead letter %d contradicts itself: %s", l.ID, l.Wrong)
	}
}
