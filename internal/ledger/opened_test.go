package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// opened opens a ledger for a gate (empty: its own) that nobody runs.
func opened(t *testing.T, name, gate string) *Ledger {
	t.Helper()
	l, err := Open(context.Background(), name, Options{Secret: stage.Secret(), Gate: gate})
	stage.Must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// quantity makes the campaign c, or changes it.
func quantity(t *testing.T, l *Ledger, quantity int64) {
	t.Helper()
	_, err := l.Campaigns.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) {
		terms.Quantity = quantity
	})
	if errors.Is(err, firstcome.ErrNoCampaign) {
		err = l.Campaigns.Create(t.Context(), "test", "c", firstcome.Terms{Name: "Test", Quantity: quantity, Answer: firstcome.Recorded, Benefit: []byte(`{}`)})
	}
	stage.Must(t, err)
}

// at returns what a user gets.
func at(t *testing.T, l *Ledger, user firstcome.UserID) firstcome.Outcome {
	t.Helper()
	d, err := l.Gate.Claim(t.Context(), "c", []firstcome.UserID{user})
	stage.Must(t, err)
	return d[0].Outcome
}

func told(t *testing.T, l *Ledger, user firstcome.UserID, want firstcome.Outcome) {
	t.Helper()
	if got := at(t, l, user); got != want {
		t.Errorf("%s is told %v and should be told %v", user, got, want)
	}
}
