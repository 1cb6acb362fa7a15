//go:build !check && (!race || soak)

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/browser"
)

// A scripted server gives the answers that a test sets, by the request without the campaign's path and with the user as u.
type scripted struct {
	mu      sync.Mutex // guards answers
	answers map[string]string
}

// says sets answers, each as "STATUS BODY". A body that begins with "event: " is a stream.
func (s *scripted) says(answers map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for request, answer := range answers {
		s.answers[request] = answer
	}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.RequestURI(), "/v1/campaigns/drop"), "/guest-")
	if _, rest, ok := strings.Cut(r.URL.RequestURI(), "/guest-"); ok {
		path += "/u" + strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	}
	s.mu.Lock()
	answer := s.answers[r.Method+" "+path]
	s.mu.Unlock()
	status, body := http.StatusNotFound, `{"code":"not_found"}`
	if answer != "" {
		_, _ = fmt.Sscan(answer, &status)
		_, body, _ = strings.Cut(answer, " ")
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "event: ") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "4")
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}

// state answers with the campaign: how many coupons there are, how many are left, and further fields.
func state(word string, quantity, left int, more string) string {
	return fmt.Sprintf(`200 {"id":"drop","name":"Drop","state":"%s","quantity":%d,"remaining":%d,"server_time":"2031-05-05T01:00:00.000000Z",
		"opens_at":null,"sold_out_at":null,"coupon":{"benefit":{"percent":30}}%s}`, word, quantity, left, more)
}

// A place of the user, with further fields, and the line once it has come to a ticket.
const (
	inLine = `202 {"outcome":"waiting","ticket":3,"generation":1,"ahead":2,"eta_seconds":2,"likely":%v,"serving":true,"reason":null,"until":null,"closes_at":null,"poll_after":1}`
	lineAt = `200 {"generation":1,"serving":%d,"last_ticket":%d,"waiting":%d,"likely_through":%d,"pace":{"per_second":1},"state":"open","ended":[]}`
)

// scripts opens the page of a scripted server for a guest of each language.
func scripts(t *testing.T) (*scripted, []*guest, string) {
	server := &scripted{answers: map[string]string{"GET /v1/users/u/coupons": `200 {"items":[],"next":null}`}}
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer((&storefront{server: at, campaign: "drop", secret: []byte(secret)}).handler())
	t.Cleanup(func() {
		shop.CloseClientConnections() // a page may follow its line still
		shop.Close()
	})
	b := browser.Open(t)
	var guests []*guest
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Dark: true}} {
		guests = append(guests, &guest{b.Page(t, look), t, look})
	}
	return server, guests, shop.URL
}

// TestInTheBrowserWhoseCouponWasVoidedIsNotToldThatTheyLeft, neither by the stream nor by the line.
func TestInTheBrowserWhoseCouponWasVoidedIsNotToldThatTheyLeft(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	server.says(map[string]string{"GET ": state("open", 9, 8, ""), "POST /claims": fmt.Sprintf(inLine, true)})
	for way, answers := range map[string]map[string]string{
		"the stream": {"GET /claims/u/events": "200 event: outcome\nid: end\ndata: {\"outcome\":\"voided\"}\n\n"},
		"the line": {
			"GET /claims/u/events": "404 {}", "GET /line": fmt.Sprintf(lineAt, 4, 9, 6, 9),
			"GET /claims/u?place=1.3": `404 {"code":"not_found","outcome":"voided"}`,
		},
	} {
		server.says(answers)
		for _, g := range guests {
			t.Log(way, g.look)
			g.Go(shop)
			g.sees("지금 받을 수 있어요", "Ready when you are")
			g.Press("#act")
			g.looks("쿠폰이 회수됐어요", "Your coupon was taken back")
			g.sees("다시 대기하기", "Join the line again")
		}
	}
}

// etaOf returns the ETA in seconds that the Go client computes for the user's place from an answer about the line.
func etaOf(t *testing.T, answer string) int64 {
	t.Helper()
	var line client.Line
	_, body, _ := strings.Cut(answer, " ")
	if err := json.Unmarshal([]byte(body), &line); err != nil {
		t.Fatal(err)
	}
	return *client.Place{Generation: 1, Ticket: 3}.Moved(line).ETASeconds
}

