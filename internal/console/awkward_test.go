package console_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	// hostile is what somebody writes where a name is asked for: markup that would run, quotes, a word that is written from right to
	// left and does not end, and what is more than one code unit.
	hostile = `<script>owned=1</script>'"><img src=x onerror=owned=1>` + "\u202eשלום מרחבא👩‍👩‍👧‍👦한글"
	// longest has no place where a line may break, and as many bytes as a user's id may have.
	longest = "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
	// longestID is a campaign's.
	longestID = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
)

// openAwkward opens a house in which everything that people may name has a name that is hard to show.
func openAwkward(t *testing.T) *house {
	at := time.Now()
	h := openFar(t, withKeys, func(h *house) {
		h.config.Watcher.Nodes = fleet{{Host: hostile, Listen: longest + ":8080", Role: "all", Version: longest, StartedAt: at, SeenAt: at, Now: at}}
		h.config.Doctor = func(context.Context) (found doctor.Findings) {
			found.Add(doctor.Fail, hostile, longest, "%s", hostile)
			return found
		}
	})
	for id, name := range map[firstcome.CampaignID]string{longestID: hostile, "long": strings.Repeat("W", firstcome.MaxName)} {
		terms := firstcome.Terms{Name: name, Quantity: firstcome.MaxQuantity, Answer: firstcome.Recorded, Benefit: []byte(`"` + longest + `"`), Pace: &firstcome.Pace{PerSecond: firstcome.MaxPace}}
		stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", id, terms)))
		terms.Pace = nil
		stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", id, 0, func(now *firstcome.Terms) { now.Pace = nil })))
	}
	h.claim(longestID, hostile, longest)
	h.bury(longestID, "b"+longest[1:], hostile+longest)
	stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), hostile, longestID, 1, hostile+longest)))
	for _, name := range []string{hostile, longest[:100]} {
		_, key, err := auth.NewKey(strings.ToValidUTF8(name[:100], ""), firstcome.Viewer)
		stage.Must(t, err)
		key.CreatedAt = at
		stage.Must(t, h.ledger.AddKey(t.Context(), longest, key))
	}
	return h
}

// awkwardPages are the pages that show what people named.
func awkwardPages() (paths []string) {
	for _, id := range []string{longestID, "long"} {
		for _, tab := range []string{"", "/coupons?voided=yes", "/proof", "/report", "/steer", "/changes"} {
			paths = append(paths, "/campaigns/"+id+tab)
		}
	}
	user := func(id string) string { return "/customer?campaign=" + longestID + "&user_id=" + url.QueryEscape(id) }
	return append(paths, "", "?q="+url.QueryEscape(hostile), user(hostile), user(longest), user("b"+longest[1:]), "/customer?user_id="+url.QueryEscape(longest),
		"/campaigns/new?clone="+longestID, "/campaigns/"+longestID+"/coupons?code="+url.QueryEscape(hostile), "/recording", "/audit-log", "/audit-log?user_id="+url.QueryEscape(hostile), "/keys", "/health", "/health?examine=yes")
}

// TestInTheBrowserWhatPeopleNameIsTextAndFits shows names that would run or that have no end on each page: nothing of them is
// markup, and nothing is wider than its page.
func TestInTheBrowserWhatPeopleNameIsTextAndFits(t *testing.T) {
	h := openAwkward(t)
	plain, _ := h.key(firstcome.Admin)
	b := browser.Open(t)
	// turned are names that turn what stands behind them: they are not in an element of their own.
	const turned = `[...document.querySelectorAll("body *")].filter(e => {
		const {display, unicodeBidi} = getComputedStyle(e);
		const parts = [...e.childNodes].filter(n => n.nodeType === 1 || n.data?.trim());
		return parts.some((n, at) => n.nodeType === 3 && n.data.includes("\u202e") && (display === "inline" ? !unicodeBidi.startsWith("isolate") : at < parts.length - 1));
	}).map(e => "not apart from what stands beside it: " + e.outerHTML.slice(0, 200))`
	const markup = `(typeof owned !== "undefined" ? "it ran" : "") + document.querySelectorAll("img, script:not([src])").length`
	t.Run("looks", func(t *testing.T) {
		for _, look := range awkwardLooks() {
			t.Run(look.String(), func(t *testing.T) {
				t.Parallel()
				p := b.Page(t, look)
				h.loginIn(p, plain)
				for n, path := range awkwardPages() {
					p.Go(h.url + "/console" + path)
					if got := browser.Eval[string](p, markup); got != "0" {
						t.Errorf("%s: markup of a name: %s", path, got)
					}
					for _, wrong := range slices.Concat(p.Overflows(), browser.Eval[[]string](p, turned)) {
						t.Errorf("%s: %s", path, wrong)
					}
					p.Screenshot(fmt.Sprintf("%02d", n))
				}
			})
		}
	})
}

// awkwardLooks are narrow: what fits there fits a wider page, as a soak finds out.
func awkwardLooks() []browser.Look {
	looks := []browser.Look{{Language: "en", Width: 360}}
	if stage.Soak() > 0 {
		looks = append(looks, browser.Look{Language: "ko", Width: 360, Dark: true}, browser.Look{Language: "en", Width: 1280}, browser.Look{Language: "ko", Width: 2560})
	}
	return looks
}
