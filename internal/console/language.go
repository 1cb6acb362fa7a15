package console

import (
	"cmp"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
)

// A language is one of the two that the pages speak.
type language string

const (
	korean  language = "ko"
	english language = "en"
)

var languages = []language{korean, english}

const languageCookie = "firstcome_language"

// languageOf returns the language that a person chose, or else that of their browser.
func languageOf(r *http.Request) language {
	asked := ""
	if cookie, err := r.Cookie(languageCookie); err == nil {
		asked = cookie.Value
	}
	asked = cmp.Or(r.URL.Query().Get("lang"), asked)
	for part := range strings.SplitSeq(asked+","+r.Header.Get("Accept-Language"), ",") {
		switch word, _, _ := strings.Cut(strings.TrimSpace(part), ";"); {
		case strings.HasPrefix(word, "ko"):
			return korean
		case strings.HasPrefix(word, "en"):
			return english
		}
	}
	return english
}

// say returns the sentence of the language, with arguments as fmt.Sprintf takes them.
func (l language) say(ko, en string, args ...any) string {
	text := en
	if l == korean {
		text = ko
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// unknown stands for a figure that nobody knows now.
const unknown = "–"

// number returns a count with its thousands apart; nil is unknown.
func (l language) number(n any) string {
	switch n := n.(type) {
	case int:
		return humanize.Comma(int64(n))
	case int64:
		return humanize.Comma(n)
	case uint64:
		return humanize.BigComma(new(big.Int).SetUint64(n))
	case *int64:
		if n == nil {
			return unknown
		}
		return humanize.Comma(*n)
	}
	panic(fmt.Sprintf("a page has %T for a number", n))
}

// quantity returns a campaign's quantity.
func (l language) quantity(n int64) string {
	if n == firstcome.Unlimited {
		return l.say("무제한", "unlimited")
	}
	return humanize.Comma(n)
}

// span returns how long something takes, in the largest unit that says enough.
func (l language) span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < time.Minute:
		return l.say("%d초", "%d s", int(d.Seconds()))
	case d < time.Hour:
		return l.say("%d분 %d초", "%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return l.say("%d시간 %d분", "%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return l.say("%d일", "%d days", int(d.Hours())/24)
}

// exactSpan returns how long something takes, with every unit that it has.
func (l language) exactSpan(d time.Duration) string {
	var parts []string
	for _, u := range []struct {
		of     time.Duration
		ko, en string
	}{{24 * time.Hour, "%d일", "%d d"}, {time.Hour, "%d시간", "%d h"}, {time.Minute, "%d분", "%d min"}, {time.Second, "%d초", "%d s"}, {time.Microsecond, "%dµs", "%d µs"}} {
		if n := d / u.of; n > 0 {
			parts = append(parts, l.say(u.ko, u.en, n))
		}
		d %= u.of
	}
	return strings.Join(parts, " ")
}

// rate returns the rate of a kind of claims; without any rates it is unknown.
func rate(of map[string]float64, kind string) string {
	if of == nil {
		return unknown
	}
	return humanize.CommafWithDigits(figureOf(of, kind), 0)
}

// figureOf returns the figure of a kind of claims. It panics on a kind that does not exist, so that tests find a misspelt one.
func figureOf[N any](figures map[string]N, kind string) N {
	n, ok := figures[kind]
	if !ok {
		panic(fmt.Sprintf("a page asks for %q, and there is no such kind of claims", kind))
	}
	return n
}

// millis returns seconds as milliseconds.
func millis(seconds *float64) string {
	if seconds == nil {
		return unknown
	}
	if *seconds < .0001 {
		return "< 0.1 ms"
	}
	return strconv.FormatFloat(*seconds*1000, 'f', 1, 64) + " ms"
}

// percent returns a share of 0 to 1.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }

// roleWords are the roles of keys, and of nodes.
var roleWords = map[string]string{
	string(firstcome.Viewer): "조회", string(firstcome.Support): "상담", string(firstcome.Operator): "운영", string(firstcome.Admin): "관리자", string(firstcome.Service): "시스템", string(firstcome.Shop): "상점",
	"all": "전체", "api": "응답", "recorder": "레코더",
}

// role returns the word for a role of a key or of a node. One that has none is shown as it is.
func (l language) role(role any) string {
	name := fmt.Sprint(role)
	if word := roleWords[name]; word != "" && l == korean {
		return word
	}
	return name
}

// causeWords says of each cause of a dead letter why the ledger did not take the coupon.
var causeWords = map[string]sentence{
	"number_taken":       {"번호가 이미 다른 쿠폰의 것", "the number is another coupon's"},
	"other_epoch":        {"다른 에폭의 게이트가 발급", "a gate of another epoch issued it"},
	"unknown_terms":      {"캠페인에 없던 조건으로 발급", "it names terms that the campaign never had"},
	"user_holds_another": {"고객이 이미 다른 쿠폰을 보유", "the user holds another coupon"},
	"over_quantity":      {"수량 초과", "the quantity is used up"},
	"above_ceiling":      {"허용된 번호보다 큼", "the number is above what the gate may assign"},
	"malformed":          {"쿠폰의 값이 잘못됨", "a value of the coupon cannot be one"},
	"unreadable":         {"읽을 수 없는 항목", "an entry that cannot be read"},
	"other":              {"그 밖의 원인", "another cause"},
}

// cause returns the words for the code of a dead letter's cause. It panics on a code that has none, so that tests find it.
func (l language) cause(code string) string {
	words, ok := causeWords[code]
	if !ok {
		panic(fmt.Sprintf("there are no words for the cause %q", code))
	}
	return l.words(words)
}

// whyWords say of each word of figures.Whys why a campaign's state or figures are unknown.
var whyWords = map[string]sentence{
	"silent":     {"게이트가 응답하지 않습니다.", "The gate does not answer."},
	"lost":       {"Redis가 비었거나 바뀌었거나 키가 유실되었습니다.", "Redis was emptied or replaced, or lost keys."},
	"unverified": {"Redis가 다시 시작했거나 다른 서버가 맡았습니다.", "Redis restarted, or another server took over."},
	"rebuilding": {"게이트를 원장에서 다시 만들고 있습니다.", "The gate is being rebuilt from the ledger."},
	"mismatch":   {"이 노드의 게이트나 코드 시크릿은 이 캠페인의 것이 아닙니다.", "This node has another gate or code secret than the campaign."},
	"older":      {"원장이 게이트보다 오래되었습니다. 백업을 되돌린 것 같습니다.", "The ledger is older than the gate, as after a restored backup."},
	"behind":     {"이 노드가 닿는 Redis의 에폭은 이미 끝났습니다.", "The epoch of the Redis that this node reaches has ended."},
}

// why returns the words for a word of figures.Whys. It panics on one that has none, so that tests find it.
func (l language) why(word string) string {
	words, ok := whyWords[word]
	if !ok {
		panic(fmt.Sprintf("there are no words for why nothing is known: %q", word))
	}
	return l.words(words)
}
