//go:build soak

package pictures

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A size is how big a demonstration is.
type size struct{ users, coupons string }

// TestAStrangerFollowsTheLinkOfTheDemonstration watches a drop from its first coupon to its proof. With PICTURES=DIR it is a drop for
// people to look at, of 40 s, and its pictures are written to DIR: see make pictures.
func TestAStrangerFollowsTheLinkOfTheDemonstration(t *testing.T) {
	dir, s := os.Getenv("PICTURES"), size{"300", "100"}
	if dir != "" {
		s = size{"24000", "10000"}
	}
	live := demonstrate(t, s)
	root, _, _ := strings.Cut(live, "/campaigns/")
	others(t, strings.TrimSuffix(root, "/console"))
	b := browser.Open(t)
	light, dark := b.Page(t, look(false)), b.Page(t, look(true))
	take := func(p *browser.Page, name string) {
		if dir != "" {
			p.Picture(filepath.Join(dir, name+".webp"))
		}
	}
	dark.Go(root) // as most people come
	for _, p := range []*browser.Page{light, dark} {
		p.Go(live)
		p.Resize(1280, 914, scale)
	}
	t.Logf("first paint of the Live page: %.0f ms in a browser that has just started, %.0f ms behind the list of campaigns", light.FirstPaint(), dark.FirstPaint())
	light.Await("nodes 1 of 1")
	light.Await("Sold out at ")
	dark.Await("Sold out at ")
	if dir != "" { // people who ask in vain are part of the picture
		light.Until(`document.querySelector("[data-f=in_vain]").textContent.replace(",", "") >= 12000`)
	}
	light.Await("/ " + commas(s.coupons) + " issued")
	take(light, "live-light")
	take(dark, "live-dark")

	light.Resize(1280, 868, scale)
	light.Go(live + "/proof")
	light.Press("form[action$='/proof'] button")
	light.Await("Every promise that was checked was kept")
	take(light, "proof")

	light.Resize(1280, 796, scale)
	light.Go(root + "/customer?campaign=demo&user_id=user-17")
	light.Await("Your coupon code is ")
	take(light, "customer")

	light.Resize(1280, 744, scale)
	light.Go(root + "/campaigns/lunch")
	light.Await("A drink")
	light.Await("1,300")
	take(light, "prizes")

	light.Resize(1280, 640, scale)
	light.Go(root)
	light.Await("The first " + commas(s.coupons) + " get one")
	light.Await("Welcome back")
	take(light, "campaigns")
}

// scale is how many pixels of a picture a CSS pixel has: people look at them on fine screens.
const scale = 1.5

func look(dark bool) browser.Look { return browser.Look{Language: "en", Width: 1280, Dark: dark} }

// commas puts commas between the thousands of a number of at most six digits.
func commas(n string) string {
	if len(n) < 4 {
		return n
	}
	return n[:len(n)-3] + "," + n[len(n)-3:]
}

// demonstrate starts a demonstration, which ends with the test, and returns the link that it prints.
func demonstrate(t testing.TB, s size) (link string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "firstcome")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/firstcome").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	demo := exec.Command(binary, "demo", "--watch", "--users", s.users, "--coupons", s.coupons)
	demo.Env = services.Environ()
	var said bytes.Buffer
	demo.Stderr = &said
	out, err := demo.StdoutPipe()
	stage.Must(t, err)
	stage.Must(t, demo.Start())
	t.Cleanup(func() {
		_ = demo.Process.Signal(os.Interrupt)
		if err := demo.Wait(); err != nil && !strings.Contains(said.String(), "interrupted") { // the crowd may still be coming
			t.Errorf("the demonstration: %v: %s", err, &said)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if link = regexp.MustCompile(`http://\S+/console/campaigns/demo`).FindString(lines.Text()); link != "" {
			go func() {
				for lines.Scan() { // so that it does not wait for a reader
				}
			}()
			return link
		}
	}
	t.Fatal("the demonstration printed no link")
	return ""
}

// others makes campaigns that stand beside the demonstration's in the list.
func others(t *testing.T, server string) {
	t.Helper()
	ctx, api := t.Context(), client.New(server, "")
	defer api.CloseIdle()
	soon := client.Time{Time: time.Now().Add(50 * time.Hour).Truncate(time.Hour)}
	for _, c := range []client.NewCampaign{
		{ID: "chuseok", Name: "Chuseok gift set", Quantity: of(5000), OpensAt: &soon},
		{ID: "welcome", Name: "Welcome back", Quantity: of(400)},
		{ID: "night", Name: "Night market", Quantity: of(60)},
		{ID: "beta", Name: "Beta testers", Quantity: of(40)},
	} {
		c.Coupon = client.CouponSpec{Benefit: []byte(`{"percent_off":10}`)}
		stage.Must(t, stage.Err(api.CreateCampaign(ctx, c)))
	}
	stage.Must(t, stage.Err(api.CreateCampaign(ctx, client.NewCampaign{ID: "lunch", Name: "Lunch time", Quantity: of(5000), Prizes: []client.PrizeSpec{
		{ID: "drink", Name: "A drink", Quantity: of(100)}, {ID: "discount", Name: "20 % off", Quantity: of(900)}, {ID: "shipping", Name: "Free shipping"},
	}})))
	claim(ctx, t, api, "lunch", 1300)
	claim(ctx, t, api, "welcome", 261)
	claim(ctx, t, api, "night", 70)
	claim(ctx, t, api, "beta", 12)
	stage.Must(t, stage.Err(api.Pause(ctx, "welcome")))
	stage.Must(t, stage.Err(api.Close(ctx, "beta")))
}

func of(n int64) *int64 { return &n }

// claim has users of one after the other claim.
func claim(ctx context.Context, t *testing.T, api *client.Client, id string, users int) {
	t.Helper()
	var names []string
	for n := range users {
		names = append(names, fmt.Sprint("shopper-", n))
	}
	for some := range slices.Chunk(names, 1000) {
		stage.Must(t, stage.Err(api.Issue(ctx, id, some, "")))
	}
}
