package console

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A couponFilter says which of a campaign's coupons somebody wants to see, as they typed it.
type couponFilter struct {
	From, To   string // numbers
	User, Code string
	Voided     bool // also the voided ones
	OnlyVoided bool // and no others
}

func (v *view) couponFilter() couponFilter {
	get := func(name string) string { return strings.TrimSpace(v.form.Get(name)) }
	number := func(name string) string { return strings.ReplaceAll(get(name), ",", "") }
	return couponFilter{From: number("from"), To: number("to"), User: get("user_id"), Code: get("code"), Voided: get("voided") != "", OnlyVoided: get("voided") == "only"}
}

// read returns what the ledger is asked for, and the highest number; or what is wrong with the filter.
func (f couponFilter) read(v *view) (ask ledger.Choice, to int64, wrong string) {
	from, err := numberOr(f.From, 1)
	if err == nil {
		to, err = numberOr(f.To, math.MaxInt64)
	}
	if err != nil {
		return ask, 0, v.say("번호는 1 이상의 정수입니다.", "A number is a whole number from 1 on.")
	}
	ask.Page = ledger.Page{After: from - 1, Voided: f.Voided, OnlyVoided: f.OnlyVoided}
	if f.User != "" {
		if ask.User, err = firstcome.ParseUserID(f.User); err != nil {
			return ask, 0, v.whyID("user_id", err)
		}
	}
	if f.Code != "" {
		if ask.Code, err = firstcome.ParseCode(f.Code); err != nil {
			return ask, 0, v.notCode()
		}
	}
	return ask, to, ""
}

// numberOr reads a coupon's number. Nothing means otherwise.
func numberOr(text string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err == nil && number < 1 {
		err = errNumbers
	}
	return number, err
}

// query returns the filter as a link has it, from another number on.
func (f couponFilter) query(from int64) string {
	query := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if f.To != "" {
		query.Set("to", f.To)
	}
	switch {
	case f.OnlyVoided:
		query.Set("voided", "only")
	case f.Voided:
		query.Set("voided", "yes")
	}
	return query.Encode()
}

// coupons returns the first coupons that a filter lets through, and one more than a page has if there are more.
func (c *Console) coupons(v *view, id firstcome.CampaignID, f couponFilter) (rows []firstcome.Coupon, wrong string, err error) {
	ask, to, wrong := f.read(v)
	if wrong != "" {
		return nil, wrong, nil
	}
	named := v.may(run) || ask.Chosen() // as the API masks
	keep := func(one firstcome.Coupon) error {
		if !named {
			one = one.Masked()
		}
		if one.Number <= to {
			rows = append(rows, one)
		}
		return nil
	}
	if !ask.Chosen() {
		ask.Limit = couponsPerPage + 1
		return rows, "", c.Ledger.Coupons(v.r.Context(), id, ask.Page, keep)
	}
	found, err := c.find(v, id, ask)
	for _, one := range found {
		_ = keep(one) // it has no error
	}
	return rows, "", err
}
