package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
)

// timeLayout always has six digits, so that texts sort as instants do.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendAnswer appends the answer to a claim that has a coupon.
func appendAnswer(b []byte, o firstcome.Outcome, c *firstcome.Coupon, t *terms) []byte {
	b = append(b, `{"outcome":"`...)
	b = append(b, o.String()...)
	b = append(b, `","coupon":`...)
	return append(appendCoupon(b, c, t), '}')
}

// appendCoupon appends a coupon with the terms that it keeps.
func appendCoupon(b []byte, c *firstcome.Coupon, t *terms) []byte {
	b = append(b, `{"campaign_id":"`...)
	b = append(b, c.Campaign...)
	b = append(b, `","number":`...)
	b = strconv.AppendInt(b, c.Number, 10)
	b = append(b, `,"user_id":`...)
	b = appendText(b, string(c.User))
	b = append(b, `,"code":"`...)
	b = append(b, c.Code...)
	b = append(b, `","state":"`...)
	b = append(b, state(c)...)
	b = append(b, `","benefit":`...)
	b = append(b, t.benefit...)
	b = append(b, `,"issued_at":`...)
	b = appendTime(b, c.IssuedAt)
	b = append(b, `,"expires_at":`...)
	b = appendTime(b, t.ExpiresAt(c.IssuedAt))
	b = append(b, `,"recorded":`...)
	b = strconv.AppendBool(b, c.Recorded)
	b = append(b, `,"generation":`...)
	b = appendOrNull(b, c.Generation)
	b = append(b, `,"ticket":`...)
	b = appendOrNull(b, c.Ticket)
	if c.Direct {
		b = append(b, `,"direct":true`...)
	}
	return append(b, '}')
}

// appendOrNull appends part of a coupon's ticket; 0, of one that was issued without a line, is null.
func appendOrNull(b []byte, n int64) []byte {
	if n == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, n, 10)
}

// state returns the word for whether a coupon is in force.
func state(c *firstcome.Coupon) string {
	if c.VoidedAt.IsZero() {
		return "in_force"
	}
	return "voided"
}

// appendTime appends an instant; the zero time is null. It is timeLayout, but by the layout that the library formats several
// times as fast.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	point := len(b) - len("Z")
	b = strconv.AppendInt(b[:point], 1_000_000+int64(t.Nanosecond()/1000), 10)
	b[point] = '.' // was the 1, which keeps leading zeros
	return append(b, `Z"`...)
}

// appendText appends a string of well-formed UTF-8.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
