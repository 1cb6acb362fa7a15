package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/wire"
)

// The fields of a body that sets terms, and of its pace and coupon objects.
var (
	termsFields  = []string{"name", "quantity", "opens_at", "closes_at", "answer", "pace", "waitlist", "coupon", "prizes"}
	paceFields   = []string{"per_second"}
	prizeFields  = []string{"id", "name", "quantity", "benefit", "codes"}
	couponFields = []string{"benefit", "valid_until", "valid_for", "codes"}
)

// readObject reads a request's body, which must be a JSON object. An empty body is an empty object. Unknown fields are
// returned as mistakes.
func (s *core) readObject(w http.ResponseWriter, r *http.Request, known ...string) (object, *mistakes, error) {
	b := s.buffer()
	defer s.release(b)
	if err := b.read(w, r, maxBody); err != nil {
		return nil, nil, err
	}
	if len(b.bytes) == 0 {
		return object{}, &mistakes{}, nil
	}
	return parseObject(b.bytes, known...)
}

// readNothing reads a request's body, which must be empty or {}.
func (s *core) readNothing(w http.ResponseWriter, r *http.Request) error {
	_, wrong, err := s.readObject(w, r)
	if err != nil {
		return err
	}
	return wrong.err()
}

// An edit has the changes that a body makes to a campaign's terms.
type edit struct {
	steps []func(*firstcome.Terms)
	*mistakes
}

func (e *edit) apply(t *firstcome.Terms) {
	for _, step := range e.steps {
		step(t)
	}
}

// parseTerms reads the fields of terms in a body. It refuses fields that cannot be parsed, and values that would not be
// allowed in any campaign.
func parseTerms(o object, wrong *mistakes) (*edit, error) {
	e := &edit{mistakes: wrong}
	field(e, o, "", "name", e.readString, func(t *firstcome.Terms) *string { return &t.Name })
	field(e, o, "", "quantity", e.readQuantity, func(t *firstcome.Terms) *int64 { return &t.Quantity })
	field(e, o, "", "opens_at", e.readTime, func(t *firstcome.Terms) *time.Time { return &t.OpensAt })
	field(e, o, "", "closes_at", e.readTime, func(t *firstcome.Terms) *time.Time { return &t.ClosesAt })
	field(e, o, "", "answer", e.readAnswer, func(t *firstcome.Terms) *firstcome.AnswerWhen { return &t.Answer })
	field(e, o, "", "pace", e.readPace, func(t *firstcome.Terms) **firstcome.Pace { return &t.Pace })
	field(e, o, "", "waitlist", e.readWaitlist, func(t *firstcome.Terms) *bool { return &t.Waitlist })
	field(e, o, "", "prizes", e.readPrizes, func(t *firstcome.Terms) *[]firstcome.Prize { return &t.Prizes })
	if raw, ok := o["coupon"]; ok {
		e.readCoupon(raw)
	}
	// Refuse combinations of fields, too, so that one answer lists them together with the fields that could not be parsed.
	alone := firstcome.Terms{Name: "a name", Quantity: firstcome.MaxQuantity, Answer: firstcome.Recorded, Pace: &firstcome.Pace{}}
	e.apply(&alone)
	for _, wrong := range fieldErrors(alone.Check()) {
		if parent, _, _ := strings.Cut(wrong.Field, "."); !e.names(wrong.Field) && !e.names(parent) {
			e.refuse(wrong.Field, wrong.Reason)
		}
	}
	return e, e.err()
}

// field reads a field, if present, and adds a step that sets it in the terms.
func field[T any](e *edit, o object, parent, name string, read func(string, json.RawMessage) T, place func(*firstcome.Terms) *T) {
	if raw, ok := o[name]; ok {
		value := read(parent+name, raw)
		e.steps = append(e.steps, func(t *firstcome.Terms) { *place(t) = value })
	}
}

func (e *edit) readAnswer(field string, raw json.RawMessage) firstcome.AnswerWhen {
	return firstcome.AnswerWhen(e.readString(field, raw))
}

