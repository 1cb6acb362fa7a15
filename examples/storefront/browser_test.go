package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/services"
)

// A firstcome is a real server on a ledger of the test's, which takes the storefront's tokens.
type firstcome struct {
	t       *testing.T
	url     *url.URL
	key     string
	process *exec.Cmd
}

// startServer starts a firstcome that ends with the test, with further flags.
func startServer(t *testing.T, flags ...string) *firstcome {
	t.Helper()
	dir := t.TempDir()
	binary, secretFile := filepath.Join(dir, "firstcome"), filepath.Join(dir, "jwt.secret")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/firstcome").CombinedOutput(); err != nil {
		t.Fatalf("build firstcome: %v\n%s", err, out)
	}
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out, log := newLines(), newLines()
	f := &firstcome{t: t, process: exec.Command(binary, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--ops", "off", "--console", "off",
		"--ledger", "sqlite:" + filepath.Join(dir, "firstcome.db"), "--jwt-secret-file", secretFile, "--create-key",
	}, flags...)...)}
	f.process.Stdout, f.process.Stderr = out, log
	if err := f.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	at := log.await(t, regexp.MustCompile(`msg=serving .*address=(127\.0\.0\.1:\d+)`))
	f.key = out.await(t, regexp.MustCompile(`(fc_[0-9a-f]{12}_[0-9a-f]{64})`))
	var err error
	if f.url, err = url.Parse("http://" + at); err != nil {
		t.Fatal(err)
	}
	return f
}

// stop ends the process; it may be repeated.
func (f *firstcome) stop() {
	if f.process.ProcessState == nil {
		_ = f.process.Process.Signal(syscall.SIGTERM)
		_ = f.process.Wait()
	}
}

// lines are what a process prints. Make them with newLines.
type lines struct {
	mu   sync.Mutex // guards text
	text []byte
	news chan struct{}
}

func newLines() *lines { return &lines{news: make(chan struct{}, 1)} }

func (l *lines) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, part...)
	select {
	case l.news <- struct{}{}:
	default:
	}
	return len(part), nil
}

// find returns what a pattern finds, nil if nothing yet.
func (l *lines) find(pattern *regexp.Regexp) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pattern.FindStringSubmatch(string(l.text))
}

// await returns what a pattern finds, as soon as it finds something.
func (l *lines) await(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	for late := time.After(time.Minute); ; {
		if found := l.find(pattern); found != nil {
			return found[1]
		}
		select {
		case <-l.news:
		case <-late:
			t.Fatalf("the server never said %v", pattern)
		}
	}
}

// ask sends a request of the shop's to firstcome.
func (f *firstcome) ask(method, path string, body any) {
	f.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			f.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(context.Background(), method, f.url.String()+path, bytes.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.key)
	r.Header.Set("Content-Type", "application/json")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Body.Close()
	if w.StatusCode >= 300 {
		f.t.Fatalf("%s %s: %s", method, path, w.Status)
	}
}

// campaign makes a campaign with these terms besides a name.
func (f *firstcome) campaign(id string, terms map[string]any) {
	f.t.Helper()
	all := map[string]any{"id": id, "name": "한가위 쿠폰", "coupon": map[string]any{"benefit": map[string]any{"percent": 30}}}
	for name, value := range terms {
		all[name] = value
	}
	f.ask(http.MethodPost, "/v1/campaigns", all)
}

// claim claims for a user who is not in a browser.
func (f *firstcome) claim(id, user string) {
	f.t.Helper()
	f.ask(http.MethodPost, "/v1/campaigns/"+id+"/claims", map[string]string{"user_id": user})
}

