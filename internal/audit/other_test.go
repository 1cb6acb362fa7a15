package audit_test

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

// others are what is of no campaign, in memory.
type others struct {
	keys    []firstcome.Key
	letters []audit.Letter
	log     []audit.Line
}

func (o *others) source() audit.OtherSource {
	return audit.OtherSource{
		Keys:    func(ctx context.Context, take func(firstcome.Key)) error { return each(&o.keys)(ctx, "", take) },
		Letters: func(ctx context.Context, take func(audit.Letter)) error { return each(&o.letters)(ctx, "", take) },
		Log:     func(ctx context.Context, take func(audit.Line)) error { return each(&o.log)(ctx, "", take) },
	}
}

func TestEveryBreachOfWhatIsOfNoCampaignIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(o *others)
		promise []string
		text    string
	}{
		"nothing":                {func(*others) {}, nil, ""},
		"a key is gone":          {func(o *others) { o.keys = o.keys[1:] }, []string{"keys"}, `the key "good" was made, and the ledger does not have it`},
		"a revoked key is gone":  {func(o *others) { o.keys = o.keys[:1] }, []string{"keys"}, `the key "bad" was revoked, and the ledger`},
		"a key that nobody made": {func(o *others) { o.log = o.log[1:] }, []string{"keys"}, `about the making of the key "good"`},
		"another role":           {func(o *others) { o.keys[0].Role = "admin" }, []string{"keys"}, `the key "good" is called "Good", of the role admin`},
		"good again":             {func(o *others) { o.keys[1].RevokedAt = at(-9999999) }, []string{"keys"}, `the key "bad" was revoked at`},
		"a letter":               {func(o *others) { o.letters[0].Wrong = "it has two numbers" }, []string{"letters"}, "it has two numbers"},
		"a letter's settling":    {func(o *others) { o.log = o.log[:3] }, []string{"log"}, "what was done with the dead letter 7"},
		"a letter is gone":       {func(o *others) { o.letters = nil }, []string{"log"}, "resolves the dead letter 7"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &others{
				keys: []firstcome.Key{{ID: "good", Name: "Good", Role: "viewer", CreatedAt: at(1)}, {ID: "bad", Role: "viewer", CreatedAt: at(2), RevokedAt: at(3)}},
				log: []audit.Line{
					{ID: 1, At: at(1), Action: "key.create", About: audit.About{Key: "good", Name: "Good", Role: "viewer"}},
					{ID: 2, At: at(2), Action: "key.create", About: audit.About{Key: "bad", Role: "viewer"}},
					{ID: 3, At: at(3), Action: "key.revoke", About: audit.About{Key: "bad"}},
					{ID: 4, At: at(4), Action: "dead_letter.void", About: audit.About{Letter: 7}},
				},
				letters: []audit.Letter{{ID: 7, Voided: true, ResolvedAt: at(4)}},
			}
			test.spoil(o)
			found, err := audit.Other(t.Context(), o.source())
			stage.Must(t, err)
			expectBreaches(t, found, test.promise, test.text)
		})
	}
}