func (e *edit) readQuantity(field string, raw json.RawMessage) int64 {
	quantity := firstcome.Unlimited
	switch {
	case isNull(raw):
	case !isInteger(string(raw)):
		e.mistype(field, "an integer or null")
	default:
		var err error
		quantity, err = strconv.ParseInt(string(raw), 10, 64)
		if err != nil || quantity > firstcome.MaxQuantity {
			e.refuse(field, "must be 0 to "+strconv.FormatInt(firstcome.MaxQuantity, 10)+", or null for no limit")
		}
	}
	return quantity
}

// readPace reads a pace, or nil for null.
func (e *edit) readPace(field string, raw json.RawMessage) *firstcome.Pace {
	if isNull(raw) {
		return nil
	}
	var o object
	if json.Unmarshal(raw, &o) != nil {
		e.mistype(field, "an object or null")
		return nil
	}
	o.only(e.mistakes, field+".", paceFields)
	p := &firstcome.Pace{}
	perSecond, ok := o["per_second"]
	if field += ".per_second"; !ok || isNull(perSecond) {
		return p
	}
	if !isInteger(string(perSecond)) {
		e.mistype(field, "an integer or null")
		return p
	}
	var err error
	if p.PerSecond, err = strconv.ParseInt(string(perSecond), 10, 64); err != nil || p.PerSecond < 1 || p.PerSecond > firstcome.MaxPace {
		e.refuse(field, "must be 1 to "+strconv.FormatInt(firstcome.MaxPace, 10)+", or absent for as fast as the gate takes them")
	}
	return p
}

func (e *edit) readWaitlist(field string, raw json.RawMessage) (waitlist bool) {
	if isNull(raw) || json.Unmarshal(raw, &waitlist) != nil {
		e.mistype(field, "true or false")
	}
	return waitlist
}

func (e *edit) readCoupon(raw json.RawMessage) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		e.mistype("coupon", "an object")
		return
	}
	o.only(e.mistakes, "coupon.", couponFields)
	field(e, o, "coupon.", "benefit", readBenefit, func(t *firstcome.Terms) *json.RawMessage { return &t.Benefit })
	field(e, o, "coupon.", "valid_until", e.readTime, func(t *firstcome.Terms) *time.Time { return &t.ValidUntil })
	field(e, o, "coupon.", "codes", e.readCodes, func(t *firstcome.Terms) *bool { return &t.Imported })
	field(e, o, "coupon.", "valid_for", e.readValidFor, func(t *firstcome.Terms) *time.Duration { return &t.ValidFor })
}

// readCodes reports whether codes are imported. null means that firstcome makes them.
func (e *edit) readCodes(field string, raw json.RawMessage) bool {
	switch {
	case isNull(raw):
		return false
	case string(raw) != `"`+client.ImportedCodes+`"`:
		e.refuse(field, `must be "imported", or null if firstcome makes the codes`)
	}
	return true
}

// readBenefit reads a benefit, which may be any JSON.
func readBenefit(_ string, raw json.RawMessage) json.RawMessage { return raw }

// readPrizes reads a list of prizes, or nil for null.
func (e *edit) readPrizes(name string, raw json.RawMessage) []firstcome.Prize {
	var list []json.RawMessage
	switch err := json.Unmarshal(raw, &list); {
	case isNull(raw):
		return nil
	case err != nil:
		e.mistype(name, "an array or null")
		return nil
	case len(list) > firstcome.MaxPrizes: // the mistakes of thousands of prizes would help nobody
		e.refuse(name, fmt.Sprintf("must have 1 to %d prizes, or be null for none", firstcome.MaxPrizes))
		return nil
	}
	prizes := make([]firstcome.Prize, len(list))
	for n, raw := range list {
		var o object
		if at := fmt.Sprintf("%s[%d]", name, n); json.Unmarshal(raw, &o) != nil || o == nil {
			e.mistype(at, "an object")
		} else {
			prizes[n] = e.readPrize(at+".", o)
		}
	}
	return prizes
}

