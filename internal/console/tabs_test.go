package console_test

import (
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/stage"
)

// TestInTheBrowserAStaleTabIsToldWhatChanged presses a button of a tab that was opened before somebody else's change.
func TestInTheBrowserAStaleTabIsToldWhatChanged(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	p := browser.Open(t).Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/campaigns/spring/steer")
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "jun", id, 0, func(terms *firstcome.Terms) { terms.Quantity = 77 })))
	p.Press("button[value=pause]")
	p.Await("Somebody changed it meanwhile")
	p.Await("Nothing was changed.")
	p.Await("jun — changed the terms")
	p.Await("quantity 10 → 77")
	if h.status(id).Paused {
		t.Error("the stale tab paused it")
	}
	p.Press("a[href$='/steer']")
	p.Press("button[value=pause]")
	p.Await("It is paused.")
}

// TestInTheBrowserADoubleClickIsOne presses twice where each press would be a change of its own. Without script the second is
// one too many for the browser, or it is stale.
func TestInTheBrowserADoubleClickIsOne(t *testing.T) {
	var made, paused atomic.Int64
	h := openHouse(t, func(h *house) {
		h.asked = func(operation string, status int) {
			switch {
			case operation == "POST /console/keys":
				made.Add(1)
			case operation == "POST /console/campaigns/{id}/switch" && status < 400:
				paused.Add(1)
			}
		}
	})
	id := h.campaign("spring", 10)
	b := browser.Open(t)
	p := b.Page(t, browser.Look{Language: "en"})
	p.Go(h.url + "/console/keys")
	p.Type("[name=name]", "jun")
	p.PressTwice("form[action$='/keys'] button")
	p.Await("The new key: it is shown this once")
	p.Go(h.url + "/console/keys")
	if keys := browser.Eval[int](p, `document.querySelectorAll("tbody tr").length`); keys != 1 || made.Load() != 1 {
		t.Errorf("two presses made %d keys in %d requests", keys, made.Load())
	}
	for _, noScript := range []bool{false, true} {
		paused.Store(0)
		p := b.Page(t, browser.Look{Language: "en", NoScript: noScript})
		p.Go(h.url + "/console/campaigns/spring/steer")
		p.PressTwice("form[action$='/switch'] button:not([value=close])")
		p.Until(`!location.pathname.endsWith("/steer")`)
		p.Go(h.url + "/console/campaigns/spring/changes")
		if n := paused.Load(); n != 1 || h.status(id).Paused == noScript {
			t.Errorf("without script %v: two presses were %d changes, and it is paused %v", noScript, n, h.status(id).Paused)
		}
	}
}

// TestInTheBrowserAPageThatIsOpenWhenItsSessionEndsLeadsToTheLogin has a key revoked while people look at pages that go on by
// themselves. With another key they are back where they were.
func TestInTheBrowserAPageThatIsOpenWhenItsSessionEndsLeadsToTheLogin(t *testing.T) {
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	stage.Run(t, h.config.Watcher.Run)
	revoked, key := h.key(firstcome.Admin)
	other, _ := h.key(firstcome.Admin)
	b := browser.Open(t)
	tabs := map[string]*browser.Page{}
	for path, says := range map[string]string{"/console/campaigns/spring": "nodes 1 of 1", "/console/health": "What doctor found"} {
		p := b.Page(t, browser.Look{Language: "en"})
		h.loginIn(p, revoked)
		p.Go(h.url + path)
		p.Await(says)
		tabs[path] = p
	}
	stage.Must(t, h.ledger.RevokeKey(t.Context(), "a test", key.ID))
	stage.Must(t, h.auth.Reload(t.Context()))
	for path, p := range tabs {
		p.Await("Log in with your API key.")
		p.Type("input[name=key]", other)
		p.Press("main button")
		p.Until(`location.pathname === ` + browser.Quote(path))
		p.Await("mina of admin")
	}
}
