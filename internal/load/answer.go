package load

import (
	"bytes"
	"strconv"
	"time"

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
	firstcome.Issued:        201,
}

// ParseAnswer returns what an HTTP answer to a claim says. Whatever is not an
// outcome with its status, and with a coupon where it has one, is unknown.
func ParseAnswer(status int, body []byte) Answer {
	f, ok := scanAnswer(body)
	outcome, err := firstcome.ParseOutcome(string(f.outcome))
	if err != nil || statuses[outcome] != status {
		return Answer{Trouble: "HTTP " + strconv.Itoa(status)}
	}
	if !ok {
		return Answer{Trouble: "an answer that is not JSON"}
	}
	if !outcome.HasCoupon() {
		return Answer{Outcome: outcome}
	}
	number, ok := digits(f.number)
	if !ok || len(f.code) == 0 || !f.coupon {
		return Answer{Trouble: "an answer without its coupon"}
	}
	answer := Answer{Outcome: outcome, Number: number, Code: string(f.code), Recorded: string(f.recorded) == "true"}
	var issuedAt time.Time
	if issuedAt.UnmarshalText(f.issuedAt) == nil {
		answer.IssuedAt = issuedAt.UnixMicro()
	}
	return answer
}

// digits returns the positive number that is written in decimal digits.
func digits(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	number := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = number*10 + int64(c-'0')
	}
	return number, number > 0
}

// fields are the parts of an answer that count: values as they stand in the
// JSON, strings without their quotes.
type fields struct {
	outcome                []byte
	number, code, recorded []byte
	issuedAt               []byte
	coupon                 bool // is an object
}

// scanAnswer finds the fields of {"outcome": …, "coupon": {"number": …, "code":
// …, "issued_at": …, "recorded": …}} in any order among others. A benefit is any JSON and may
// have keys of the same names, so depth is counted. Of what it passes over it
// checks no more than that strings and brackets end.
func scanAnswer(body []byte) (f fields, ok bool) {
	var key []byte
	depth, inCoupon, isKey := 0, false, false
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch c {
		case '{':
			depth++
			isKey = true
			if depth == 2 && string(key) == "coupon" {
				inCoupon, f.coupon = true, true
			}
		case '[':
			depth++
			isKey = false
		case '}', ']':
			depth--
			if depth <= 0 {
				return f, depth == 0 && len(bytes.TrimSpace(body[i+1:])) == 0
			}
			if depth == 1 {
				inCoupon = false
			}
		case ',':
			isKey = true // in a list of strings too: they are deeper than what counts
		case ':':
			isKey = false
		case ' ', '\t', '\r', '\n':
		default:
			end := scalarEnd(body, i)
			if end < 0 {
				return f, false
			}
			value := body[i:end]
			if c == '"' {
				value = body[i+1 : end-1]
			}
			if isKey {
				key = value
			} else {
				f.set(depth, inCoupon, key, value)
			}
			i = end - 1
		}
	}
	return f, false
}

// scalarEnd returns where the string, number or word that begins at i ends, or -1.
func scalarEnd(body []byte, i int) int {
	if body[i] != '"' {
		n := bytes.IndexAny(body[i:], ",]} \t\r\n")
		if n < 0 {
			return -1
		}
		return i + n
	}
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func (f *fields) set(depth int, inCoupon bool, key, value []byte) {
	switch {
	case depth == 1 && string(key) == "outcome":
		f.outcome = value
	case depth == 2 && inCoupon:
		switch string(key) {
		case "number":
			f.number = value
		case "code":
			f.code = value
		case "issued_at":
			f.issuedAt = value
		case "recorded":
			f.recorded = value
		}
	}
}
