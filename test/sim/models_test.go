package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A subject is an operator of the model.
type subject struct{ *stage.Operator }

// Quarantine is conform.Quarantiner's.
func (s subject) Quarantine() time.Duration { return 250 * time.Millisecond }

func newSubject() subject {
	o := stage.NewOperator()
	g := NewGate(o.Now)
	o.Gates = []gate.Gate{g}
	return subject{o}
}

func TestTheModelOfAGateConforms(t *testing.T) {
	conform.Gate(t, func(*testing.T) conform.Subject { return newSubject() })
}

func TestTheLinesOfTheModelOfAGateConform(t *testing.T) {
	conform.Line(t, func(*testing.T) conform.Subject { return newSubject() })
}

// A cluster has an Issuer for each of three nodes.
type cluster struct{ subject }

// Nodes is conform.Cluster's.
func (c cluster) Nodes() []gate.Decider { return c.Telling() }

func TestClaimsAndChangesAtTheModelOfAGateAreLinearizable(t *testing.T) {
	conform.Linearizable(t, func(*testing.T) conform.Subject {
		o := stage.NewOperator()
		g := NewGate(time.Now)
		o.Gates = []gate.Gate{g, g, g}
		return cluster{subject{o}}
	})
}

// A stream is the model of a journal as conform.Journal looks at it.
type stream struct {
	*Source
	users, litter int
}

// Another is conform.Stream's.
func (s *stream) Another() record.Source { return &Source{gate: s.gate} }

// Make is conform.Stream's.
func (s *stream) Make(ctx context.Context, id firstcome.CampaignID) error {
	return stage.Err(s.gate.Apply(ctx, firstcome.Change{
		Campaign: id, Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: firstcome.Unlimited},
	}))
}

// Issue is conform.Stream's.
func (s *stream) Issue(ctx context.Context, id firstcome.CampaignID, users int) (coupons []firstcome.Coupon, err error) {
	all := make([]firstcome.UserID, users)
	for n := range all {
		s.users++
		all[n] = firstcome.UserID(fmt.Sprint("user-", s.users))
	}
	decisions, err := s.gate.Claim(ctx, id, all)
	for _, d := range decisions {
		coupons = append(coupons, d.Coupon)
	}
	return coupons, err
}

func (s *stream) add(b record.Batch) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.append(b)
}

// Litter is conform.Stream's.
func (s *stream) Litter(_ context.Context, id firstcome.CampaignID) error {
	s.litter++
	s.add(record.Batch{Campaign: id, Epoch: 1, Garbage: []record.Garbage{{Source: fmt.Sprint("model/", s.litter), Payload: "x", Cause: "nobody can read it"}}})
	return nil
}

// Report is conform.Stream's.
func (s *stream) Report(_ context.Context, id firstcome.CampaignID, r gate.LineReport) error {
	s.add(record.Batch{Campaign: id, Epoch: 1, Line: r})
	return nil
}

// Left is conform.Stream's.
func (s *stream) Left(_ context.Context, id firstcome.CampaignID) (bool, error) {
	return len(s.gate.read(id).ids) > 0, nil
}

func TestTheModelOfAJournalConforms(t *testing.T) {
	conform.Journal(t, func(*testing.T) conform.Stream { return &stream{Source: &Source{gate: NewGate(time.Now)}} })
}

// A book is the model of a ledger as conform.Ledger looks at it.
type book struct{ *Ledger }

// Create is conform.Book's.
func (b book) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	return b.Ledger.Create(ctx, "", id, terms)
}

// Another is conform.Book's.
func (b book) Another() record.Keeper { return b }

// Kept is conform.Book's.
func (b book) Kept(_ context.Context, id firstcome.CampaignID) (coupons []firstcome.Coupon, letters int, err error) {
	err = b.of(id, func(a *account) error {
		for _, c := range a.sorted() {
			coupons = append(coupons, c.Coupon)
		}
		letters = len(b.letters)
		return nil
	})
	return coupons, letters, err
}

// LineOf is conform.Book's.
func (b book) LineOf(_ context.Context, id firstcome.CampaignID) (state gate.LineState, err error) {
	err = b.of(id, func(a *account) error {
		state = a.line
		return nil
	})
	return state, err
}

func TestTheModelOfALedgerConforms(t *testing.T) {
	conform.Ledger(t, func(*testing.T) conform.Book { return book{NewLedger(time.Now)} })
}