// readPrize reads a prize, whose fields are in at.
func (e *edit) readPrize(at string, o object) (p firstcome.Prize) {
	o.only(e.mistakes, at, prizeFields)
	for _, name := range []string{"id", "name"} {
		if _, ok := o[name]; !ok {
			e.require(at + name)
		}
	}
	if raw, ok := o["id"]; ok {
		p.ID = firstcome.PrizeID(e.readString(at+"id", raw))
	}
	if raw, ok := o["name"]; ok {
		p.Name = e.readString(at+"name", raw)
	}
	if raw, ok := o["quantity"]; ok && !isNull(raw) {
		if !isInteger(string(raw)) {
			e.mistype(at+"quantity", "an integer or null")
		} else {
			quantity, _ := strconv.ParseInt(string(raw), 10, 64) // out of range it is the nearest, which Check refuses, too
			p.Quantity = cmp.Or(quantity, -1)                    // Check takes 0 for absent
		}
	}
	if raw, ok := o["benefit"]; ok && !isNull(raw) {
		p.Benefit = raw
	}
	if raw, ok := o["codes"]; ok {
		p.Imported = e.readCodes(at+"codes", raw)
	}
	return p
}

func (e *edit) readValidFor(field string, raw json.RawMessage) time.Duration {
	var d time.Duration
	if !isNull(raw) {
		text := e.readString(field, raw)
		if e.names(field) {
			return 0
		}
		var err error
		d, err = time.ParseDuration(text)
		if err != nil || d <= 0 || d%time.Microsecond != 0 {
			e.refuse(field, `must be a positive duration in whole microseconds, like "720h" or "1h30m"`)
		}
	}
	return d
}

// readTime reads a time, or the zero time for null.
func (e *edit) readTime(field string, raw json.RawMessage) time.Time {
	if isNull(raw) {
		return time.Time{}
	}
	if e.readString(field, raw); e.names(field) {
		return time.Time{}
	}
	var at client.Time
	if err := at.UnmarshalJSON(raw); err != nil {
		e.refuse(field, err.Error())
		return time.Time{}
	}
	// Outside these years, times would not sort as text, and the zero time could be given.
	if at.Year() < 1970 || at.Year() > 9999 {
		e.refuse(field, "must be in the years 1970 to 9999 in UTC")
	}
	return at.Time
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// wirePace converts a pace to its JSON form.
func wirePace(p *firstcome.Pace) *client.Pace {
	switch {
	case p == nil:
		return nil
	case p.PerSecond == 0:
		return &client.Pace{}
	}
	return &client.Pace{PerSecond: &p.PerSecond}
}

// wireTerms converts terms to their JSON form.
func wireTerms(t *firstcome.Terms) *client.Terms {
	terms := &client.Terms{
		Name: t.Name, OpensAt: wire.Time(t.OpensAt), ClosesAt: wire.Time(t.ClosesAt), Answer: string(t.Answer),
		Pace: wirePace(t.Pace), Waitlist: t.Waitlist, LineLog: t.Log != nil,
		Coupon: client.CouponSpec{Benefit: t.Benefit, ValidUntil: wire.Time(t.ValidUntil), Codes: codesOf(t.Imported)},
	}
	if t.ValidFor > 0 {
		terms.Coupon.ValidFor = (*client.Duration)(&t.ValidFor)
	}
	if t.Quantity != firstcome.Unlimited {
		terms.Quantity = &t.Quantity
	}
	for _, p := range t.Prizes {
		prize := client.PrizeSpec{ID: string(p.ID), Name: p.Name, Benefit: p.Benefit, Codes: codesOf(p.Imported)}
		if p.Quantity != 0 {
			prize.Quantity = &p.Quantity
		}
		terms.Prizes = append(terms.Prizes, prize)
	}
	return terms
}

// codesOf returns the word for whether codes are imported.
func codesOf(imported bool) string {
	if imported {
		return client.ImportedCodes
	}
	return ""
}
