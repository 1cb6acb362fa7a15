// Package conform has the tests that every gate, journal and ledger must pass, and checks of the examination of a server.
//
// Gate runs the vectors in testdata/gate, and a random walk of claims, changes and
// clock jumps during which the rule in the model and the gate agree at every step, and
// for as long as the gate says that a refusal may be repeated.
// Linearizable runs short concurrent histories through an Issuer and has them
// checked. Journal drains a journal into a sink that fails, hangs or
// is gone; Ledger gives a ledger what recorders give it. Examined checks what was found of a gate's or a ledger's server.
package conform

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Subject is a gate under test, with an operator's changes of its campaigns. The errors are firstcome's.
type Subject interface {
	gate.Decider
	Operator
	// Instants returns the times of a campaign's events at the gate.
	Instants(ctx context.Context, id firstcome.CampaignID) (firstcome.Instants, error)
	// SetClock sets the gate's clock, which stands still until it is set again.
	SetClock(at time.Time)
}

// An Operator changes the campaigns of a gate.
type Operator interface {
	Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error
	SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error
	Change(ctx context.Context, id firstcome.CampaignID, to string) error // pause, resume or close
	Void(ctx context.Context, id firstcome.CampaignID, number int64) error
}

// A Quarantiner is a subject that several nodes share, so that stock that came back
// counts as in force for a while, by the gate's clock: until every lease of a
// refusal that another node may have has ended.
type Quarantiner interface{ Quarantine() time.Duration }

// quarantineFor returns how long returned stock is quarantined at a subject.
func quarantineFor(s Subject) time.Duration {
	if h, ok := s.(Quarantiner); ok {
		return h.Quarantine()
	}
	return 0
}

// A Cluster is a subject with several nodes, each with a gate of its own. The
// operator's changes pass through the first.
type Cluster interface{ Nodes() []gate.Decider }

// A Killable subject can continue as if its process had been killed and restarted.
type Killable interface{ Kill() error }

// Epoch is the time from which the vectors' clock counts.
var Epoch = time.Date(2026, 12, 24, 1, 0, 0, 0, time.UTC)

//go:embed testdata/gate/*.txt
var vectors embed.FS

//go:embed testdata/quarantine/*.txt
var quarantineVectors embed.FS

// Gate runs all tests of a gate. fresh returns a new subject without campaigns.
func Gate(t *testing.T, fresh func(t *testing.T) Subject) {
	s := fresh(t)
	runVectors(t, s, vectors, "testdata/gate", runVector)
	if quarantineFor(s) > 0 {
		runVectors(t, s, quarantineVectors, "testdata/quarantine", runQuarantineVector)
	}
	t.Run("a lease ends with the window that it is of", func(t *testing.T) { endings(t, s) })
	t.Run("the rule and the gate agree at every step", func(t *testing.T) { agree(t, s) })
}

// A vector is a script about a campaign, which is named after the script's file.
type vector struct {
	campaign firstcome.CampaignID
	script   string
}

// runVectors runs the vectors of a directory. A subject takes longer to make than a vector to run, so they share it.
func runVectors(t *testing.T, s Subject, from embed.FS, directory string, run func(*testing.T, Subject, vector)) {
	files, err := fs.Glob(from, directory+"/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		text, err := from.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".txt")
		campaign := strings.NewReplacer("testdata/", "", "/", "-", "_", "-").Replace(directory + "/" + name)
		t.Run(name, func(t *testing.T) { run(t, s, vector{firstcome.CampaignID(campaign), string(text)}) })
	}
}

// runVector runs a vector. The script's lines are commands with words, and behind -> what
// they answer; # begins a comment. A user may be quoted as in Go.
//
// These vectors say what a gate answers when nothing is quarantined: if stock is quarantined
// stock that came back, the clock goes on until it is released.
func runVector(t *testing.T, s Subject, v vector) {
	t.Helper()
	runQuarantineVector(t, patiently(s), v)
}

// A patient subject sets the clock past the end of the quarantine after each change
// that may give stock back.
type patient struct {
	Subject
	quarantine time.Duration
	latest     time.Time // that the clock has shown
}

// patiently returns a subject as a patient one, if its stock is quarantined.
func patiently(s Subject) Subject {
	quarantine := quarantineFor(s)
	if quarantine == 0 {
		return s
	}
	p := patient{Subject: s, quarantine: quarantine}
	if l, is := s.(Liner); is {
		return &patientLine{Liner: l, patient: p}
	}
	return &p
}

func (p *patient) SetClock(at time.Time) {
	if at.After(p.latest) {
		p.latest = at
	}
	p.Subject.SetClock(at)
}

func (p *patient) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	err := p.Subject.SetTerms(ctx, id, edit)
	p.SetClock(p.latest.Add(p.quarantine))
	return err
}

func (p *patient) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	err := p.Subject.Void(ctx, id, number)
	p.SetClock(p.latest.Add(p.quarantine))
	return err
}

// runQuarantineVector runs a vector as it is written.
func runQuarantineVector(t *testing.T, s Subject, v vector) {
	t.Helper()
	s.SetClock(Epoch)
	for n, line := range strings.Split(v.script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		command, want, _ := strings.Cut(line, "->")
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		got, err := runCommand(t.Context(), s, v.campaign, words)
		if err != nil {
			t.Fatalf("line %d: %s: %v", n+1, command, err)
		}
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(got)); diff != "" {
			t.Fatalf("line %d: %s answers otherwise (-want +got):\n%s", n+1, command, diff)
		}
	}
}

