//go:build !race || soak

package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

var (
	count = regexp.MustCompile(`<p class="count"><strong[^>]*>([^<]*)</strong> <span>/ ([\d,–]+)`)
	// english matches an English sentence. A Korean page may have single English words: our own names, and words of the field.
	english = regexp.MustCompile(`[A-Za-z]{2,}[,:]? [a-z]{2,}[,:]? [a-z]{2,}`)
	command = regexp.MustCompile(`firstcome [a-z]+ [a-z]+`)
	status  = regexp.MustCompile(`(?s)<p role="status" data-part="said">(.*?)</p>`)
	times   = regexp.MustCompile(`<time [^>]*>([^<]*)</time>`)
)

// readAll reads every page in both languages.
func (w *walk) readAll(step walked) {
	w.t.Helper()
	for n, lang := range []string{"ko", "en"} {
		b := w.browser()
		b.lang = lang
		word, say := stateWords[step.gets][n], func(ko, en string) string { return []string{ko, en}[n] }
		for _, path := range []string{"", "/campaigns/spring", "/campaigns/spring/steer", "/campaigns/spring/terms", "/campaigns/spring/coupons", "/campaigns/spring/proof", "/campaigns/spring/report"} {
			got := b.get("/console" + path)
			if w.dark && path != "/campaigns/spring" {
				if got.status != http.StatusServiceUnavailable || !strings.Contains(got.text(), say("지금은 알 수 없습니다", "This is not known now")) {
					w.t.Errorf("%s, %s, %q: %d %s", step.name, lang, path, got.status, got.text())
				}
				continue
			}
			if got.status != http.StatusOK {
				w.t.Errorf("%s, %s, %q: %d %s", step.name, lang, path, got.status, got.text())
				continue
			}
			if n == 0 {
				koreanOnly(w.t, fmt.Sprintf("%s, %q", step.name, path), got)
			}
			found := badge.FindStringSubmatch(got.body)
			if found == nil || found[2] != word {
				w.t.Errorf("%s, %s, %q says %q, and a newcomer gets %q", step.name, lang, path, found, word)
			}
			if path == "/campaigns/spring/coupons" || path == "" || path == "/campaigns/spring" {
				w.stopped(step, lang, path, got.text(), onPage)
				w.dated(step, lang, path, got.text())
			}
			w.figures(step, lang, path, got)
			w.inLine(step, lang, path, got)
		}
		w.recording(step, b, say)
		w.health(step, b, say)
		if w.dark {
			continue
		}
		w.customers(step, b)
	}
}

// figures compares the figures and instants of a page with what the test did.
func (w *walk) figures(step walked, lang, path string, got shown) {
	w.t.Helper()
	unknown := w.blind || w.dark
	known := func(text string) string {
		if unknown {
			return "–"
		}
		return text
	}
	if found := count.FindStringSubmatch(got.body); found != nil {
		want := []string{known(fmt.Sprint(len(w.held))), fmt.Sprint(w.terms.Quantity)}
		if w.dark {
			want[1] = "–"
		}
		if !slices.Equal(found[1:3], want) {
			w.t.Errorf("%s, %s, %q shows %q in force of the quantity, and should show %q", step.name, lang, path, found[1:3], want)
		}
	}
	exact := func(at time.Time) string {
		if at.IsZero() {
			return "–"
		}
		return at.In(time.FixedZone("KST", 9*60*60)).Format("2006-01-02 15:04:05 MST")
	}
	text := times.ReplaceAllString(got.body, "$1")
	shows := func(name, before, want string) {
		w.t.Helper()
		_, rest, ok := strings.Cut(text, before)
		is, _, _ := strings.Cut(rest, "<")
		is, _, _ = strings.Cut(is, " · ")
		is = millis.ReplaceAllString(is, "")
		if !ok || is != want {
			w.t.Errorf("%s, %s, %q shows %s as %q, and should show %q", step.name, lang, path, name, is, want)
		}
	}
	ko := lang == "ko"
	pick := func(a, b string) string {
		if ko {
			return a
		}
		return b
	}
	if opens := pick(" 후 오픈", "opens in"); path == "" || path == "/campaigns/spring" {
		if coming := step.gets == firstcome.NotOpen; strings.Contains(got.text(), opens) != coming {
			w.t.Errorf("%s, %s, %q: the campaign will open: %v, and the page says: %s", step.name, lang, path, coming, got.text())
		}
	}
	switch path {
	case "/campaigns/spring/report":
		shows("the opening", "<dt>"+pick("오픈", "Opened")+"</dt><dd>", known(exact(w.opened)))
		label := pick("소진", "Sold out")
		if w.restocked() && !unknown && !w.soldOut.IsZero() {
			label = pick("최초 소진", "First sold out")
		}
		shows("the first sell-out", "<dt>"+label+"</dt><dd>", known(exact(w.soldOut)))
		shows("the close", "<dt>"+pick("종료", "Closed")+"</dt><dd>", exact(w.closed))
		for sentence, told := range map[string]bool{
			pick("몇 명이 쿠폰을 받았는지 지금은 알 수 없습니다.", "how many customers got a coupon is not known now."):                                                   unknown,
			fmt.Sprintf(pick("준비한 쿠폰 %[2]d장 중 %[1]d장을 고객 %[1]d명이 받았습니다.", "customers got %d of %d coupons, one each."), len(w.held), w.terms.Quantity): !unknown && len(w.held) > 0,
			fmt.Sprintf(pick("준비한 쿠폰 %d장을 받은 고객은 없습니다.", "no customer got one of the %d coupons."), w.terms.Quantity):                                  !unknown && len(w.held) == 0,
			pick("에 오픈했습니다.", "It opened at "):       !unknown && !w.opened.IsZero(),
			pick("에 오픈합니다.", "It opens at "):         !unknown && step.gets == firstcome.NotOpen,
			pick("모두 소진되었습니다.", "sold out after "):   !unknown && !w.soldOut.IsZero(),
			pick("현재 발급이 일시 중지", "It is paused now"): !unknown && step.gets == firstcome.Paused,
			pick("에 종료되었습니다.", map[bool]string{true: "It was closed before it opened", false: "It ended at "}[w.closed.Before(w.terms.OpensAt)]): !w.closed.IsZero(),
		} {
			if strings.Contains(got.text(), sentence) != told {
				w.t.Errorf("%s, %s: the report tells %q: %v, and should %v: %s", step.name, lang, sentence, !told, told, got.text())
			}
		}
		shows("the numbers issued", "<dt>"+pick("발급한 번호", "Numbers issued")+"</dt><dd>", known(fmt.Sprint(w.issued)))
	case "/campaigns/spring":
		left := known(fmt.Sprint(w.terms.Quantity - int64(len(w.held))))
		shows("what is left", `<dd data-f="left">`, left)
		shows("what is unrecorded", `<dd data-f="unrecorded">`, known(fmt.Sprint(w.unrecorded)))
		w.said(step, lang, got, unknown)
		w.stocks(step, lang, got, known)
	case "":
		for at, instant := range map[string]time.Time{pick("소진 ", "sold out "): w.soldOut, pick("종료 ", "closed "): w.closed} {
			if want := !instant.IsZero() && !unknown; strings.Contains(got.text(), at+exact(instant)) != want || !want && strings.Contains(got.text(), at+"20") {
				w.t.Errorf("%s, %s: %q of the list is to be %v: %s", step.name, lang, at, instant, got.text())
			}
		}
	}
}

