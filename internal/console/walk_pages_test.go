//go:build !race || soak

package console_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

var (
	count = regexp.MustCompile(`<p class="count"><strong[^>]*>([^<]*)</strong> <span>/ ([^ ]*) `)
	// english matches an English sentence. A Korean page may have single English words: our own names, and words of the field.
	english = regexp.MustCompile(`[A-Za-z]{2,}[,:]? [a-z]{2,}[,:]? [a-z]{2,}`)
	command = regexp.MustCompile(`firstcome [a-z]+ [a-z]+`)
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
			if said := english.FindString(command.ReplaceAllString(got.text(), "")); n == 0 && said != "" {
				w.t.Errorf("%s: the Korean page %q says %q", step.name, path, said)
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
		w.customers(step, b, say)
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
		shows("the first sell-out", "<dt>"+pick("처음 소진", "First sold out")+"</dt><dd>", known(exact(w.soldOut)))
		shows("the close", "<dt>"+pick("종료", "Closed")+"</dt><dd>", exact(w.closed))
		shows("the numbers issued", "<dt>"+pick("발급한 번호", "Numbers issued")+"</dt><dd>", known(fmt.Sprint(w.issued)))
	case "/campaigns/spring":
		left := known(fmt.Sprint(w.terms.Quantity - int64(len(w.held))))
		shows("what is left", `<dd data-f="left">`, left)
		shows("what is unrecorded", `<dd data-f="unrecorded">`, known(fmt.Sprint(w.unrecorded)))
		if !w.soldOut.IsZero() && !unknown {
			shows("the first sell-out", pick("처음 소진 ", "first sold out "), exact(w.soldOut))
		} else if strings.Contains(got.text(), pick("처음 소진", "first sold out")) {
			w.t.Errorf("%s, %s: Live says when it sold out: %s", step.name, lang, got.text())
		}
	}
}

// customers compares what support may tell a customer with the walk's facts, for a user with a coupon, a user whose coupon was voided, a user in
// line, and users with nothing.
func (w *walk) customers(step walked, b *visitor, say func(ko, en string) string) {
	w.t.Helper()
	chances := map[firstcome.Outcome]string{
		firstcome.NotOpen: say("에 열립니다.", "It opens at "),
		firstcome.Issued:  fmt.Sprintf(say("지금 %d장이 남아 있습니다.", "Coupons left now: %d."), w.terms.Quantity-int64(len(w.held))),
		firstcome.Waiting: say("대기열에 들어오실 수 있습니다.", "You may join the line."),
		firstcome.SoldOut: say("쿠폰은 모두 나갔습니다. 처음 소진된 시각은 ", "All coupons are gone. They first sold out at ") + say(spoken("ko", w.soldOut)+"입니다.", spoken("en", w.soldOut)+"."),
		firstcome.Paused:  say("지금은 잠시 멈춰 있습니다.", "It is paused."),
		firstcome.Closed:  say("쿠폰은 마감되었습니다.", "It is closed."),
		0:                 say("고객님이 받으셨는지 아직 알 수 없습니다.", "So we do not know yet whether you have a coupon."),
	}
	for _, user := range append(w.line.gone(), "nobody") {
		got := b.get("/console/customer?campaign=spring&user_id=" + user).text()
		for gets, sentence := range chances {
			if strings.Contains(got, sentence) != (gets == step.gets) {
				w.t.Errorf("%s: a newcomer gets %v, and support tells %s, who has no coupon: %s", step.name, step.gets, user, got)
			}
		}
		w.stopped(step, b.lang, "Customer", got, toSupport)
		w.stopped(step, b.lang, "Customer", got, onPage)
		w.dated(step, b.lang, "Customer", got)
	}
	if len(w.held) > 0 { // by code too: the ledger finds it once it has the coupon
		newest := slices.Max(slices.Collect(maps.Values(w.held)))
		got := b.get("/console/customer?campaign=spring&code=" + stage.Secret().Code("spring", newest)).text()
		for recorded, want := range map[bool]string{
			true:  fmt.Sprintf(say("쿠폰(번호 %d)을 받으셨습니다", "You got number %d of"), newest),
			false: fmt.Sprintf(say("이 코드의 쿠폰이 없습니다. 원장으로 오고 있는 쿠폰이 %d장", "with this code. On their way to the ledger: %d."), w.unrecorded),
		} {
			if strings.Contains(got, want) != (recorded == (newest <= w.issued-w.unrecorded)) {
				w.t.Errorf("%s: of the code of number %d support is told: %s", step.name, newest, got)
			}
		}
	}
	for user, number := range w.held {
		got := b.get("/console/customer?campaign=spring&user_id=" + url.QueryEscape(user)).text()
		if want := fmt.Sprintf(say("쿠폰(번호 %d)을 받으셨습니다", "You got number %d of"), number); !strings.Contains(got, want) {
			w.t.Errorf("%s: %s holds number %d, and support is told: %s", step.name, user, number, got)
		}
		break
	}
	if w.gone != "" {
		got := b.get("/console/customer?campaign=spring&user_id=" + w.gone).text()
		if want := say("에 회수되었습니다.", "was taken back at "); !strings.Contains(got, want) {
			w.t.Errorf("%s: the coupon of %s was voided, and support is told: %s", step.name, w.gone, got)
		}
	}
	w.waiters(step, b, say)
}

// spoken returns an instant as support says it, in Seoul.
func spoken(lang string, at time.Time) string {
	at = at.In(time.FixedZone("KST", 9*60*60))
	if lang == "en" {
		return at.Format("3:04:05 pm on 2 January (Seoul time)")
	}
	return at.Format("1월 2일 ") + map[bool]string{true: "오전", false: "오후"}[at.Hour() < 12] + at.Format(" 3시 4분 5초")
}

// millis matches the part of a time that pages show to the millisecond.
var millis = regexp.MustCompile(`\.\d{3}`)
