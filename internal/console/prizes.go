package console

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
)

// ranks returns the ranks of a prize. The last prize has no end.
func (l language) ranks(from, to int64) string {
	switch {
	case from == 0:
		return unknown
	case to == firstcome.Unlimited:
		return l.say("%s위부터", "from %s on", l.number(from))
	case from == to:
		return l.say("%s위", "%s", l.number(from))
	}
	return l.say("%s~%s위", "%s to %s", l.number(from), l.number(to))
}

// prizeTerms returns the prizes of terms in words, each with its ranks and its benefit.
func (l language) prizeTerms(t *firstcome.Terms) (all []changed) {
	for n, p := range t.Prizes {
		from, to := t.Ranks(n)
		text := l.say("%[2]s %[1]s (%[3]s)", "ranks %[2]s: %[1]s (%[3]s)", p.Name, l.ranks(from, to), p.ID)
		if benefit := benefitText(p.Benefit); benefit != "" {
			text += ", " + benefit
		}
		all = append(all, changed{Name: l.say("경품 %d", "prize %d", n+1), To: text})
	}
	return all
}

// holdBenefit checks that coupons are good for something: the benefit, or each prize.
func holdBenefit(v *view, found *doctor.Findings, t *firstcome.Terms) {
	if len(t.Prizes) == 0 {
		found.Hold(len(t.Benefit) > 0, doctor.Warn, v.say("혜택", "benefit"), v.say("혜택이 비어 있습니다. 고객이 무엇을 받는지 알 수 없습니다.", "The coupon does not say what it is good for."), "%s", benefitText(t.Benefit))
		return
	}
	last := len(t.Prizes) - 1
	from, _ := t.Ranks(last)
	advice := v.say("마지막 경품 ‘%s’의 몫이 없습니다. 회수된 쿠폰의 재고가 다시 발급될 때만 나갑니다.", "Nothing is left for the last prize, %s. It is given only when stock of voided coupons is issued again.", t.Prizes[last].Name)
	found.Hold(from <= t.Quantity, doctor.Warn, v.say("경품", "prizes"), advice, "%s", v.lang.announced(t))
}

// announced returns the prizes as customers read them, or "" if there are none.
func (l language) announced(t *firstcome.Terms) string {
	var all []string
	for n, p := range t.Prizes {
		from, to := t.Ranks(n)
		name, count := p.Name, min(to, t.Quantity)-from+1
		if benefit := plainBenefit(p.Benefit); benefit != "" && benefit != name {
			name += " (" + benefit + ")"
		}
		switch {
		case count < 1:
		case to == firstcome.Unlimited && t.Quantity == firstcome.Unlimited && n == 0:
			all = append(all, l.say("모두 %s", "everybody: %s", name))
		case to == firstcome.Unlimited && t.Quantity == firstcome.Unlimited:
			all = append(all, l.say("그 뒤 모두 %s", "everybody after that: %s", name))
		case n == 0:
			all = append(all, l.say("선착순 %s명 %s", "the first %s: %s", l.number(count), name))
		default:
			all = append(all, l.say("다음 %s명 %s", "the next %s: %s", l.number(count), name))
		}
	}
	return strings.Join(all, l.say(", ", "; "))
}

// skips says for each end of an epoch that terms have and the terms before them lack which numbers were skipped, and why.
func (l language) skips(before, after *firstcome.Terms) (all []changed) {
	skipped := int64(0)
	for n, s := range after.Skips {
		first, next := s.After-(s.Skipped-skipped)+1, s.After-s.Skipped+1
		if skipped = s.Skipped; n < len(before.Skips) {
			continue
		}
		text := l.say("게이트를 재구성할 때 %s번부터 %s번까지는 발급된 기록이 없어 건너뛰었습니다. 순위는 %s위부터 이어집니다.", "no coupon of numbers %s to %s was known when the gate was rebuilt; ranks go on at %s", l.number(first), l.number(s.After), l.number(next))
		if first == s.After {
			text = l.say("게이트를 재구성할 때 %s번은 발급된 기록이 없어 건너뛰었습니다. 순위는 %s위부터 이어집니다.", "no coupon of number %s was known when the gate was rebuilt; ranks go on at %s", l.number(first), l.number(next))
		}
		all = append(all, changed{Name: l.say("순위", "ranks"), To: text})
	}
	return all
}

// A nextPrize is the rank that a campaign's next coupon gets, and the name of its prize. It is zero if the campaign has no prizes or is closed, or if that is unknown.
type nextPrize struct {
	Rank  int64
	Prize string
}

func nextPrizeOf(t *firstcome.Terms, now *figures.Sample) nextPrize {
	if len(t.Prizes) == 0 || now.Ranks == nil || now.State == firstcome.Closed.String() {
		return nextPrize{}
	}
	rank := *now.Ranks + 1
	return nextPrize{rank, t.Prizes[t.PrizeOf(rank)].Name}
}