// TestInTheBrowserAPlaceByTheLineTellsWhatIsLikely: a raise at the next look, and those who left are not waited for. The page's ETA is the client's.
func TestInTheBrowserAPlaceByTheLineTellsWhatIsLikely(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	before, after := fmt.Sprintf(lineAt, 1, 9, 9, 2), fmt.Sprintf(lineAt, 1, 9, 5, 3)
	server.says(map[string]string{
		"GET ": state("open", 9, 8, ""), "POST /claims": fmt.Sprintf(inLine, false), "GET /claims/u/events": "404 {}", "GET /line": before,
	})
	for _, g := range guests {
		g.Go(shop)
		g.sees("지금 받을 수 있어요", "Ready when you are")
		g.Press("#act")
		g.sees("지금대로라면 받지 못할 수 있어요.", "As it stands, you may not get one.")
		g.sees(fmt.Sprintf("약 %d초", etaOf(t, before)), fmt.Sprintf("about %d s", etaOf(t, before)))
	}
	server.says(map[string]string{"GET /line": after})
	for _, g := range guests {
		g.sees("화면을 닫아도 순번이 유지돼요.", "Your place is kept, even if you close this page.")
		g.sees(fmt.Sprintf("약 %d초", etaOf(t, after)), fmt.Sprintf("about %d s", etaOf(t, after)))
	}
}

// TestInTheBrowserTheFirstInLineIsTheNextOnlyIfOneIsLeft: in a line that stands by with nothing left, and in a pause, it is nobody's turn.
func TestInTheBrowserTheFirstInLineIsTheNextOnlyIfOneIsLeft(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	server.says(map[string]string{
		"GET ": state("open", 9, 0, `,"pace":{"per_second":1},"waitlist":true`), "GET /claims/u/events": "404 {}", "GET /line": "503 {}",
	})
	first := strings.NewReplacer("202", "200", `"ahead":2`, `"ahead":0`)
	for _, test := range []struct{ place, koHead, enHead, koMore, enMore string }{
		{
			strings.ReplaceAll(first.Replace(fmt.Sprintf(inLine, false)), `"eta_seconds":2`, `"eta_seconds":null`), "대기열 맨 앞이에요", "You are first in line",
			"지금대로라면 받지 못할 수 있어요. 쿠폰이 다시 생기면 순서대로 드려요.", "As it stands, you may not get one. If a coupon comes back, it goes to the first in line.",
		},
		{first.Replace(fmt.Sprintf(inLine, true)), "이제 내 차례예요", "It is your turn", "화면을 닫아도 순번이 유지돼요.", "Your place is kept, even if you close this page."},
		{
			strings.ReplaceAll(first.Replace(fmt.Sprintf(inLine, true)), `"serving":true,"reason":null`, `"serving":false,"reason":"paused"`), "대기열 맨 앞이에요", "You are first in line",
			"일시중지됐어요. 순번은 유지돼요.", "On hold. Your place is kept.",
		},
	} {
		server.says(map[string]string{"GET /claims/u": test.place})
		for _, g := range guests {
			g.Go(shop)
			g.sees(test.koHead, test.enHead)
			g.sees(test.koMore, test.enMore)
		}
	}
	server.says(map[string]string{
		"GET /claims/u": strings.Replace(fmt.Sprintf(inLine, true), "202", "200", 1),
		"GET /line":     strings.Replace(fmt.Sprintf(lineAt, 1, 3, 3, 2), `"state"`, `"waitlist":true,"state"`, 1),
	})
	for _, g := range guests {
		g.Go(shop)
		g.sees("쿠폰이 다시 생기면 순서대로 드려요.", "If a coupon comes back, it goes to the first in line.")
		if words := browser.Eval[string](g.Page, `document.querySelector("#words").textContent`); !strings.Contains(words, "2") || strings.Contains(words, "약") || strings.Contains(words, "about") {
			t.Errorf("nobody knows when a coupon comes back, and the page says %s", words)
		}
	}
}

