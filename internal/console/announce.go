package console

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

// announcement returns a text that tells customers of a campaign, a line for each thing that its terms say.
func (l locale) announcement(now time.Time, t *firstcome.Terms) string {
	lines := []string{l.say("선착순 쿠폰 ‘%s’", "“%s”: first come, first served", t.Name)}
	add := func(ko, en, what string) {
		if what != "" {
			lines = append(lines, l.say(ko, en)+": "+what)
		}
	}
	instant := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return l.spoken(now, at)
	}
	var benefit string
	_ = json.Unmarshal(t.Benefit, &benefit) // other JSON is for programs
	add("혜택", "What", benefit)
	add("경품", "Prizes", l.announced(t))
	if t.Quantity == firstcome.Unlimited {
		add("수량", "How many", l.say("제한 없음, 1인 1장", "no limit, one each"))
	} else {
		add("수량", "How many", l.say("%s장, 1인 1장", "%s, one each", l.number(t.Quantity)))
	}
	add("시작", "Starts", instant(t.OpensAt))
	add("종료", "Ends", instant(t.ClosesAt))
	if t.ValidFor > 0 {
		add("사용 기한", "Valid", l.say("발급 시점부터 %s", "for %s from when you get it", l.lasting(t.ValidFor)))
	}
	if at := instant(t.ValidUntil); at != "" {
		add("사용 기한", "Valid", l.say("%s까지", "until %s", at))
	}
	return strings.Join(lines, "\n")
}

// lasting returns a duration as people say it.
func (l language) lasting(d time.Duration) string {
	words := map[string]string{"days": "일", "hours": "시간", "minutes": "분", "seconds": "초"}
	for _, u := range validUnits {
		if n := int64(d / u.of); d%u.of == 0 {
			name := u.name
			if n == 1 {
				name = strings.TrimSuffix(name, "s")
			}
			return l.say("%[1]s%[2]s", "%[1]s %[3]s", l.number(n), words[u.name], name)
		}
	}
	return l.exactSpan(d)
}
