package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// termsFields are the fields of a body that sets terms, couponFields those of
// its coupon.
var (
	termsFields  = []string{"name", "quantity", "opens_at", "closes_at", "answer", "coupon"}
	couponFields = []string{"benefit", "valid_until", "valid_for"}
)

// readObject reads a request's body, which is a JSON object with known fields;
// an empty body is an empty object.
func (s *Server) readObject(w http.ResponseWriter, r *http.Request, known ...string) (object, error) {
	b := s.buffer()
	defer s.release(b)
	if err := b.read(w, r, maxBody); err != nil {
		return nil, err
	}
	if len(b.bytes) == 0 {
		return object{}, nil
	}
	return parseObject(b.bytes, known...)
}

// An edit is what a body changes of a campaign's terms.
type edit struct {
	steps []func(*firstcome.Terms)
	wrong []client.FieldError // readable, but not allowed
}

func (e *edit) apply(t *firstcome.Terms) {
	for _, step := range e.steps {
		step(t)
	}
}

// fill makes the terms of a new campaign.
func (e *edit) fill(t *firstcome.Terms, o object) error {
	var missing []client.FieldError
	for _, field := range []string{"name", "quantity"} {
		if _, ok := o[field]; !ok {
			missing = append(missing, required(field))
		}
	}
	if len(missing) > 0 {
		return notAllowed(missing...)
	}
	e.apply(t)
	return nil
}

// parseTerms reads the fields that a body has, and refuses what cannot be read
// or can by itself never be allowed.
func parseTerms(o object) (*edit, error) {
	e := &edit{}
	for _, field := range []struct {
		name string
		read func(field string, raw json.RawMessage) error
	}{
		{"name", e.readName},
		{"quantity", e.readQuantity},
		{"opens_at", e.readOpensAt},
		{"closes_at", e.readClosesAt},
		{"answer", e.readAnswer},
		{"coupon", e.readCoupon},
	} {
		if raw, ok := o[field.name]; ok {
			if err := field.read(field.name, raw); err != nil {
				return nil, err
			}
		}
	}
	if len(e.wrong) > 0 {
		return nil, notAllowed(e.wrong...)
	}
	return e, nil
}

func (e *edit) step(do func(*firstcome.Terms)) { e.steps = append(e.steps, do) }

func (e *edit) refuse(field, reason string) {
	e.wrong = append(e.wrong, client.FieldError{Field: field, Reason: reason})
}

func (e *edit) readName(field string, raw json.RawMessage) error {
	name, err := parseString(field, raw)
	e.step(func(t *firstcome.Terms) { t.Name = name })
	return err
}

func (e *edit) readAnswer(field string, raw json.RawMessage) error {
	answer, err := parseString(field, raw)
	e.step(func(t *firstcome.Terms) { t.Answer = firstcome.AnswerWhen(answer) })
	return err
}

func (e *edit) readQuantity(field string, raw json.RawMessage) error {
	quantity := firstcome.Unlimited
	if !isNull(raw) {
		if !isInteger(string(raw)) {
			return wrongType(field, "an integer or null")
		}
		var err error
		quantity, err = strconv.ParseInt(string(raw), 10, 64)
		if err != nil || quantity > firstcome.MaxQuantity {
			e.refuse(field, "must be 0 to "+strconv.FormatInt(firstcome.MaxQuantity, 10)+", or null for no limit")
		}
	}
	e.step(func(t *firstcome.Terms) { t.Quantity = quantity })
	return nil
}

func (e *edit) readOpensAt(field string, raw json.RawMessage) error {
	at, err := e.readTime(field, raw)
	e.step(func(t *firstcome.Terms) { t.OpensAt = at })
	return err
}

func (e *edit) readClosesAt(field string, raw json.RawMessage) error {
	at, err := e.readTime(field, raw)
	e.step(func(t *firstcome.Terms) { t.ClosesAt = at })
	return err
}

func (e *edit) readCoupon(field string, raw json.RawMessage) error {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return wrongType(field, "an object")
	}
	if err := o.only(field+".", couponFields); err != nil {
		return err
	}
	if benefit, ok := o["benefit"]; ok {
		e.step(func(t *firstcome.Terms) { t.Benefit = benefit })
	}
	if raw, ok := o["valid_until"]; ok {
		at, err := e.readTime(field+".valid_until", raw)
		if err != nil {
			return err
		}
		e.step(func(t *firstcome.Terms) { t.ValidUntil = at })
	}
	if raw, ok := o["valid_for"]; ok {
		return e.readValidFor(field+".valid_for", raw)
	}
	return nil
}

func (e *edit) readValidFor(field string, raw json.RawMessage) error {
	var d time.Duration
	if !isNull(raw) {
		text, err := parseString(field, raw)
		if err != nil {
			return err
		}
		d, err = time.ParseDuration(text)
		if err != nil || d <= 0 || d%time.Microsecond != 0 {
			e.refuse(field, `must be a positive duration in whole microseconds, like "720h" or "1h30m"`)
		}
	}
	e.step(func(t *firstcome.Terms) { t.ValidFor = d })
	return nil
}

// readTime reads an instant; null is the zero time.
func (e *edit) readTime(field string, raw json.RawMessage) (time.Time, error) {
	if isNull(raw) {
		return time.Time{}, nil
	}
	if _, err := parseString(field, raw); err != nil {
		return time.Time{}, err
	}
	var at client.Time
	if err := at.UnmarshalJSON(raw); err != nil {
		e.refuse(field, err.Error())
		return time.Time{}, nil
	}
	// Outside, texts would not sort as instants do, and the zero time would be one.
	if at.Year() < 1970 || at.Year() > 9999 {
		e.refuse(field, "must be in the years 1970 to 9999 in UTC")
	}
	return at.Time, nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// parseString reads a field that must be a string.
func parseString(field string, raw json.RawMessage) (string, error) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", wrongType(field, "a string")
	}
	return *s, nil
}
