package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// TestEachCauseOfNothingDecidedHasACodeAndASentenceOfItsOwn: an operator who reads "too many claims are waiting" adds nodes, which does not repair a
// gate.
func TestEachCauseOfNothingDecidedHasACodeAndASentenceOfItsOwn(t *testing.T) {
	for _, row := range []struct {
		err      error
		code     string
		sentence string
	}{
		{firstcome.ErrTooMany, "busy", "too many claims are waiting"},
		{firstcome.ErrGateUnavailable, "gate_unavailable", "the gate does not answer"},
		{firstcome.ErrGateFull, "gate_full", "the gate has no room"},
		{firstcome.ErrLineFull, "line_full", "the line is full"},
		{firstcome.ErrStopping, "stopping", "this node is stopping"},
		{fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified), "gate_unavailable", "not verified yet"},
		{fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, record.ErrRebuilding), "gate_unavailable", "is being rebuilt"},
		{fmt.Errorf("%w: %w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified, record.ErrRebuilding), "gate_unavailable", "is being rebuilt"},
	} {
		s := openFar(t)
		s.gate.Before = func(context.Context, firstcome.CampaignID) error { return fmt.Errorf("decide 3 claims: %w", row.err) }
		r := s.claim("c", "mina").code(t, 503, row.code)
		if detail := r.text("detail"); !strings.Contains(detail, row.sentence) || !strings.Contains(detail, "nothing was decided") || r.header.Get("Retry-After") == "" {
			t.Errorf("%v: %q, Retry-After %q", row.err, detail, r.header.Get("Retry-After"))
		}
	}
}
