package console

import (
	"cmp"
	"fmt"
	"html/template"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
)

// A language is one of the two languages of the pages.
type language string

const (
	korean  language = "ko"
	english language = "en"
)

var languages = []language{korean, english}

const languageCookie = "firstcome_language"

// languageOf returns the language that a person chose, or otherwise that of their browser.
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

// say returns the sentence in this language. args are those of fmt.Sprintf.
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

// unknown is shown in place of an unknown figure.
const unknown = "–"

// number returns a count with separated thousands, or unknown if it is nil.
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

// yes says whether something is so.
func (l language) yes(is bool) string {
	if is {
		return l.say("예", "yes")
	}
	return l.say("아니요", "no")
}

// none is said of a term that a campaign does not have.
func (l language) none() string { return l.say("없음", "none") }

// span returns a duration in the largest unit that is precise enough.
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

// exactSpan returns a duration in all units that it needs.
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

// rate returns the rate of a kind of claims, or unknown if there are no rates.
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

// percent returns a share between 0 and 1 in percent.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }

// roleWords are the names of roles, of keys and of nodes.
var roleWords = map[string]string{
	string(firstcome.Viewer): "조회", string(firstcome.Support): "상담", string(firstcome.Operator): "운영", string(firstcome.Admin): "관리자", string(firstcome.Service): "시스템", string(firstcome.Shop): "상점",
	"all": "전체", "api": "응답", "recorder": "레코더",
}

// role returns the name of a role of a key or of a node. A role without one is shown as it is.
func (l language) role(role any) string {
	name := fmt.Sprint(role)
	if word := roleWords[name]; word != "" && l == korean {
		return word
	}
	return name
}

// causeWords says for each cause of a dead letter why the ledger did not take the coupon.
var causeWords = map[string]sentence{
	"number_taken":       {"번호가 이미 다른 쿠폰의 것", "the number is another coupon's"},
	"other_epoch":        {"다른 에폭의 게이트가 발급", "a gate of another epoch issued it"},
	"unknown_terms":      {"캠페인에 없던 조건으로 발급", "it names terms that the campaign never had"},
	"user_holds_another": {"고객이 이미 다른 쿠폰을 보유", "the user holds another coupon"},
	"over_quantity":      {"수량 초과", "the quantity is used up"},
	"above_ceiling":      {"허용된 번호보다 큼", "the number is above what the gate may assign"},
	"no_code":            {"가져온 코드가 없는 순위", "no code was imported for its rank"},
	"malformed":          {"쿠폰의 값이 잘못됨", "a value of the coupon cannot be one"},
	"unreadable":         {"읽을 수 없는 항목", "an entry that cannot be read"},
	"other":              {"그 밖의 원인", "another cause"},
}

// cause returns the words for the code of a dead letter's cause. It panics on a code without words, so that tests find it.
func (l language) cause(code string) string {
	words, ok := causeWords[code]
	if !ok {
		panic(fmt.Sprintf("there are no words for the cause %q", code))
	}
	return l.words(words)
}

// whyWords says for each word of figures.Whys why a campaign's state or figures are unknown.
var whyWords = map[string]sentence{
	"silent":             {"게이트가 응답하지 않습니다.", "The gate does not answer."},
	"lost":               {"Redis가 비었거나 바뀌었거나 키가 유실되었습니다.", "Redis was emptied or replaced, or lost keys."},
	"unverified":         {"Redis가 다시 시작했거나, 이전 상태로 되돌아갔거나, 다른 서버로 전환되었습니다.", "Redis restarted or went back to an older state, or another server took over."},
	"rebuilding":         {"원장의 데이터로 게이트를 재구성하고 있습니다.", "The gate is being rebuilt from the ledger."},
	"mismatch":           {"이 노드의 게이트나 코드 시크릿은 이 캠페인의 것이 아닙니다.", "This node has another gate or code secret than the campaign."},
	"ledger_rolled_back": {"원장이 게이트보다 오래되었습니다. 백업을 되돌린 것 같습니다.", "The ledger is older than the gate, as after a restored backup."},
	"stale_epoch":        {"이 노드가 연결된 Redis의 에폭은 이미 끝났습니다.", "The epoch of the Redis that this node reaches has ended."},
	"creating":           {"캠페인 생성이 아직 게이트에 반영되지 않았습니다.", "Its creation has not reached the gate yet."},
}

// why returns the sentence for a word of figures.Whys. It panics on a word without one, so that tests find it.
func (l language) why(word string) string {
	words, ok := whyWords[word]
	if !ok {
		panic(fmt.Sprintf("there are no words for why nothing is known: %q", word))
	}
	return l.words(words)
}

// A term is a word on the pages with its explanation, in both languages.
type term struct {
	ID         string
	Word, What sentence
}

// A sentence is the same text in Korean and in English.
type sentence struct{ ko, en string }