// TestInTheBrowserWhoeverIsRefusedSeesHowItIsNow: the line ended, and then 970 coupons were added, or the campaign was paused. Where the campaign
// cannot be read, they see what they were told.
func TestInTheBrowserWhoeverIsRefusedSeesHowItIsNow(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	for what, test := range map[string]struct{ campaign, ko, en, word string }{
		"970 more":     {state("open", 1000, 970, ""), "1,000장 중 970장 남았어요", "970 of 1,000 left", "open"},
		"paused":       {state("paused", 30, 0, ""), "일시중지됐어요", "On hold", "paused"},
		"still so":     {state("sold_out", 30, 0, `,"sold_out_at":"2031-05-05T00:59:00.000000Z"`), "분에 소진됐어요", "First sold out at", "sold_out"},
		"nobody knows": {state("unknown", 30, 0, ""), "준비한 쿠폰이 모두 소진됐어요", "All coupons are gone", "sold_out"},
		"not read":     {`503 {"code":"busy"}`, "준비한 쿠폰이 모두 소진됐어요", "All coupons are gone", "sold_out"},
	} {
		server.says(map[string]string{
			"GET ": state("open", 30, 1, ""), "POST /claims": fmt.Sprintf(inLine, true),
			"GET /claims/u/events": "404 {}", "GET /line": fmt.Sprintf(lineAt, 1, 3, 3, 9),
		})
		for _, g := range guests {
			t.Log(what, g.look)
			g.Go(shop)
			g.sees("지금 받을 수 있어요", "Ready when you are")
			g.Press("#act")
			g.sees("내 앞에 최대 2명", "At most 2 ahead of you")
			browser.Eval[bool](g.Page, `(() => { const stub = document.querySelector("#stub"); window.states = [];
				new MutationObserver(() => states.push(stub.dataset.state)).observe(stub, { attributes: true }); return true; })()`)
		}
		server.says(map[string]string{
			"GET ": test.campaign, "GET /claims/u?place=1.3": `404 {"code":"not_found","outcome":"sold_out"}`,
			"GET /line": strings.Replace(fmt.Sprintf(lineAt, 1, 0, 0, 0), `"generation":1`, `"generation":2`, 1),
		})
		for _, g := range guests {
			g.looks(test.ko, test.en)
			if states := browser.Eval[string](g.Page, `[...new Set(states)].join(" ")`); strings.TrimPrefix(states, "waiting ") != test.word {
				t.Errorf("%s: the page shows %s", what, states) // and not only once it looks again
			}
			if offered := browser.Eval[bool](g.Page, `!document.querySelector("#act").hidden`); offered != (test.word == "open") {
				t.Errorf("%s: a coupon is offered: %v", what, offered)
			}
		}
	}
}

// TestInTheBrowserEachStateHasItsWords opens the page in each state that a campaign is told to be in, and holds its headline, the line under it and
// its button: in a state in which a claim is refused, none offers a coupon.
func TestInTheBrowserEachStateHasItsWords(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	const soldOut = `,"sold_out_at":"2031-05-05T00:59:00.000000Z"`
	stands := `,"pace":{"per_second":1},"waitlist":true` + soldOut
	for what, test := range map[string]struct {
		campaign, state     string
		words, more, button [2]string // in Korean and in English
	}{
		"not open": {
			strings.Replace(state("not_open", 30, 30, ""), `"opens_at":null`, `"opens_at":"2031-05-05T03:00:00.000000Z"`, 1), "not_open",
			[2]string{"에 열려요", "Opens at"},
			[2]string{"열리면 버튼을 누를 수 있어요.", "The button wakes up by itself."},
			[2]string{"열리면 받기", "Get it when it opens"},
		},
		"open": {
			state("open", 30, 7, ""), "open",
			[2]string{"지금 받을 수 있어요", "Ready when you are"},
			[2]string{"30장 중 7장 남았어요", "7 of 30 left"},
			[2]string{"쿠폰 받기", "Get my coupon"},
		},
		"open again": { // a void brought stock back
			state("open", 30, 1, soldOut), "open",
			[2]string{"지금 받을 수 있어요", "Ready when you are"},
			[2]string{"30장 중 1장 남았어요", "1 of 30 left"},
			[2]string{"쿠폰 받기", "Get my coupon"},
		},
		"a line stands by": {
			state("open", 30, 0, stands), "open",
			[2]string{"지금은 남은 쿠폰이 없어요", "No coupon is left right now"},
			[2]string{"쿠폰이 다시 생길 때 순서대로 드려요.", "it goes to the first in line."},
			[2]string{"대기하기", "Join the line"},
		},
		"paused": {
			state("paused", 30, 7, ""), "paused",
			[2]string{"일시중지됐어요", "On hold"},
			[2]string{"다시 시작될 때까지 기다려 주세요.", "Please wait until it goes on."},
			[2]string{},
		},
		"sold out": {
			state("sold_out", 30, 0, soldOut), "sold_out",
			[2]string{"준비한 쿠폰이 모두 소진됐어요", "All coupons are gone"},
			[2]string{"에 소진됐어요.", "First sold out at"},
			[2]string{},
		},
		"closed": {
			state("closed", 30, 7, ""), "closed",
			[2]string{"이벤트가 끝났어요", "This event is over"},
			[2]string{"다음에 또 만나요.", "See you next time."},
			[2]string{},
		},
		"nobody knows": {
			state("unknown", 30, 0, ""), "unknown",
			[2]string{"아직 확인 중이에요.", "Still checking."},
			[2]string{},
			[2]string{"다시 확인하기", "Check again"},
		},
	} {
		server.says(map[string]string{"GET ": test.campaign})
		for n, g := range guests {
			g.Go(shop)
			g.Until(`document.querySelector("#stub").dataset.state === ` + browser.Quote(test.state))
			for id, want := range map[string]string{"words": test.words[n], "more": test.more[n], "act": test.button[n]} {
				said := browser.Eval[string](g.Page, `(e => e.hidden ? "" : e.textContent)(document.querySelector("#`+id+`"))`)
				if !strings.Contains(said, want) || want == "" && said != "" {
					t.Errorf("%s, %s: #%s says %q, and should say %q", what, g.look.Language, id, said, want)
				}
			}
		}
	}
}