// runCommand runs one line of a vector and returns what it answers.
func runCommand(ctx context.Context, s Subject, id firstcome.CampaignID, words []string) (string, error) {
	switch command, args := words[0], words[1:]; command {
	case "clock":
		d, err := time.ParseDuration(args[0])
		s.SetClock(Epoch.Add(d))
		return "", err
	case "create":
		terms := firstcome.Terms{Name: "vector", Quantity: firstcome.Unlimited, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
		if err := setTerms(&terms, id, args); err != nil {
			return "", err
		}
		return refusal(s.Create(ctx, id, terms))
	case "terms":
		var wrong error
		word, err := refusal(s.SetTerms(ctx, id, func(t *firstcome.Terms) { wrong = setTerms(t, id, args) }))
		return word, errors.Join(err, wrong)
	case "pause", "resume", "close":
		return refusal(s.Change(ctx, id, command))
	case "void":
		number, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return "", err
		}
		return refusal(s.Void(ctx, id, number))
	case "instants":
		i, err := s.Instants(ctx, id)
		return spellInstants(i.OpenedAt, i.SoldOutAt, i.ClosedAt), err
	case "claim", "since":
		decisions, err := s.Claim(ctx, id, userIDs(args))
		if err != nil {
			return refusal(err)
		}
		if command == "since" {
			return spellSince(decisions), nil
		}
		return spell(decisions), nil
	}
	if l, ok := s.(Liner); ok {
		return runLineCommand(ctx, l, id, words)
	}
	return "", fmt.Errorf("a vector has no command %q", words[0])
}

// userIDs returns users as a vector spells them.
func userIDs(args []string) []firstcome.UserID {
	users := make([]firstcome.UserID, len(args))
	for n, arg := range args {
		users[n] = firstcome.UserID(arg)
		if plain, err := strconv.Unquote(arg); err == nil {
			users[n] = firstcome.UserID(plain)
		}
	}
	return users
}

// setTerms sets the terms of a campaign by words like quantity=3, opens=10s, closes=never.
func setTerms(terms *firstcome.Terms, id firstcome.CampaignID, words []string) error {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "quantity":
			if value == "unlimited" {
				terms.Quantity = firstcome.Unlimited
			} else {
				terms.Quantity, err = strconv.ParseInt(value, 10, 64)
			}
		case "opens":
			terms.OpensAt, err = offset(value)
		case "closes":
			terms.ClosesAt, err = offset(value)
		case "pace":
			terms.Pace = nil
			if value != "none" {
				terms.Pace = &firstcome.Pace{}
				terms.Pace.PerSecond, err = strconv.ParseInt(value, 10, 64)
			}
		case "waitlist":
			terms.Waitlist = value == "yes"
		case "prizes":
			*terms, err = withPrizes(*terms, value)
		default:
			err = fmt.Errorf("a vector has no term %q", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withPrizes returns terms with prizes as a vector spells them: drink:1,twenty:2=20%,rest is three prizes, the second of which has a name of its own. none is no prizes.
func withPrizes(terms firstcome.Terms, value string) (firstcome.Terms, error) {
	if terms.Prizes, terms.Benefit = nil, []byte(`{}`); value == "none" {
		return terms, nil
	}
	terms.Benefit = nil
	for prize := range strings.SplitSeq(value, ",") {
		of, name, named := strings.Cut(prize, "=")
		id, quantity, bounded := strings.Cut(of, ":")
		p := firstcome.Prize{ID: firstcome.PrizeID(id), Name: id}
		if named {
			p.Name = name
		}
		if bounded {
			var err error
			if p.Quantity, err = strconv.ParseInt(quantity, 10, 64); err != nil {
				return terms, err
			}
		}
		terms.Prizes = append(terms.Prizes, p)
	}
	return terms, nil
}

func offset(value string) (time.Time, error) {
	if value == "never" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(value)
	return Epoch.Add(d), err
}

// refusals are the errors that a vector may expect, by word.
var refusals = map[string]error{
	"no_campaign": firstcome.ErrNoCampaign, "no_coupon": firstcome.ErrNoCoupon, "exists": firstcome.ErrCampaignExists,
	"below_in_force": firstcome.ErrBelowInForce, "prizes_fixed": firstcome.ErrPrizesFixed, "campaign_closed": firstcome.ErrClosed, "already_voided": firstcome.ErrAlreadyVoided,
	"no_ticket": firstcome.ErrNoTicket, "served": firstcome.ErrServed, "mismatch": firstcome.ErrGateMismatch, "busy": firstcome.ErrBusy,
}

// refusal returns the word of an error that a vector may expect.
func refusal(err error) (string, error) {
	for word, known := range refusals {
		if errors.Is(err, known) {
			return word, nil
		}
	}
	return "", err
}

// spell returns decisions as a vector spells them: issued:1 already_issued:1 sold_out.
func spell(decisions []firstcome.Decision) string {
	var words []string
	for _, d := range decisions {
		word := d.Outcome.String()
		switch {
		case d.Outcome.HasCoupon():
			word += ":" + strconv.FormatInt(d.Coupon.Number, 10)
		case d.Outcome == firstcome.Waiting:
			word += fmt.Sprintf(":%d.%d+%d", d.Place.Generation, d.Place.Ticket, d.Place.Ahead)
		case d.Outcome == 0:
			word = "full"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// spellSince returns since when decisions are so: never 14s.
func spellSince(decisions []firstcome.Decision) string {
	since := make([]time.Time, len(decisions))
	for n, d := range decisions {
		since[n] = d.Since
	}
	return spellInstants(since...)
}

// spellInstants returns instants as offset spells them.
func spellInstants(instants ...time.Time) string {
	words := make([]string, len(instants))
	for n, at := range instants {
		words[n] = "never"
		if !at.IsZero() {
			words[n] = at.Sub(Epoch).String()
		}
	}
	return strings.Join(words, " ")
}
