package stage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestTheFakeLedgerConforms(t *testing.T) {
	conform.Ledger(t, func(*testing.T) conform.Book { return stage.NewLedger() })
}

func TestTheFakeGateConforms(t *testing.T) {
	conform.Gate(t, func(*testing.T) conform.Subject {
		o, g := stage.NewOperator(), stage.NewGate(0)
		g.Clock, o.Gates = o.Now, []gate.Gate{g}
		return o
	})
}

func TestTheFakeLineConforms(t *testing.T) {
	conform.Line(t, func(*testing.T) conform.Subject {
		o, g := stage.NewOperator(), stage.NewGate(0)
		g.Clock, o.Gates = o.Now, []gate.Gate{g}
		return o
	})
}

// A stream is a fake journal as conform.Journal looks at it.
type stream struct {
	stage.Journal
	litter int
}

// Another returns the fake itself, of which any number may drain.
func (s *stream) Another() record.Source { return s }

func (*stream) Make(context.Context, firstcome.CampaignID) error { return nil }

func (s *stream) Litter(_ context.Context, id firstcome.CampaignID) error {
	s.litter++
	s.Add(record.Batch{Campaign: id, Garbage: []record.Garbage{{Source: fmt.Sprint("fake/", s.litter), Payload: "x", Cause: "nobody can read it"}}})
	return nil
}

func (s *stream) Report(_ context.Context, id firstcome.CampaignID, r gate.LineReport) error {
	s.Add(record.Batch{Campaign: id, Epoch: 1, Line: r})
	return nil
}

func (s *stream) Left(_ context.Context, id firstcome.CampaignID) (bool, error) {
	return s.Batches(id) > 0, nil
}

func TestTheFakeJournalConforms(t *testing.T) {
	conform.Journal(t, func(*testing.T) conform.Stream { return &stream{} })
}