// stock finds how much of a prize Live shows.
var stock = regexp.MustCompile(`<span data-given>([^<]*)</span> <small data-of>([^<]*)</small>`)

// stocks compares the stock of the prizes with the issued coupons. The last prize also has the stock of voided coupons.
func (w *walk) stocks(step walked, lang string, got shown, known func(string) string) {
	w.t.Helper()
	var is, want []string
	for _, found := range stock.FindAllStringSubmatch(got.body, -1) {
		is = append(is, found[1]+" "+found[2])
	}
	if w.terms.Prizes != nil && !w.dark {
		drinks := min(w.issued, 2)
		rest := w.issued - drinks
		of := fmt.Sprintf("/ %d", rest+w.terms.Quantity-int64(len(w.held))-(2-drinks))
		if w.blind {
			of = ""
		}
		want = []string{known(fmt.Sprint(drinks)) + " / 2", known(fmt.Sprint(rest)) + " " + of}
	}
	if !slices.Equal(is, want) {
		w.t.Errorf("%s, %s: Live shows %q given of the prizes, and should show %q", step.name, lang, is, want)
	}
}

// said compares the sentences of Live about the state with the walk's facts.
func (w *walk) said(step walked, lang string, got shown, unknown bool) {
	w.t.Helper()
	is := strings.TrimSpace(markup.ReplaceAllString(spaces.ReplaceAllString(status.FindStringSubmatch(got.body)[1], " "), ""))
	say := func(ko, en string, at time.Time) string {
		if at.IsZero() {
			return map[string]string{"ko": ko, "en": en}[lang]
		}
		return fmt.Sprintf(map[string]string{"ko": ko, "en": en}[lang], spoken(lang, at))
	}
	var want []string
	switch {
	case unknown:
		want = append(want, say("지금은 상태를 알 수 없습니다.", "Its state is not known now.", time.Time{}))
	case step.gets == firstcome.NotOpen:
		want = append(want, say("%s에 시작됩니다.", "Opens at %s.", w.terms.OpensAt))
	case step.gets == firstcome.Paused:
		want = append(want, say("현재 발급이 일시 중지되어 있습니다.", "It is paused.", time.Time{}))
	case step.gets == firstcome.Issued, step.gets == firstcome.Waiting:
		want = append(want, say("진행 중입니다.", "It is open.", time.Time{}))
	}
	if !w.soldOut.IsZero() && !unknown && w.restocked() {
		want = append(want, say("%s에 처음 소진되었습니다", "First sold out at %s", w.soldOut))
	} else if !w.soldOut.IsZero() && !unknown {
		want = append(want, say("%s에 소진되었습니다", "Sold out at %s", w.soldOut))
	}
	if after := w.soldOut.Sub(w.opened); !w.soldOut.IsZero() && !unknown && !w.opened.IsZero() && after >= 0 {
		if text := fmt.Sprintf(say(" (오픈 후 %d초).", ", %d s after the opening.", time.Time{}), int(after.Seconds())); after < time.Second {
			want[len(want)-1] += say(" (오픈 후 1초 이내).", ", within a second of the opening.", time.Time{})
		} else {
			want[len(want)-1] += text
		}
	} else if !w.soldOut.IsZero() && !unknown {
		want[len(want)-1] += "."
	}
	if !w.closed.IsZero() {
		want = append(want, say("%s에 종료되었습니다.", "Closed at %s.", w.closed))
	}
	if is != strings.Join(want, " ") {
		w.t.Errorf("%s, %s: Live says %q, and should say %q", step.name, lang, is, strings.Join(want, " "))
	}
}

// millis matches the part of a time that pages show to the millisecond.
var millis = regexp.MustCompile(`\.\d{3}`)