// TestInTheBrowserTheOpeningIsReadBeforeACouponIsPromised: the campaign was paused before it opened, or all coupons went in its first instant. Users who
// do not wait for that may ask.
func TestInTheBrowserTheOpeningIsReadBeforeACouponIsPromised(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	soon := strings.Replace(state("not_open", 30, 30, ""), `"opens_at":null`, `"opens_at":"2031-05-05T01:00:01.000000Z"`, 1)
	opens := func(then string) {
		server.says(map[string]string{"GET ": soon})
		for _, g := range guests {
			g.Go(shop)
			g.Until(`["not_open", "opening"].includes(document.querySelector("#stub").dataset.state)`)
			browser.Eval[bool](g.Page, `(() => { const stub = document.querySelector("#stub"); window.states = [stub.dataset.state];
				new MutationObserver(() => states.push(stub.dataset.state)).observe(stub, { attributes: true }); return true; })()`)
		}
		server.says(map[string]string{"GET ": then})
	}
	for _, test := range []struct{ campaign, word, ko, en string }{
		{state("paused", 30, 30, ""), "paused", "일시중지됐어요", "On hold"},
		{state("sold_out", 30, 0, ""), "sold_out", "준비한 쿠폰이 모두 소진됐어요", "All coupons are gone"},
		{state("open", 30, 7, ""), "open", "30장 중 7장 남았어요", "7 of 30 left"},
	} {
		opens(test.campaign)
		for _, g := range guests {
			g.sees(test.ko, test.en)
			states := browser.Eval[string](g.Page, `[...new Set(states)].join(" ")`)
			if before, _ := strings.CutSuffix(states, test.word); strings.Contains(before, " open ") || !strings.Contains(states, "opening") {
				t.Errorf("%s: the page shows %s", test.word, states)
			}
		}
	}
	server.says(map[string]string{"POST /claims": `410 {"code":"sold_out","outcome":"sold_out"}`})
	opens(`503 {"code":"busy"}`)
	for _, g := range guests {
		g.looks("오픈 시각이 됐어요", "It is time")
		g.Press("#act")
		g.sees("준비한 쿠폰이 모두 소진됐어요", "All coupons are gone")
	}
}

// TestInTheBrowserTheCountdownGoesByTheServersClock, which is years from the phone's: before the opening, and in a line whose campaign opens
// later.
func TestInTheBrowserTheCountdownGoesByTheServersClock(t *testing.T) {
	t.Parallel()
	server, guests, shop := scripts(t)
	at := func(instant string) string {
		return strings.Replace(state("not_open", 5000, 5000, ""), `"opens_at":null`, `"opens_at":"`+instant+`"`, 1)
	}
	place := strings.Replace(fmt.Sprintf(inLine, true), `"serving":true,"reason":null,"until":null`, `"serving":false,"reason":"not_open","until":"2031-05-05T04:00:00.000000Z"`, 1)
	server.says(map[string]string{"GET ": at("2031-05-05T03:00:00.000000Z"), "GET /claims/u/events": "404 {}", "GET /line": "503 {}"})
	for _, g := range guests {
		g.Go(shop)
		g.looks("남음", "to go")
		left := `document.querySelector("#words .big").textContent`
		before := browser.Eval[string](g.Page, left)
		if !strings.HasPrefix(before, "1:5") && before != "2:00:00" {
			t.Errorf("%v: two hours before the opening %s are left", g.look, before)
		}
		g.Until(left + " !== " + browser.Quote(before)) // it goes on
	}
	server.says(map[string]string{"GET /claims/u": strings.Replace(place, "202", "200", 1)})
	for _, g := range guests {
		g.Go(shop)
		g.looks("순번은 유지돼요.", "to go. Your place is kept.")
		if more := browser.Eval[string](g.Page, `document.querySelector("#more").textContent`); !strings.Contains(more, "2:59:") && !strings.Contains(more, "3:00:00") {
			t.Errorf("%v: three hours before the opening the page says %s", g.look, more)
		}
	}
}

