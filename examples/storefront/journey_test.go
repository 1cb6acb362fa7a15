//go:build !check && (!race || soak)

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

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
func startServer(t *testing.T) *firstcome {
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
	f := &firstcome{t: t, process: exec.Command(binary,
		"serve", "--listen", "127.0.0.1:0", "--ops", "off", "--console", "off",
		"--ledger", "sqlite:"+filepath.Join(dir, "firstcome.db"), "--jwt-secret-file", secretFile, "--create-key",
	)}
	f.process.Env, f.process.Stdout, f.process.Stderr = services.Environ(), out, log
	if err := f.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", log.end())
		}
	})
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

// end returns the last of what was printed.
func (l *lines) end() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text[max(0, len(l.text)-4000):]
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

// ask sends a request of the shop's to firstcome, and repeats it while that is busy, for a minute.
func (f *firstcome) ask(method, path string, body any) {
	f.t.Helper()
	if err := f.asked(method, path, body); err != nil {
		f.t.Fatal(err)
	}
}

func (f *firstcome) asked(method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; {
		r, err := http.NewRequestWithContext(f.t.Context(), method, f.url.String()+path, bytes.NewReader(text))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+f.key)
		r.Header.Set("Content-Type", "application/json")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		said, err := io.ReadAll(w.Body)
		if err = errors.Join(err, w.Body.Close()); err != nil || w.StatusCode < 300 {
			return err
		}
		if w.StatusCode != http.StatusServiceUnavailable || time.Now().After(end) {
			return fmt.Errorf("%s %s: %s: %s", method, path, w.Status, said)
		}
	}
}

// campaign makes a campaign with a name and these terms.
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
	t.Cleanup(func() {
		server.CloseClientConnections() // a page may follow its line still
		server.Close()
	})
	return server.URL
}

// A guest is a customer with a browser.
type guest struct {
	*browser.Page
	t    *testing.T
	look browser.Look
}

// sees waits for words, in Korean or in English.
func (g *guest) sees(ko, en string) {
	g.t.Helper()
	g.Await(map[string]string{"ko": ko, "en": en}[g.look.Language])
}

// looks waits for words, and looks at the page that has them: nothing overflows, and axe-core finds nothing.
func (g *guest) looks(ko, en string) {
	g.t.Helper()
	g.sees(ko, en)
	for _, wrong := range append(g.Overflows(), g.Violations()...) {
		g.t.Errorf("%s: %s", en, wrong)
	}
	g.Screenshot(strings.ReplaceAll(en, " ", "-"))
}

// ticket is the place in line that the page tells.
const ticket = `document.querySelector("#tag").textContent.match(/[\d,]+/)?.[0] ?? ""`

// queues has the guest stand in line, and come back to the same place.
func (g *guest) queues(shop string) {
	g.t.Helper()
	g.Go(shop)
	g.sees("지금 받을 수 있어요", "Ready when you are")
	g.Press("#act")
	g.looks("내 앞에 최대", "ahead of you")
	place := browser.Eval[string](g.Page, ticket)
	g.Go(shop)
	g.sees("내 앞에", "ahead of you")
	if again := browser.Eval[string](g.Page, ticket); again != place || place == "" {
		g.t.Errorf("behind a reload the ticket is %q, and was %q", again, place)
	}
	if said := browser.Eval[string](g.Page, `document.querySelector("#said").getAttribute("aria-live")`); said != "polite" {
		g.t.Errorf("a screen reader is told %q", said)
	}
	g.Until(`document.querySelector("#said").textContent.length > 3`)
}

// leaves has the guest leave the line, and join again at its end.
func (g *guest) leaves(shop string) {
	g.t.Helper()
	place := browser.Eval[string](g.Page, ticket)
	g.Press("#leave")
	g.looks("대기를 취소할까요?", "Leave the line?")
	g.Press("#go")
	g.looks("대기를 취소했어요", "You left the line")
	g.Go(shop) // nobody is taken for somebody in line who left
	g.sees("지금 받을 수 있어요", "Ready when you are")
	g.Press("#act")
	g.looks("지금대로라면 받지 못할 수 있어요.", "As it stands, you may not get one.")
	if again := browser.Eval[string](g.Page, ticket); again == place {
		g.t.Errorf("who joins again has the ticket %s as before", again)
	}
}

// keeps waits until the wallet has so many coupons.
func (g *guest) keeps(coupons int) {
	g.t.Helper()
	g.Until(fmt.Sprintf(`document.querySelectorAll("#coupons li").length === %d`, coupons))
}