// nextRank says which rank and prize come next, after a sentence. It returns "" if that is unknown.
func (l language) nextRank(n nextPrize) string {
	if n.Rank == 0 {
		return ""
	}
	return l.say(" 다음은 %s위 ‘%s’입니다.", " The next is rank %s: %s.", l.number(n.Rank), n.Prize)
}

// A couponPrize is a coupon's rank and the name of its prize. Its rank is 0 if its terms could not be read.
type couponPrize struct {
	Rank  int64
	Prize string
}

func prizeOf(t *firstcome.Terms, number int64) couponPrize {
	got := couponPrize{Rank: t.Rank(number)}
	if n := t.PrizeOf(got.Rank); n >= 0 {
		got.Prize = t.Prizes[n].Name
	}
	return got
}

// shownCode returns a coupon's code, or "" if it is an imported one, which the console does not show.
func shownCode(t *firstcome.Terms, c *firstcome.Coupon) string {
	if _, entry := t.Entry(c.Number); entry > 0 {
		return ""
	}
	return c.Code
}

// A couponRow is a coupon in the list.
type couponRow struct {
	firstcome.Coupon
	couponPrize
}

// rowsOf returns coupons of a campaign with their ranks and prizes.
func (c *couponHandlers) rowsOf(v *view, id firstcome.CampaignID, coupons []firstcome.Coupon) (rows []couponRow, err error) {
	terms := map[int64]*firstcome.Terms{} // by version; nil if the ledger has forgotten them
	for _, coupon := range coupons {
		row := couponRow{Coupon: coupon}
		if _, known := terms[coupon.TermsVersion]; !known {
			t, err := c.Ledger.Terms(v.r.Context(), id, coupon.TermsVersion)
			if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
				return nil, err
			}
			if terms[coupon.TermsVersion] = &t; err != nil {
				terms[coupon.TermsVersion] = nil
			}
		}
		if t := terms[coupon.TermsVersion]; t != nil {
			row.couponPrize = prizeOf(t, coupon.Number)
			row.Code = shownCode(t, &coupon)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// prizeNow says which prize a claim would get now, or "" if that is unknown.
func (w customerWords) prizeNow(n nextPrize) string {
	if n.Rank == 0 {
		return ""
	}
	return w.say(" 지금 나가는 경품은 ‘%s’입니다.", " The prize now is: %s.", n.Prize)
}

// voidedStock says what becomes of the stock of a voided coupon that had a prize.
func (l language) voidedStock(of couponPrize, n nextPrize) string {
	return l.say("재고는 새 순위로만 발급되며, %s위의 ‘%s’%s 다시 나가지 않습니다.", "Its stock can only be issued under a new rank: rank %[1]s, %[2]s, is not given again.", l.number(of.Rank), of.Prize, particle(of.Prize, "은", "는")) + l.nextRank(n)
}

// A stock is what pages show of a prize.
type stock struct {
	Name, Benefit, Ranks string
	figures.Prize
	Took string // how long it took from the opening until it ran out; empty if unknown
}

// Share returns the share of the stock that is given, from 0 to 1.
func (s stock) Share() float64 {
	if s.Given == nil || s.Of == nil || *s.Of == 0 {
		return 0
	}
	return math.Min(1, float64(*s.Given)/float64(*s.Of))
}

// stocks returns what pages show of a campaign's prizes.
func (l language) stocks(t *firstcome.Terms, now *figures.Sample) (all []stock) {
	for n, p := range t.Prizes {
		from, to := t.Ranks(n)
		s := stock{Name: p.Name, Benefit: benefitText(p.Benefit), Ranks: l.ranks(from, to)}
		if n < len(now.Prizes) {
			s.Prize = now.Prizes[n]
		}
		s.Took = l.took(now.Instants.OpenedAt, s.RanOutAt)
		all = append(all, s)
	}
	return all
}

// gone says how fast prizes ran out, in sentences for an announcement.
func (l language) gone(stocks []stock) string {
	var all []string
	for _, s := range stocks {
		if s.Took != "" {
			all = append(all, l.say("‘%s’ %s장은 %s 모두 나갔어요.", "“%s”, %s in all: gone in %s.", s.Name, l.number(s.Of), s.Took))
		}
	}
	return strings.Join(all, " ")
}

// took returns how long it took from the opening until something ran out, or "" if it is unknown.
func (l language) took(opened, ranOut time.Time) string {
	if opened.IsZero() || ranOut.Before(opened) { // direct issues may use up stock before the opening
		return ""
	}
	d := ranOut.Sub(opened)
	switch {
	case d < time.Second/10:
		return l.say("0.1초도 안 되어", "less than 0.1 seconds")
	case d < 10*time.Second:
		return l.say("%s초 만에", "%s seconds", strconv.FormatFloat(d.Seconds(), 'f', 1, 64))
	}
	return l.say("%s 만에", "%s", l.span(d))
}