// TestInTheBrowserABenefitThatIsATextFitsTheTicket in letters that are smaller than those of a number.
func TestInTheBrowserABenefitThatIsATextFitsTheTicket(t *testing.T) {
	server, guests, shop := scripts(t)
	const benefit = "전 상품 10% 할인, 배송비 무료"
	server.says(map[string]string{"GET ": strings.Replace(state("open", 1, 1, ""), `{"percent":30}`, `"`+benefit+`"`, 1)})
	for _, g := range guests {
		g.Go(shop)
		g.sees(benefit, benefit)
		g.sees("1장 · 1인 1매", "1 coupon · one each")
		for _, what := range append(g.Overflows(), g.Violations()...) {
			t.Error(what)
		}
		if size := browser.Eval[float64](g.Page, `parseFloat(getComputedStyle(document.querySelector("#benefit")).fontSize)`); size > 60 {
			t.Errorf("the letters are %v pixels high", size)
		}
	}
}

// TestP10InTheBrowserACustomerSeesTheirPrize: before the claim which ranks get which prize, then their own, also in the wallet.
func TestP10InTheBrowserACustomerSeesTheirPrize(t *testing.T) {
	server, guests, shop := scripts(t)
	const prizes = `,"prizes":[{"id":"drink","name":"음료","quantity":100,"benefit":null,"from":1,"to":100,"given":100,"ran_out_at":"2031-05-05T00:59:00.000000Z"},
		{"id":"percent","name":"20%","quantity":900,"benefit":{"percent":20},"from":101,"to":1000,"given":36,"ran_out_at":null},
		{"id":"shipping","name":"무료 배송","quantity":null,"benefit":null,"from":1001,"to":null,"given":0,"ran_out_at":null}]`
	const coupon = `{"campaign_id":"drop","number":140,"rank":137,"user_id":"u","code":"3F714MEPRXP6DEE3","state":"in_force","prize":{"id":"percent","name":"20%"},
		"benefit":{"percent":20},"issued_at":"2031-05-05T01:00:00.000000Z","expires_at":null,"recorded":true,"generation":null,"ticket":null}`
	server.says(map[string]string{
		"GET ": strings.Replace(state("open", 5000, 4864, prizes), `{"percent":30}`, "null", 1), "POST /claims": `201 {"outcome":"issued","coupon":` + coupon + `}`,
		"GET /v1/users/u/coupons": `200 {"items":[` + coupon + `],"next":null}`,
	})
	for _, g := range guests {
		g.Go(shop)
		g.sees("처음 100명 · 소진", "The first 100 · all gone")
		g.sees("101~1,000번째", "Ranks 101 to 1,000")
		g.looks("그다음 모두", "Everybody else")
		g.sees("지금 받을 수 있어요", "Ready when you are")
		g.Press("#act")
		g.sees("20% 쿠폰을 받았어요!", "It is yours: 20%")
		g.looks("137번째", "Rank 137")
		g.keeps(1)
		for what, want := range map[string]string{"#benefit": "20%", "#prizes": "", "#coupons .good": "20%"} {
			if got := browser.Eval[string](g.Page, `document.querySelector("`+what+`").textContent`); got != want {
				t.Errorf("%v: %s says %q instead of %q", g.look, what, got, want)
			}
		}
		server.says(map[string]string{"POST /claims": `200 {"outcome":"already_issued","coupon":` + coupon + `}`})
		g.Go(shop)
		g.sees("지금 받을 수 있어요", "Ready when you are")
		g.Press("#act")
		g.sees("이미 받은 쿠폰이에요", "You already have this coupon")
		g.sees("137번째", "Rank 137")
		server.says(map[string]string{"POST /claims": `201 {"outcome":"issued","coupon":` + coupon + `}`})
	}
}
