package console

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/zone"
)

// A locale is how a person reads a page: in which language, and in which time zone.
type locale struct {
	language
	zone *time.Location
}

// locale returns the locale of pages in a language.
func (c *Options) locale(l language) locale {
	if c.Zone != nil {
		return locale{l, c.Zone}
	}
	if seoul, err := zone.Load(seoulName); err == nil && l == korean {
		return locale{l, seoul}
	}
	return locale{l, time.UTC}
}

// seoulName is the zone of Korean pages. In Korean it is called by its country.
const seoulName = "Asia/Seoul"

// Zone returns the name of the zone in the IANA database, for scripts.
func (l locale) Zone() string { return l.zone.String() }

// zoneWord returns the name of the zone as people say it.
func (l locale) zoneWord() string {
	name := l.zone.String()
	city := strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "_", " ")
	switch {
	case name == time.UTC.String():
		return name
	case name == seoulName:
		return l.say("한국 시간", "Seoul time")
	}
	return l.say("%s 시간", "%s time", city)
}

// Each time is followed by the zone's abbreviation or, for a zone without one, its offset.
const (
	toSecond = "2006-01-02 15:04:05 MST"
	toMilli  = "2006-01-02 15:04:05.000 MST"
)

// shown returns an instant in the zone.
func (l locale) shown(t time.Time, layout string) string {
	if t.IsZero() {
		return unknown
	}
	return t.In(l.zone).Format(layout)
}

// milli returns an instant to the millisecond.
func (l locale) milli(t time.Time) string { return l.shown(t, toMilli) }

// exact returns an element that shows an instant to the millisecond.
func (l locale) exact(t time.Time) template.HTML { return l.moment(t, "", l.milli(t)) }

// date returns an element that shows an instant to the second.
func (l locale) date(t time.Time) template.HTML { return l.moment(t, "", l.shown(t, toSecond)) }

// both returns an instant in the zone and in UTC.
func (l locale) both(t time.Time) string {
	there, utc := l.shown(t, toSecond), t.UTC().Format(toSecond)
	if there == utc {
		return utc
	}
	return there + " = " + utc
}

// spoken returns an instant as people say it, to the second, with the zone. It has the year if that is another one than now. In Korean the zone is
// left out if it is Seoul's.
func (l locale) spoken(now, t time.Time) string {
	at, year := t.In(l.zone), ""
	if l.language == english {
		if at.Year() != now.In(l.zone).Year() {
			year = at.Format(" 2006")
		}
		return fmt.Sprintf("%s on %s%s (%s)", strings.Replace(at.Format("3:04:05 pm"), ":00 ", " ", 1), at.Format("2 January"), year, l.zoneWord())
	}
	if at.Year() != now.In(l.zone).Year() {
		year = at.Format("2006년 ")
	}
	text := year + at.Format("1월 2일 ") + halves[at.Hour()/12] + at.Format(" 3시")
	if at.Minute() > 0 || at.Second() > 0 {
		text += at.Format(" 4분")
	}
	if at.Second() > 0 {
		text += at.Format(" 5초")
	}
	if l.zone.String() != seoulName {
		text += " (" + l.zoneWord() + ")"
	}
	return text
}

// said returns an element that shows an instant as people say it.
func (l locale) said(now, t time.Time) template.HTML { return l.moment(t, "", l.spoken(now, t)) }

// halves are the halves of a day in Korean.
var halves = [...]string{"오전", "오후"}

// ago returns an element that shows the distance of an instant from now. The page's script keeps counting.
func (l locale) ago(now, t time.Time) template.HTML {
	age := now.Sub(t)
	return l.moment(t, fmt.Sprintf(` data-age="%d"`, int(age.Seconds())), l.distance(age))
}

// moment returns an element that shows a text for an instant. A pointer or the keyboard focus on it shows the exact time in the zone and in UTC, also
// without script. A screen reader reads that time after the text. A zero time is unknown.
func (l locale) moment(t time.Time, attributes, text string) template.HTML {
	if t.IsZero() {
		return unknown
	}
	both := t.UTC().Format(toMilli)
	if there := l.milli(t); there != both {
		both = there + "&#10;" + both
	}
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
