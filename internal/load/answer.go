package load

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// An Answer is the result of a claim, as its client knows it.
type Answer struct {
	Outcome  firstcome.Outcome // 0 if unknown
	Number   int64             // zero, like the next fields, unless Outcome.HasCoupon
	Code     string
	Recorded bool
	Rank     int64
	Prize    string        // id; empty if the coupon has none
	IssuedAt int64         // by the server's clock, in microseconds since 1970; 0 if unknown
	Place    *client.Place // nil unless Outcome is Waiting
	Trouble  string        // why the outcome is unknown, in a few words that many claims share
}

// isCode matches the codes of problems.
var isCode = regexp.MustCompile(`^[a-z_]{1,32}$`)

var parsers fastjson.ParserPool

// ParseAnswer parses an HTTP answer to a claim. The outcome is unknown unless the answer has an outcome with its status, and a coupon if the outcome
// has one.
func ParseAnswer(status int, body []byte) Answer {
	parser := parsers.Get()
	defer parsers.Put(parser)
	said, err := parser.ParseBytes(body)
	outcome, none := firstcome.ParseOutcome(string(said.GetStringBytes("outcome")))
	switch {
	case err != nil && slices.ContainsFunc(firstcome.Outcomes(), func(o firstcome.Outcome) bool { return o.Status() == status }):
		return Answer{Trouble: fmt.Sprintf("HTTP %d without JSON", status)}
	case none != nil || outcome.Status() != status:
		if code := string(said.GetStringBytes("code")); isCode.MatchString(code) { // 503 has many causes
			return Answer{Trouble: fmt.Sprintf("HTTP %d %s", status, code)}
		}
		return Answer{Trouble: fmt.Sprintf("HTTP %d", status)}
	case outcome == firstcome.Waiting:
		return placed(said)
	case !outcome.HasCoupon():
		return Answer{Outcome: outcome}
	}
	coupon := said.Get("coupon")
	answer := Answer{
		Outcome: outcome, Number: coupon.GetInt64("number"), Code: string(coupon.GetStringBytes("code")), Recorded: coupon.GetBool("recorded"),
		Rank: coupon.GetInt64("rank"), Prize: string(coupon.GetStringBytes("prize", "id")),
	}
	if answer.Number < 1 || answer.Code == "" {
		return Answer{Trouble: "an answer without its coupon"}
	}
	var issuedAt time.Time
	if issuedAt.UnmarshalText(coupon.GetStringBytes("issued_at")) == nil {
		answer.IssuedAt = issuedAt.UnixMicro()
	}
	return answer
}

// placed returns the Answer for a place in line.
func placed(said *fastjson.Value) Answer {
	place := client.Place{
		Ticket: said.GetInt64("ticket"), Generation: said.GetInt64("generation"), Ahead: said.GetInt64("ahead"),
		Likely: said.GetBool("likely"), Serving: said.GetBool("serving"), PollAfter: said.GetFloat64("poll_after"),
	}
	if place.Ticket < 1 || place.Generation < 1 {
		return Answer{Trouble: "an answer without its place"}
	}
	if eta := said.Get("eta_seconds"); eta != nil && eta.Type() == fastjson.TypeNumber {
		seconds := eta.GetInt64()
		place.ETASeconds = &seconds
	}
	return Answer{Outcome: firstcome.Waiting, Place: &place}
}