// shop serves the drop page of a campaign. through, if it is not nil, stands before each request.
func (f *firstcome) shop(t *testing.T, campaign string, through func(http.Handler) http.Handler) string {
	handler := (&storefront{server: f.url, campaign: campaign, secret: []byte(secret)}).handler()
	if through != nil {
		handler = through(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// stub returns the state that the page shows.
func stub(p *browser.Page) string {
	return browser.Eval[string](p, `document.querySelector("#stub").dataset.state`)
}

// sound holds a page against what overflows and what axe-core finds.
func sound(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	for _, wrong := range append(p.Overflows(), p.Violations()...) {
		t.Errorf("%s: %s", name, wrong)
	}
	p.Screenshot(name)
}

// TestTheDropPageSaysWhatIsTrue shows each answer in a real browser, on a phone and on a wide screen, in both languages.
func TestTheDropPageSaysWhatIsTrue(t *testing.T) {
	f := startServer(t)
	soon := time.Now().Add(2*time.Hour + 30*time.Second).UTC().Truncate(time.Second)
	f.campaign("soon", map[string]any{"quantity": 5000, "opens_at": soon.Format(time.RFC3339)})
	f.campaign("open", map[string]any{"quantity": 5000})
	f.campaign("more", map[string]any{"quantity": 5})
	f.campaign("gone", map[string]any{"quantity": 1})
	f.claim("gone", "somebody")
	f.campaign("line", map[string]any{"quantity": 5000, "pace": map[string]any{"per_second": 1}})
	for n := range 300 { // five minutes of people, for a slow machine
		f.claim("line", fmt.Sprint("before-", n))
	}
	f.campaign("over", map[string]any{"quantity": 5})
	f.ask(http.MethodPost, "/v1/campaigns/over/close", nil)
	f.campaign("rest", map[string]any{"quantity": 5})
	f.ask(http.MethodPost, "/v1/campaigns/rest/pause", nil)
	shops := map[string]string{}
	for _, id := range []string{"soon", "open", "gone", "line", "more", "over", "rest"} {
		shops[id] = f.shop(t, id, nil)
	}
	b := browser.Open(t)
	for _, l := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Width: 1280, Dark: true}} {
		t.Run(l.String(), func(t *testing.T) {
			say := map[string][]string{
				"soon": {"에 열려요", "남음"}, "gone": {"준비한 1장이 모두 나갔어요"}, "over": {"행사가 끝났어요"}, "rest": {"잠시 멈췄어요"},
				"open": {"지금 받을 수 있어요"}, "issued": {"쿠폰을 받았어요!", "번호"}, "had": {"이미 받은 쿠폰이에요"}, "line": {"내 앞에", "명"},
			}
			if l.Language == "en" {
				say = map[string][]string{
					"soon": {"pens at"}, "gone": {"gone"}, "over": {"over"}, "rest": {"On hold"}, "open": {"Get"}, "issued": {"The coupon is yours!", "No."}, "had": {"already"}, "line": {"ahead"},
				}
			}
			p := b.Page(t, l)
			for _, id := range []string{"soon", "gone", "over", "rest", "open"} {
				p.Go(shops[id])
				for _, words := range say[id] {
					p.Await(words)
				}
				sound(t, p, id)
			}
			p.Press("#act")
			for _, words := range say["issued"] {
				p.Await(words)
			}
			if got := stub(p); got != "issued" {
				t.Errorf("it is %s", got)
			}
			code := browser.Eval[string](p, `document.querySelector("#code").textContent`)
			sound(t, p, "issued")
			p.Go(shops["open"]) // again: the same coupon, also in the wallet
			p.Await(strings.TrimSpace(code))
			p.Until(`document.querySelectorAll("#coupons li").length === 1`)
			p.Go(shops["line"])
			p.Until(`!document.querySelector("#act").hidden`)
			p.Press("#act")
			for _, words := range say["line"] {
				p.Await(words)
			}
			sound(t, p, "waiting")
			if said := browser.Eval[string](p, `document.querySelector("#said").getAttribute("aria-live") + ": " + document.querySelector("#said").textContent`); !strings.HasPrefix(said, "polite: ") || len(said) < 12 {
				t.Errorf("a screen reader is told %q", said)
			}
			const ticket = `document.querySelector("#stub").innerText.match(/(?:순번|icket) ?([\d,]+)/)?.[1]`
			p.Until(ticket + ` !== undefined`)
			before := browser.Eval[string](p, ticket)
			p.Go(shops["line"]) // its place is the same after a reload
			p.Until(ticket + ` === ` + browser.Quote(before))
			// Somebody who got one elsewhere meanwhile, such as on their phone.
			p.Go(shops["more"])
			p.Until(`!document.querySelector("#act").hidden`)
			f.claim("more", browser.Eval[string](p, `fetch("/session").then(r => r.json()).then(s => s.user_id)`))
			p.Press("#act")
			for _, words := range say["had"] {
				p.Await(words)
			}
			sound(t, p, "had")
		})
	}
}

// TestInTheBrowserAPlaceInATopicOutlivesAReload has somebody wait in a line that Kafka keeps, come back, leave, join again, and be served.
func TestInTheBrowserAPlaceInATopicOutlivesAReload(t *testing.T) {
	f := startServer(t, "--line", services.Kafka.Database(t))
	f.campaign("line", map[string]any{"quantity": 5000, "pace": map[string]any{"per_second": 1}})
	for n := range 60 {
		f.claim("line", fmt.Sprint("before-", n))
	}
	shop := f.shop(t, "line", nil)
	b := browser.Open(t)
	for _, l := range []browser.Look{{Language: "ko", Width: 360}, {Language: "ko", Width: 2560, Dark: true}} {
		t.Run(l.String(), func(t *testing.T) {
			p := b.Page(t, l)
			p.Go(shop)
			p.Await("지금 받을 수 있어요")
			p.Press("#act")
			p.Await("내 앞에")
			const ticket = `document.querySelector("#tag").textContent.match(/[\d,]+/)?.[0]`
			before := browser.Eval[string](p, ticket)
			p.Go(shop)
			p.Await("내 앞에")
			if again := browser.Eval[string](p, ticket); again != before {
				t.Errorf("behind a reload the ticket is %s, and was %s", again, before)
			}
			sound(t, p, "waiting")
			p.Press("#leave")
			p.Press("#go")
			p.Await("줄에서 나왔어요")
			p.Go(shop) // nobody is taken for somebody in line who left
			p.Await("지금 받을 수 있어요")
			p.Press("#act")
			p.Await("내 앞에")
			if again := browser.Eval[string](p, ticket); again == before {
				t.Errorf("who joins again has the ticket %s as before", again)
			}
			if kept := browser.Eval[string](p, `Object.keys(localStorage).filter(k => k.startsWith("proof ")).join()`); kept == "" {
				t.Error("no proof is kept")
			}
			f.ask(http.MethodPatch, "/v1/campaigns/line", map[string]any{"pace": map[string]any{}}) // as fast as it goes
			p.Await("쿠폰을 받았어요!")
			p.Go(shop)
			p.Await("쿠폰을 받았어요!")
			if kept := browser.Eval[string](p, `Object.keys(localStorage).filter(k => k.startsWith("proof ")).join()`); kept != "" {
				t.Errorf("the proof %s is kept for ever", kept)
			}
			f.ask(http.MethodPatch, "/v1/campaigns/line", map[string]any{"pace": map[string]any{"per_second": 1}})
			for n := range 60 {
				f.claim("line", fmt.Sprint("again-", n))
			}
		})
	}
}

// TestWhoPressesTwiceAsksOnceAndRetriesWhenTheServerSays has the server be busy twice.
func TestWhoPressesTwiceAsksOnceAndRetriesWhenTheServerSays(t *testing.T) {
	f := startServer(t)
	f.campaign("open", map[string]any{"quantity": 5})
	var asked, underWay, most atomic.Int64
	var first, second atomic.Int64
	shop := f.shop(t, "open", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				next.ServeHTTP(w, r)
				return
			}
			most.Store(max(most.Load(), underWay.Add(1)))
			defer underWay.Add(-1)
			switch asked.Add(1) {
			case 1:
				first.Store(time.Now().UnixMilli())
				w.Header().Set("Retry-After", "2")
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			case 2:
				second.Store(time.Now().UnixMilli())
			}
			next.ServeHTTP(w, r)
		})
	})
	p := browser.Open(t).Page(t, browser.Look{Language: "ko", Width: 360})
	p.Go(shop)
	p.Await("지금 받을 수 있어요")
	browser.Eval[bool](p, `(() => { const b = document.querySelector("#act"); b.click(); b.click(); b.click(); return true; })()`)
	p.Await("쿠폰을 받았어요!")
	if asked.Load() != 2 || most.Load() != 1 {
		t.Errorf("it asked %d times, %d at once", asked.Load(), most.Load())
	}
	if waited := second.Load() - first.Load(); waited < 2000 {
		t.Errorf("it asked again behind %d ms, and the server said 2 s", waited)
	}
}

// TestAnErrorIsNeverARefusal takes the server away while somebody claims.
func TestAnErrorIsNeverARefusal(t *testing.T) {
	f := startServer(t)
	f.campaign("open", map[string]any{"quantity": 5})
	shop := f.shop(t, "open", nil)
	p := browser.Open(t).Page(t, browser.Look{Language: "ko", Width: 360})
	p.Go(shop)
	p.Await("지금 받을 수 있어요")
	f.stop()
	p.Press("#act")
	p.Await("아직 확인 중이에요. 다시 눌러도 한 장만 받아요.")
	if text := p.Text(); strings.Contains(text, "실패") || strings.Contains(text, "나갔어요") {
		t.Errorf("it says %s", text)
	}
	sound(t, p, "unknown")
}
