package console

import (
	"fmt"
	"html/template"
	"time"
)

// seoul is the time zone of most people who run drops. Where it matters, pages also show UTC.
var seoul = time.FixedZone("KST", 9*60*60)

const (
	toSecond = "2006-01-02 15:04:05"
	toMilli  = "2006-01-02 15:04:05.000"
)

// exact returns an instant in Seoul, to the millisecond.
func exact(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.In(seoul).Format(toMilli)
}

func utc(t time.Time) string { return t.UTC().Format(toSecond) }

// exact returns an element that shows an instant in Seoul, to the millisecond.
func (l language) exact(t time.Time) template.HTML { return l.moment(t, "", exact(t)) }

// date returns an element that shows an instant in Seoul, to the second.
func (l language) date(t time.Time) template.HTML {
	return l.moment(t, "", t.In(seoul).Format(toSecond))
}

// ago returns an element that shows the distance of an instant from now. The page's script keeps counting.
func (l language) ago(now, t time.Time) template.HTML {
	age := now.Sub(t)
	return l.moment(t, fmt.Sprintf(` data-age="%d"`, int(age.Seconds())), l.distance(age))
}

// moment returns an element that shows a text for an instant. A pointer or the keyboard focus on it shows the exact time in Seoul and in UTC, also
// without script. A screen reader reads that time after the text. A zero time is unknown.
func (l language) moment(t time.Time, attributes, text string) template.HTML {
	if t.IsZero() {
		return unknown
	}
	both := l.say("서울 %s&#10;UTC %s", "Seoul %s&#10;UTC %s", exact(t), t.UTC().Format(toMilli))
	return template.HTML(fmt.Sprintf(`<time datetime="%s" tabindex="0" aria-description="%s"%s>%s</time>`, //nolint:gosec // digits and our own words
		t.UTC().Format("2006-01-02T15:04:05.000Z"), both, attributes, text))
}

// distance returns how long ago an instant was, or how far ahead it is, in the words of browsers (Intl.RelativeTimeFormat).
func (l language) distance(age time.Duration) string {
	n, ko, en := int(age.Abs().Seconds()), "초", "second"
	switch {
	case n >= 2*24*60*60:
		n, ko, en = n/(24*60*60), "일", "day"
	case n >= 60*60:
		n, ko, en = n/(60*60), "시간", "hour"
	case n >= 60:
		n, ko, en = n/60, "분", "minute"
	}
	if n != 1 {
		en += "s"
	}
	if age < 0 {
		return l.say("%[1]s%[2]s 후", "in %[1]s %[3]s", l.number(n), ko, en)
	}
	return l.say("%[1]s%[2]s 전", "%[1]s %[3]s ago", l.number(n), ko, en)
}