// TestInTheBrowserACustomersDay has two guests, who read Korean and English, meet all that a drop has for them.
func TestInTheBrowserACustomersDay(t *testing.T) {
	t.Parallel()
	f := startServer(t)
	soon := time.Now().Add(2*time.Hour + 30*time.Second).UTC().Truncate(time.Second)
	f.campaign("soon", map[string]any{"quantity": 5000, "opens_at": soon.Format(time.RFC3339)})
	f.campaign("open", map[string]any{"quantity": 5000})
	f.campaign("more", map[string]any{"quantity": 5})
	f.campaign("last", map[string]any{"quantity": 5})
	f.campaign("over", map[string]any{"quantity": 5})
	f.ask(http.MethodPost, "/v1/campaigns/over/close", struct{}{})
	f.campaign("rest", map[string]any{"quantity": 5})
	f.ask(http.MethodPost, "/v1/campaigns/rest/pause", struct{}{})
	b := browser.Open(t)
	var guests, losers []*guest
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Dark: true}} {
		guests = append(guests, &guest{b.Page(t, look), t, look})
		losers = append(losers, &guest{b.Page(t, look), t, look})
	}
	shops := map[string]string{}
	for _, id := range []string{"soon", "more", "last", "over", "rest"} {
		shops[id] = f.shop(t, id, nil)
	}
	for _, g := range guests {
		g.Go(shops["soon"])
		g.sees("에 열려요", "pens at")
		g.looks("남음", "to go")
		g.Go(shops["rest"])
		g.looks("일시중지됐어요", "On hold")
		g.Go(shops["over"])
		g.looks("이벤트가 끝났어요", "This event is over")
		f.busyOnce(g)
		g.Go(shops["more"])
		g.sees("지금 받을 수 있어요", "Ready when you are")
		// The user got one on another device, such as their phone.
		f.claim("more", browser.Eval[string](g.Page, `fetch("/session").then(r => r.json()).then(s => s.user_id)`))
		g.Press("#act")
		g.looks("이미 받은 쿠폰이에요", "You already have this coupon")
	}
	f.queueWinLose(guests, losers)
	for _, g := range guests {
		g.Go(shops["last"])
		g.sees("지금 받을 수 있어요", "Ready when you are")
	}
	f.stop()
	for _, g := range guests { // an error is never a refusal
		g.Press("#act")
		g.looks("아직 확인 중이에요. 다시 눌러도 한 장만 받아요.", "Still checking. Tap again if you like: you get one coupon only.")
		if got := browser.Eval[string](g.Page, `document.querySelector("#stub").dataset.state`); got != "unknown" {
			t.Errorf("while the server is away it is %s", got)
		}
	}
}

// ahead is how many people stand in line before the guests. At one a second that is longer than all waits of the guests together may take.
const ahead = 900

// queueWinLose has a line with a coupon for each of the winners, and then serves all.
func (f *firstcome) queueWinLose(winners, losers []*guest) {
	f.t.Helper()
	quantity := ahead + len(winners)
	f.campaign("line", map[string]any{"quantity": quantity, "pace": map[string]any{"per_second": 1}})
	var crowd errgroup.Group
	crowd.SetLimit(32)
	for n := range ahead {
		crowd.Go(func() error {
			return f.asked(http.MethodPost, "/v1/campaigns/line/claims", map[string]string{"user_id": fmt.Sprint("before-", n)})
		})
	}
	if err := crowd.Wait(); err != nil {
		f.t.Fatal(err)
	}
	shop := f.shop(f.t, "line", nil)
	for _, g := range slices.Concat(winners, losers) {
		g.queues(shop)
	}
	for _, g := range losers {
		g.leaves(shop)
	}
	for _, g := range winners {
		g.keeps(2)
	}
	f.ask(http.MethodPatch, "/v1/campaigns/line", map[string]any{"pace": map[string]any{}}) // as fast as it goes
	for _, g := range winners {
		g.looks("쿠폰을 받았어요!", "The coupon is yours!")
		g.Go(shop)
		g.sees("쿠폰을 받았어요!", "The coupon is yours!")
		g.keeps(3)
	}
	for _, g := range losers {
		g.looks("준비한 쿠폰이 모두 소진됐어요", "All coupons are gone")
		g.Go(shop)
		g.looks("에 소진됐어요", "First sold out at")
		g.keeps(0)
	}
}

// busyOnce has a guest press several times, and the server be busy at the first: it is asked again once, and not before it said so.
func (f *firstcome) busyOnce(g *guest) {
	var asked, underWay, most, first, second atomic.Int64
	shop := f.shop(f.t, "open", func(next http.Handler) http.Handler {
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
				w.Header().Set("Retry-After", "1")
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			case 2:
				second.Store(time.Now().UnixMilli())
			}
			next.ServeHTTP(w, r)
		})
	})
	g.Go(shop)
	g.looks("지금 받을 수 있어요", "Ready when you are")
	browser.Eval[bool](g.Page, `(() => { const b = document.querySelector("#act"); b.click(); b.click(); b.click(); return true; })()`)
	g.looks("쿠폰을 받았어요!", "The coupon is yours!")
	if asked.Load() != 2 || most.Load() != 1 {
		f.t.Errorf("it asked %d times, %d at once", asked.Load(), most.Load())
	}
	if waited := second.Load() - first.Load(); waited < 1000 {
		f.t.Errorf("it asked again behind %d ms, and the server said 1 s", waited)
	}
	code := browser.Eval[string](g.Page, `document.querySelector("#code").textContent`)
	g.Go(shop) // again: the same coupon, also in the wallet
	g.Await(strings.TrimSpace(code))
	g.keeps(1)
}
