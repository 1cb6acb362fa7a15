package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
)

// A typedPrize is a row of a form's prizes. In the last row the quantity is kept and not read: the last prize has what the others leave.
type typedPrize struct{ ID, Name, Quantity, Benefit string }

// prizesOf returns prizes as the form has them.
func prizesOf(prizes []firstcome.Prize) (rows []typedPrize) {
	for _, p := range prizes {
		row := typedPrize{string(p.ID), p.Name, "", typedBenefit(p.Benefit)}
		if p.Quantity > 0 {
			row.Quantity = strconv.FormatInt(p.Quantity, 10)
		}
		rows = append(rows, row)
	}
	return rows
}

// typedPrizes returns the rows of prizes that somebody typed, and at most one more than there may be.
func (v *view) typedPrizes() (rows []typedPrize) {
	for n := range firstcome.MaxPrizes + 1 {
		get := func(name string) string { return strings.TrimSpace(v.form.Get(prizeField(n, name))) }
		if !v.form.Has(prizeField(n, "id")) {
			break
		}
		rows = append(rows, typedPrize{get("id"), get("name"), get("quantity"), get("benefit")})
	}
	return rows
}

// prizeField returns the name of an input in a row of prizes.
func prizeField(row int, name string) string { return fmt.Sprintf("prizes.%d.%s", row, name) }

// prizeInputs has the inputs of all rows, in their order on the page.
func prizeInputs() (names []string) {
	for n := range firstcome.MaxPrizes + 1 {
		for _, name := range []string{"id", "name", "quantity", "benefit"} {
			names = append(names, prizeField(n, name))
		}
	}
	return names
}

// inputOf returns the name of the input for a field of terms: prizes[2].quantity is in prizes.2.quantity.
var inputOf = strings.NewReplacer("[", ".", "]", "")

// arranges carries out a button that adds, removes or moves a row of prizes. It reports whether one was pressed: then the form is only shown again.
func (f *newForm) arranges(v *view) bool {
	do, at, _ := strings.Cut(v.form.Get("prizes"), "-")
	n, err := strconv.Atoi(at)
	if err != nil || n < 0 || n >= len(f.Prizes) {
		n = -1
	}
	switch {
	case do == "":
		return false
	case do == "add" && len(f.Prizes) < firstcome.MaxPrizes:
		f.Prizes = append(f.Prizes, typedPrize{ID: f.freePrizeID()})
		f.Focus = prizeField(len(f.Prizes)-1, "name")
	case n < 0:
	case do == "remove":
		f.Prizes = slices.Delete(f.Prizes, n, n+1)
		f.Focus = "add"
	case do == "up" && n > 0:
		f.Prizes[n-1], f.Prizes[n] = f.Prizes[n], f.Prizes[n-1]
		if f.Focus = fmt.Sprint("up-", n-1); n == 1 { // the first row cannot be moved up
			f.Focus = "down-0"
		}
	case do == "down" && n+1 < len(f.Prizes):
		f.Prizes[n], f.Prizes[n+1] = f.Prizes[n+1], f.Prizes[n]
		if f.Focus = fmt.Sprint("down-", n+1); n+2 == len(f.Prizes) {
			f.Focus = fmt.Sprint("up-", n+1)
		}
	}
	return true
}

// freePrizeID returns an id that no row has.
func (f *newForm) freePrizeID() string {
	for n := len(f.Prizes) + 1; ; n++ {
		id := fmt.Sprint("prize-", n)
		if !slices.ContainsFunc(f.Prizes, func(p typedPrize) bool { return p.ID == id }) {
			return id
		}
	}
}

// prizes reads the rows of prizes. A benefit that was not edited stays as it is in before.
func (p *newPage) prizes(v *view, before []firstcome.Prize) (prizes []firstcome.Prize) {
	for n, row := range p.Form.Prizes {
		prize := firstcome.Prize{ID: firstcome.PrizeID(row.ID), Name: row.Name}
		prize.Imported = slices.ContainsFunc(before, func(was firstcome.Prize) bool { return was.ID == prize.ID && was.Imported }) // no field changes it
		same := slices.IndexFunc(before, func(was firstcome.Prize) bool {
			return was.ID == prize.ID && typedBenefit(was.Benefit) == row.Benefit
		})
		if same >= 0 {
			prize.Benefit = before[same].Benefit
		} else {
			prize.Benefit = p.benefit(v, prizeField(n, "benefit"), row.Benefit)
		}
		if n+1 < len(p.Form.Prizes) {
			var ok bool
			if prize.Quantity, ok = wholeNumber(row.Quantity); !ok {
				p.Wrong[prizeField(n, "quantity")] = v.say("1 이상의 정수로 입력하세요.", "Write a whole number from 1 up.")
			}
		}
		prizes = append(prizes, prize)
	}
	return prizes
}

// wholeNumber reads a number as people type it: with commas and spaces.
func wholeNumber(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", " ", "").Replace(text), 10, 64)
	return n, err == nil
}

// prizeFields are the fields of a form for prizes.
type prizeFields struct {
	Rows  []prizeFieldRow
	Wrong string // about the list
	Fixed bool   // only names and benefits can be edited
	Focus string // the button to go to, or empty
	Full  bool   // there is no room for another row
}

// A prizeFieldRow has the fields of a prize. From is 0 if its ranks are unknown.
type prizeFieldRow struct {
	N, Nth                      int // from 0, and from 1
	ID, Name, Quantity, Benefit field
	Last                        bool
	From, To                    int64
	Rest                        string // what the last prize has, in words
}

// prizeFieldsOf returns the fields for prizes, with the ranks that each row covers.
func (l language) prizeFieldsOf(f newForm, wrongs map[string]string, fixed bool) prizeFields {
	all := prizeFields{Wrong: wrongs["prizes"], Fixed: fixed, Focus: f.Focus, Full: len(f.Prizes) >= firstcome.MaxPrizes}
	from, known := int64(1), true
	for n, p := range f.Prizes {
		row := prizeFieldRow{
			N: n, Nth: n + 1, Last: n+1 == len(f.Prizes), ID: fieldOf(wrongs, prizeField(n, "id"), "", p.ID, ""), Name: fieldOf(wrongs, prizeField(n, "name"), "", p.Name, ""),
			Quantity: fieldOf(wrongs, prizeField(n, "quantity"), "", p.Quantity, ""), Benefit: fieldOf(wrongs, prizeField(n, "benefit"), "", p.Benefit, ""),
		}
		if known {
			row.From, row.To = from, firstcome.Unlimited
		}
		if row.Last {
			row.Rest = l.rest(f.Quantity, from-1, known && !fixed) // later it also has the stock of voided coupons
		} else {
			quantity, ok := wholeNumber(p.Quantity)
			known = known && ok && quantity > 0 && quantity < firstcome.MaxQuantity && from <= firstcome.MaxQuantity
			from += quantity
			if row.To = from - 1; !known {
				row.From = 0
			}
		}
		all.Rows = append(all.Rows, row)
	}
	return all
}

// rest returns what a typed quantity leaves for the last prize after so many ranks of the others.
func (l language) rest(quantity string, before int64, known bool) string {
	all, ok := wholeNumber(quantity)
	if quantity == "" || !ok || !known || all < before {
		return l.say("나머지", "the rest")
	}
	return l.say("나머지 %s장", "the rest: %s", l.number(all-before))
}