// inBoth returns a sentence with the same figures in both languages. args are those of fmt.Sprintf.
func inBoth(ko, en string, args ...any) sentence {
	return sentence{korean.say(ko, en, args...), english.say(ko, en, args...)}
}

// glossary has every word that the pages explain. A page shows such a word with {{tip "id"}}, at its first place on the page. The help lists all of
// them.
var glossary = []term{
	{"claim", sentence{"요청", "Claims"}, sentence{"쿠폰을 달라는 신청입니다. 한 사람이 여러 번 신청하면 모두 셉니다.", "A claim asks for a coupon. If one customer claims several times, each claim counts."}},
	{"node", sentence{"노드", "Nodes"}, sentence{"요청에 응답하거나 쿠폰을 원장에 기록하는 firstcome 서버입니다. 여러 대를 함께 쓸 수 있습니다.", "A node is a firstcome server that answers claims, records coupons in the ledger, or both. Several can work together."}},
	{"gate", sentence{"게이트", "Gate"}, sentence{"쿠폰을 누가 받는지 결정하는 곳입니다. 원장이 직접 결정하거나, Redis가 결정합니다.", "The gate decides who is issued a coupon. It is either the ledger itself or Redis."}},
	{"journal", sentence{"저널", "Journal"}, sentence{"Redis가 발급했지만 아직 원장에 없는 쿠폰이 기록을 기다리는 곳입니다.", "Coupons that Redis has issued wait here until the ledger has them."}},
	{"ledger", sentence{"원장", "Ledger"}, sentence{"발급된 쿠폰을 보관하는 데이터베이스입니다. 한 번호를 두 사람이 갖거나 수량을 넘는 쿠폰은 받지 않습니다.", "The database that keeps the coupons. It refuses a number that another customer has, and a coupon beyond the quantity."}},
	{"fact", sentence{"발급 기록", "Facts"}, sentence{"쿠폰이 발급되거나 회수되었다는 기록입니다. 문자나 통계 같은 다른 시스템이 순서대로 읽어 갑니다.", "A fact says that a coupon was issued or voided. Other systems, such as mail or statistics, read facts in order."}},
	{"unrecorded", sentence{"기록 대기", "Unrecorded"}, sentence{"게이트가 발급했지만 아직 원장에 없는 쿠폰의 수입니다. 원장이 직접 결정하면 항상 0입니다.", "Coupons that the gate has issued and the ledger does not have yet. If the ledger is the gate, there are none."}},
	{"in-vain", sentence{"거절된 요청", "Refused"}, sentence{"소진, 오픈 전, 일시중지, 종료 때문에 쿠폰을 받지 못한 요청의 수입니다. 실제로는 더 많을 수 있습니다.", "Claims that got no coupon because the campaign was sold out, not open yet, paused or closed. The real number may be higher."}},
	{"unknown", sentence{"결과 미확인", "Unknown"}, sentence{"결과를 알려 주지 못한 요청의 수로, 실제로는 더 많을 수 있습니다. 과부하로 거절된 요청도 들어갑니다. 다시 신청해도 한 장만 받습니다.", "Claims that were answered without an outcome, including those refused because of overload. The real number may be higher. Claiming again is safe: a customer gets only one coupon."}},
	{"p95", sentence{"응답 p95", "p95"}, sentence{"요청 100건 중 95건은 약 이 시간 안에 응답을 받았습니다. 최근 몇 초의 값입니다.", "About 95 of 100 claims were answered within this time, over the last few seconds."}},
	{"last-proof", sentence{"마지막 검증", "Last verification"}, sentence{"원장의 모든 행을 다시 읽어 약속과 대조한 마지막 결과입니다. 그 뒤에 생긴 일은 들어 있지 않습니다.", "The last time that every row of the ledger was checked against the promises. Later changes are not covered."}},
	{"number", sentence{"번호", "Number"}, sentence{"게이트가 쿠폰을 발급한 순서입니다. 건너뛸 수 있으며, 순위나 발급된 수가 아닙니다. 회수된 번호는 다시 쓰이지 않습니다.", "The order in which the gate issued the coupons. Numbers may be skipped, so a number is neither a rank nor a count. A voided coupon's number is never used again."}},
	{"rank", sentence{"순위", "Rank"}, sentence{"이 캠페인에서 몇 번째로 나간 쿠폰인지를 나타내며, 경품은 순위로 정해집니다. 게이트를 재구성해 번호를 건너뛰어도 순위는 이어집니다. 회수된 쿠폰의 순위는 다시 쓰이지 않습니다.", "The place of a coupon in the order of the campaign's coupons: 1, 2, 3 and so on. Its prize follows from it. When a rebuild skips numbers, ranks go on. A voided coupon's rank is never used again."}},
	{"prize", sentence{"경품", "Prizes"}, sentence{"쿠폰의 순위에 따라 달라지는 혜택입니다. 나간 수에는 그 뒤에 회수된 쿠폰도 들어갑니다.", "What a coupon is good for, by its rank. Coupons that were voided later count as given."}},
	{"voided", sentence{"회수", "Voided"}, sentence{"발급한 쿠폰을 무효로 하는 것입니다. 쿠폰은 재고로 돌아갑니다.", "A voided coupon was taken back after it was issued. Its stock returned."}},
	{"dead-letter", sentence{"기록 실패 건", "Dead letters"}, sentence{"원장이 거부한 쿠폰이나 읽을 수 없는 항목입니다. 담당자가 다시 기록하거나 회수할 때까지 그 쿠폰의 재고는 차감된 채로 남습니다.", "Coupons that the ledger refused, and entries that cannot be read. The stock of such a coupon stays taken until an operator replays or voids it."}},
	{"lost", sentence{"유실된 번호", "Lost numbers"}, sentence{"Redis가 데이터를 잃기 전에 발급했을 수 있지만, 그 쿠폰을 찾을 수 없는 번호입니다. 다시 쓰이지 않습니다.", "Numbers that Redis may have assigned before it lost data, and whose coupons cannot be found. They are never assigned again."}},
	{"stopped", sentence{"발급이 중단된 게이트", "Gates that decide nothing"}, sentence{"지금까지 무엇이 발급되었는지 확실하지 않아 발급이 중단되었습니다. 게이트를 확인하거나 원장의 데이터로 재구성하면 다시 발급합니다. 재구성하면 새 에폭이 시작되고 번호를 건너뛸 수 있습니다.", "It is not certain what was issued so far, so nothing is issued. Issuing resumes once the gate is verified, or rebuilt from the ledger. A rebuild begins a new epoch, and numbers may be skipped."}},
	{"breaker", sentence{"서킷 브레이커", "Breaker"}, sentence{"기록이 거듭 실패하면 레코더가 잠시 멈추게 하는 장치입니다. 원장이 다시 받으면 저절로 풀립니다.", "After repeated failures the breaker makes a recorder wait between tries. It closes as soon as the ledger takes a batch."}},
	{"answer", sentence{"응답 시점", "When a claim is answered"}, sentence{"원장에 기록된 뒤에 응답하면 안내한 쿠폰이 원장에 남아 있습니다. 게이트가 결정하자마자 응답하면 더 빠를 수 있지만, Redis가 데이터를 잃으면 안내한 쿠폰이 유실될 수 있습니다.", "Once the coupon is in the ledger: every coupon that a customer is told of is recorded. As soon as the gate has decided: this may be faster, but if Redis loses data, a coupon that a customer was told of can be lost."}},
	{"line", sentence{"대기열", "The line"}, sentence{"쿠폰을 기다리는 사람들입니다. 들어온 순서대로 쿠폰을 받습니다.", "The users who wait for a coupon. They are served in the order in which they joined."}},
	{"pace", sentence{"속도", "Pace"}, sentence{"대기열에 쿠폰을 발급하는 속도입니다. 1초에 몇 장인지로 정합니다.", "How fast coupons are issued to the line, in coupons a second."}},
	{"waitlist", sentence{"예비 대기", "Waitlist"}, sentence{"소진된 뒤에도 대기열이 남아 있어, 쿠폰이 회수되면 다음 사람이 받습니다. 받는다는 보장은 없습니다.", "The line stays when all coupons are gone, and a voided coupon goes to the next user in line. No coupon is promised."}},
	{"ticket", sentence{"순번", "Ticket"}, sentence{"대기열에 들어온 순서입니다. 쿠폰의 번호와는 다릅니다.", "The order in which users joined the line. It is not a coupon's number."}},
	{"ahead", sentence{"앞에, 최대", "Ahead, at most"}, sentence{"대기를 취소한 사람도 차례가 될 때까지 셉니다. 그래서 실제로는 더 적을 수 있습니다.", "Users who left the line count until their turn comes, so there may be fewer."}},
	{"version", sentence{"버전", "Version"}, sentence{"이 캠페인에 마지막으로 적용한 변경의 번호입니다. 그사이 다른 사람이 바꿨는지 이것으로 압니다.", "The number of the campaign's last change. It shows whether somebody else has changed the campaign."}},
}

// words returns a sentence in the language.
func (l language) words(s sentence) string { return l.say(s.ko, s.en) }

// tip returns a word that shows its explanation when it is pressed, by mouse, finger or keyboard and without script. A word that glossary lacks is an
// error.
func (l language) tip(id string) (template.HTML, error) {
	for _, t := range glossary {
		if t.ID == id {
			return template.HTML(fmt.Sprintf(`<span class="term"><button type="button" popovertarget="tip-%[1]s">%[2]s</button><span popover id="tip-%[1]s">%[3]s</span></span>`, //nolint:gosec // our own words
				id, template.HTMLEscapeString(l.words(t.Word)), template.HTMLEscapeString(l.words(t.What)))), nil
		}
	}
	return "", fmt.Errorf("the glossary has no word %q", id)
}
