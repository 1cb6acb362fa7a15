package ledger_test

import (
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

func TestCouponsAreFoundByUserCodeAndNumber(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		create(t, l, "c", 100)
		create(t, l, "other", 100)
		claim(t, l.Gate, "c", "a", "b")
		claim(t, l.Gate, "other", "a")
		for _, of := range []struct {
			id     firstcome.CampaignID
			number int64
		}{{"c", 1}, {"other", 1}} {
			void(t, l, of.id, of.number)
		}
		claim(t, l.Gate, "c", "x")
		code := stage.Secret().Code("c", 1)
		for _, c := range []struct {
			choice ledger.Choice
			want   string
		}{
			{ledger.Choice{User: "a"}, "[]"},
			{ledger.Choice{User: "a", Page: ledger.Page{Voided: true}}, "[1]"},
			{ledger.Choice{User: "a", Page: ledger.Page{Voided: true, After: 1}}, "[]"},
			{ledger.Choice{User: "A", Page: ledger.Page{Voided: true}}, "[]"},
			{ledger.Choice{User: "b"}, "[2]"},
			{ledger.Choice{Number: 2}, "[2]"},
			{ledger.Choice{Number: 1}, "[]"},
			{ledger.Choice{Code: code}, "[]"},
			{ledger.Choice{Code: code, Page: ledger.Page{Voided: true}}, "[1]"},
			{ledger.Choice{Code: stage.Secret().Code("other", 2), Page: ledger.Page{Voided: true}}, "[]"},
		} {
			found, next, err := l.Reads.Find(t.Context(), "c", c.choice)
			numbers := []int64{}
			for _, f := range found {
				numbers = append(numbers, f.Number)
			}
			if err != nil || next != 0 || fmt.Sprint(numbers) != c.want {
				t.Errorf("%+v finds %v, next %d, %v; want %s", c.choice, numbers, next, err, c.want)
			}
		}
	})
}
