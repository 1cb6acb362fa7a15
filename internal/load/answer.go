package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"github.com/firstcome/firstcome"
)

// An Answer is what a client learned of its claim.
type Answer struct {
	Outcome  firstcome.Outcome // 0: unknown
	Number   int64             // what follows is zero unless Outcome.HasCoupon
	Code     string
	Recorded bool
	IssuedAt int64  // by the server's clock, in microseconds since 1970; 0: it does not say
	Trouble  string // why the outcome is unknown, in a few words that many claims share
}

// statuses holds the HTTP status of each outcome.
var statuses = [...]int{
	firstcome.AlreadyIssued: 200,
	firstcome.NotOpen:       403,
	firstcome.Closed:        410,
	firstcome.Paused:        403,
	firstcome.SoldOut:       410,
	firstcome.Waiting:       202,
	firstcome.Issued:        201,
}

var parsers fastjson.ParserPool

// ParseAnswer returns what an HTTP answer to a claim says. Whatever is not an
// outcome with its status, and with a coupon where it has one, is unknown.
func ParseAnswer(status int, body []byte) Answer {
	parser := parsers.Get()
	defer parsers.Put(parser)
	said, err := parser.ParseBytes(body)
	outcome, none := firstcome.ParseOutcome(string(said.GetStringBytes("outcome")))
	switch {
	case err != nil && slices.Contains(statuses[:], status):
		return Answer{Trouble: fmt.Sprintf("HTTP %d without JSON", status)}
	case none != nil || statuses[outcome] != status:
		return Answer{Trouble: fmt.Sprintf("HTTP %d", status)}
	case !outcome.HasCoupon():
		return Answer{Outcome: outcome}
	}
	coupon := said.Get("coupon")
	answer := Answer{
		Outcome: outcome, Number: coupon.GetInt64("number"), Code: string(coupon.GetStringBytes("code")), Recorded: coupon.GetBool("recorded"),
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
