package kafka

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

const aLedger = "5f0c91d2b06e7a44"

// documented has the facts of the examples of docs/events.md, in order.
func documented() []firstcome.Fact {
	c := firstcome.Coupon{
		Campaign: "spring", Number: 1204, User: "mina", Code: stage.Secret().Code("spring", 1204), TermsVersion: 1,
		IssuedAt: time.Date(2026, 12, 24, 10, 0, 3, 214_000_000, time.UTC), VoidedAt: time.Date(2026, 12, 27, 9, 12, 40, 0, time.UTC),
	}
	return []firstcome.Fact{{Position: 1204, Kind: firstcome.CouponIssued, Coupon: c}, {Position: 5001, Kind: firstcome.CouponVoided, Coupon: c}}
}

// documentedTerms are the terms of the examples' coupon.
var documentedTerms = firstcome.Terms{Prizes: []firstcome.Prize{{ID: "drink", Name: "A drink", Quantity: 100}, {ID: "percent", Name: "20 % off", Quantity: 900}, {ID: "shipping", Name: "Free shipping"}}}

func TestTheExamplesOfTheDocumentAreTheEvents(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	stage.Must(t, err)
	examples := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllSubmatch(text, -1)
	facts := documented()
	if len(examples) != len(facts) {
		t.Fatalf("the document has %d examples", len(examples))
	}
	for n, f := range facts {
		got, err := json.MarshalIndent(eventOf(aLedger, &f, &documentedTerms), "", "  ")
		stage.Must(t, err)
		if diff := cmp.Diff(string(examples[n][1]), string(got)); diff != "" {
			t.Errorf("example %d (-document +event):\n%s", n, diff)
		}
	}
}

func TestARecordIsReadAsTheEventThatItIs(t *testing.T) {
	for _, f := range documented() {
		r, err := recordOf(aLedger, &f, &documentedTerms)
		stage.Must(t, err)
		want := eventOf(aLedger, &f, &documentedTerms)
		got, ours := read(aLedger, r)
		if diff := cmp.Diff(want, got); diff != "" || !ours || !got.same(&want) {
			t.Errorf("ours %v (-want +got):\n%s", ours, diff)
		}
		if string(r.Key) != "spring" || r.Headers[0].Key != "content-type" || string(r.Headers[0].Value) != "application/cloudevents+json" {
			t.Errorf("the key is %q, the headers are %v", r.Key, r.Headers)
		}
		if _, ours := read("another", r); ours {
			t.Error("it is taken for another ledger's")
		}
	}
	for _, foreign := range []string{``, `null`, `[]`, `{}`, `{"specversion":"1.0","source":"urn:firstcome:ledger:` + aLedger + `"}`, `{"position":"1"}`} {
		if e, ours := read(aLedger, &kgo.Record{Value: []byte(foreign)}); ours {
			t.Errorf("%s is taken for %+v", foreign, e)
		}
	}
}

func TestEventsThatDifferAreNotTheSame(t *testing.T) {
	f := documented()[0]
	is := eventOf(aLedger, &f, &documentedTerms)
	for what, change := range map[string]func(*firstcome.Fact){
		"the number":   func(f *firstcome.Fact) { f.Coupon.Number++ },
		"the user":     func(f *firstcome.Fact) { f.Coupon.User = "minho" },
		"the instant":  func(f *firstcome.Fact) { f.Coupon.IssuedAt = f.Coupon.IssuedAt.Add(time.Microsecond) },
		"the kind":     func(f *firstcome.Fact) { f.Kind = firstcome.CouponVoided },
		"the position": func(f *firstcome.Fact) { f.Position++ },
		"the coupon":   func(f *firstcome.Fact) { f.Coupon = firstcome.Coupon{Campaign: "spring", Number: 1204} },
	} {
		g := f
		change(&g)
		if other := eventOf(aLedger, &g, &documentedTerms); is.same(&other) {
			t.Errorf("%s does not count", what)
		}
	}
}
