package console_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// A clicker is an admin with a browser, in a house whose campaigns no other test uses.
type clicker struct {
	*house
	page  screen
	plain string      // the API key
	slow  atomic.Bool // a verification waits until it is stopped

	mu   sync.Mutex // guards done
	done []string   // operations that were answered without a refusal
}

// An action is one thing that a person does by clicking.
type action struct {
	operation string
	do        func(*clicker)
}

// actions are all actions on the pages, as opposed to viewing. Each begins on a page of its own, and can run alone.
var actions = []action{
	{"POST /console/login", (*clicker).logIn},
	{"POST /console/campaigns", (*clicker).makeCampaign},
	{"POST /console/campaigns", (*clicker).cloneCampaign},
	{"POST /console/campaigns/{id}/switch", (*clicker).pauseAndResume},
	{"POST /console/campaigns/{id}/switch", (*clicker).closeByName},
	{"POST /console/campaigns/{id}/quantity", (*clicker).changeQuantity},
	{"POST /console/campaigns/{id}/pace", (*clicker).changePace},
	{"POST /console/campaigns/{id}/terms", (*clicker).changeTerms},
	{"POST /console/campaigns/{id}/rebuild", (*clicker).rebuild},
	{"POST /console/recording/rebuild", (*clicker).rebuildSeveral},
	{"POST /console/campaigns/{id}/coupons/{number}/void", (*clicker).voidOne},
	{"POST /console/customer/issue", (*clicker).issueOne},
	{"POST /console/campaigns/{id}/coupons/void", (*clicker).voidSeveral},
	{"GET /console/campaigns/{id}/coupons.csv", (*clicker).export},
	{"POST /console/campaigns/{id}/proof", (*clicker).prove},
	{"POST /console/campaigns/{id}/proof/stop", (*clicker).stopProof},
	{"POST /console/recording/dead-letters/{letter}/replay", (*clicker).replayLetter},
	{"POST /console/recording/dead-letters", (*clicker).voidCause},
	{"POST /console/recording/dead-letters/{letter}/void", (*clicker).voidLetter},
	{"POST /console/keys", (*clicker).makeKey},
	{"POST /console/keys/{key}/revoke", (*clicker).revokeKey},
	{"POST /console/health/examine", (*clicker).examine},
	{"GET /console/audit-log", (*clicker).speakKorean},
	{"POST /console/logout", (*clicker).logOut},
}

func TestTheTableOfActionsHasEachOfThem(t *testing.T) {
	h := openHouse(t)
	for _, operation := range console.New(h.configWithAuth()).Operations() {
		look := strings.HasPrefix(operation, "GET ") && !strings.HasSuffix(operation, ".csv")
		if !look && !slices.ContainsFunc(actions, func(a action) bool { return a.operation == operation }) {
			t.Errorf("nobody clicks on %s", operation)
		}
	}
}

// TestEachActionIsDoneByTheFormsOfThePages does each action as a browser without script does, and asks the ledger for the result.
func TestEachActionIsDoneByTheFormsOfThePages(t *testing.T) {
	c := openClicker(t)
	c.does(c.reader())
}

func TestAStaleTabIsToldWhatChanged(t *testing.T) {
	h := openHouse(t)
	h.pressesInAStaleTab(h.reader())
}

// pressesInAStaleTab presses a button in a tab that was opened before somebody else's change.
func (h *house) pressesInAStaleTab(p screen) {
	t := h.t
	id := h.campaign("spring", 10)
	p.Go(h.url + "/console/campaigns/spring/steer")
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "jun", id, 0, func(terms *firstcome.Terms) { terms.Quantity = 77 })))
	p.Press("button[value=pause]")
	p.Await("The campaign has changed")
	p.Await("Nothing was changed.")
	p.Await("jun — changed the terms")
	p.Await("quantity 10 → 77")
	if h.status(id).Paused {
		t.Error("the stale tab paused it")
	}
	p.Press("a[href$='/steer']")
	p.Press("button[value=pause]")
	p.Await("Paused.")
}

func openClicker(t *testing.T) *clicker {
	c := &clicker{}
	c.house = openFar(t, withKeys, func(h *house) {
		prove := h.config.Prove
		h.config.Prove = func(ctx context.Context, id firstcome.CampaignID, read *atomic.Int64) (console.Proof, error) {
			if c.slow.Load() {
				<-ctx.Done()
				return console.Proof{}, ctx.Err()
			}
			return prove(ctx, id, read)
		}
		h.config.Doctor = somethingFound
		h.asked = c.note
	})
	for _, id := range []string{"voids", "issues", "switched", "steered", "proved"} {
		c.campaign(id, 10)
		c.claim(firstcome.CampaignID(id), "mina", "jun", "sua")
	}
	c.plain, _ = c.key(firstcome.Admin)
	return c
}

// does does all actions.
func (c *clicker) does(page screen) {
	c.page = page
	for _, a := range actions {
		c.reset()
		a.do(c)
		if !c.did(a.operation) {
			c.t.Errorf("somebody clicked, and %s was not done", a.operation)
		}
	}
}

func (c *clicker) note(operation string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if status < 400 {
		c.done = append(c.done, operation)
	}
}

func (c *clicker) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = nil
}

func (c *clicker) did(operation string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.done, operation)
}

// at opens a page of the console.
func (c *clicker) at(path string) screen {
	c.t.Helper()
	c.page.Go(c.url + "/console" + path)
	return c.page
}

// want fails the test unless a campaign is as expected.
func (c *clicker) want(id firstcome.CampaignID, what string, holds func(t firstcome.Campaign) bool) {
	c.t.Helper()
	if s := c.status(id); !holds(s.Campaign) {
		c.t.Errorf("%s is not %s: %+v", id, what, s.Campaign)
	}
}

func (c *clicker) logIn() { c.loginIn(c.page, c.plain) }

func (c *clicker) makeCampaign() {
	p := c.at("")
	p.Press("a[href$='/campaigns/new']")
	p.Await("Create a campaign")
	p.Type("[name=name]", "Autumn <b>& co</b>")
	p.Type("[name=id]", "autumn")
	p.Type("[name=quantity]", "1,200")
	p.Press("button[value=check]")
	p.Await("Before it opens")
	p.Press("button[value=create]")
	p.Await("Campaign created.")
	p.Await("Autumn <b>& co</b>")
	c.want("autumn", "made", func(s firstcome.Campaign) bool { return s.Quantity == 1200 && s.Name == "Autumn <b>& co</b>" })
}

func (c *clicker) cloneCampaign() {
	p := c.at("/campaigns/proved/steer")
	p.Press("a[href$='clone=proved']")
	p.Await("Create a campaign")
	p.Type("[name=id]", "twin")
	p.Press("button[value=check]")
	p.Await("Before it opens")
	p.Press("button[value=create]")
	p.Await("Campaign created.")
	c.want("twin", "like proved", func(s firstcome.Campaign) bool { return s.Quantity == 10 && s.Name == "추석 proved" })
}

func (c *clicker) rebuild() {
	for _, page := range []string{"/recording", "/health"} {
		c.mender.breaks("proved", gate.ErrGone)
		p := c.at(page)
		p.Press("[data-stopped=lost] button")
		p.Await("Rebuild the gate?")
		p.Type("[name=typed]", "proved")
		p.Press(".card.danger button")
		p.Await("The gate is rebuilt")
		if left := c.mender.all(); len(left) > 0 {
			c.t.Errorf("from %s it is not rebuilt: %v", page, left)
		}
	}
}

func (c *clicker) rebuildSeveral() {
	c.mender.breaks("proved", gate.ErrGone)
	c.mender.breaks("voids", gate.ErrGone)
	p := c.at("/recording")
	p.Press("[data-stopped=lost] button")
	p.Await("Rebuild these gates? (2)")
	p.Type("[name=typed]", "2")
	p.Press(".card.danger button")
	p.Await("Campaigns that are decided again: 2.")
	if left := c.mender.all(); len(left) > 0 {
		c.t.Errorf("they are not rebuilt: %v", left)
	}
}

func (c *clicker) pauseAndResume() {
	paused := func(s firstcome.Campaign) bool { return s.Paused }
	for _, page := range []string{"/campaigns/switched", "/campaigns/switched/steer"} {
		p := c.at(page)
		p.Press("button[value=pause]")
		p.Await("Paused.")
		c.want("switched", "paused", paused)
		p = c.at(page)
		p.Press("button[value=resume]")
		p.Await("Resumed.")
		c.want("switched", "resumed", func(s firstcome.Campaign) bool { return !paused(s) })
	}
}

func (c *clicker) closeByName() {
	closed := func(s firstcome.Campaign) bool { return s.Closed }
	p := c.at("/campaigns/switched/steer")
	p.Press("button[value=close]")
	p.Await("Close it? This cannot be undone.")
	p.Press(".card.danger a.button") // cancels
	p.Gone(".card.danger")
	c.want("switched", "left open", func(s firstcome.Campaign) bool { return !closed(s) })
	p.Press("button[value=close]")
	p.Await("Close it? This cannot be undone.")
	p.Type("[name=typed]", "추석 switched")
	p.Press(".card.danger button")
	p.Await("Closed.")
	c.want("switched", "closed", closed)
}

func (c *clicker) changeTerms() {
	closes := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	p := c.at("/campaigns/steered/terms")
	p.Type("[name=closes_at]", "2040-01-01T09:00")
	p.Press("form[action$='/terms'] button.main")
	p.Await("closes none → 2040-01-01 09:00:00 KST")
	c.want("steered", "open as long as before", func(s firstcome.Campaign) bool { return s.ClosesAt.IsZero() })
	p.Type("[name=typed]", "steered")
	p.Press(".card.danger button")
	p.Await("Changed: closes")
	c.want("steered", "closing in 2040, and nothing else", func(s firstcome.Campaign) bool { return s.ClosesAt.Equal(closes) && s.Name == "추석 steered" })
}

func (c *clicker) changeQuantity() {
	p := c.at("/campaigns/steered/steer")
	p.Type("[name=quantity]", "8,000")
	p.Press("form[action$='/quantity'] button")
	p.Await("Raise the quantity?")
	c.want("steered", "as before", func(s firstcome.Campaign) bool { return s.Quantity < 8000 })
	p.Type("[name=typed]", "steered")
	p.Press(".card.danger button")
	p.Await("The quantity is now 8,000.")
	c.want("steered", "larger", func(s firstcome.Campaign) bool { return s.Quantity == 8000 })
	p = c.at("/campaigns/steered/steer")
	p.Type("[name=quantity]", "4")
	p.Press("form[action$='/quantity'] button")
	p.Await("Lower the quantity?")
	c.want("steered", "larger until the id is typed", func(s firstcome.Campaign) bool { return s.Quantity == 8000 })
	p.Type("[name=typed]", "steered")
	p.Press(".danger button")
	p.Await("The quantity is now 4.")
	c.want("steered", "smaller", func(s firstcome.Campaign) bool { return s.Quantity == 4 })
}

func (c *clicker) changePace() {
	p := c.at("/campaigns/steered/steer")
	p.Press("input[value=paced]")
	p.Type("[name=per_second]", "250")
	p.Press("form[action$='/pace'] button")
	p.Await("The pace of the line is now 250 coupons a second.")
	c.want("steered", "paced", func(s firstcome.Campaign) bool { return s.Pace != nil && s.Pace.PerSecond == 250 })
	p = c.at("/campaigns/steered/steer")
	p.Press("input[value=none]")
	p.Press("form[action$='/pace'] button")
	p.Await("There is no line now.")
	c.want("steered", "without a line", func(s firstcome.Campaign) bool { return s.Pace == nil })
}

func (c *clicker) issueOne() {
	records := func(at bool) { c.gate.Set(func() { c.gate.Records = at }) }
	records(true) // from here on no recorder runs
	defer records(false)
	p := c.at("/customer?campaign=issues&user_id=sorry")
	p.Await("You have no coupon of")
	p.Press("details[id=issue] summary")
	p.Type("details[id=issue] [name=reason]", "our mistake")
	p.Press("details[id=issue] button")
	p.Await("Coupon issued.")
	p.Await("mina of admin: our mistake")
	c.gate.Record(c.t, c.ledger.Recorder, "issues")
	c.inForce("issues", 4, "an issue")
}

func (c *clicker) voidOne() {
	p := c.at("/customer")
	p.Type("[name=q]", "mina")
	p.Type("[name=campaign]", "voids")
	p.Press("main form button")
	p.Await("You got “")
	p.Press("main section details summary")
	p.Type("[name=reason]", "she asked")
	p.Press("button.danger")
	p.Await("Voided.")
	p.Await("mina of admin: she asked")
	c.inForce("voids", 2, "one void")
}

func (c *clicker) inForce(id firstcome.CampaignID, want int64, behind string) {
	c.t.Helper()
	if s := c.status(id); s.InForce != want {
		c.t.Errorf("%d of %s are in force behind %s, want %d", s.InForce, id, behind, want)
	}
}

func (c *clicker) voidSeveral() {
	p := c.at("/campaigns/voids/coupons")
	p.Type("textarea[name=numbers]", "2-3")
	p.Type("form.stack [name=reason]", "a mistake")
	p.Press("form.stack button")
	p.Await("This would happen")
	c.inForce("voids", 2, "a dry run")
	p.Type("[name=typed]", "voids")
	p.Press(".card.danger button")
	p.Await("Voided.")
	c.inForce("voids", 0, "a bulk void")
}

func (c *clicker) export() {
	file := string(c.at("/campaigns/voids/coupons").Download("a[download]"))
	if file != "all of voids, Asia/Seoul, korean false" { // the house serves this text: the API's tests check the real content
		c.t.Errorf("the file is %q", file)
	}
}

func (c *clicker) prove() {
	p := c.at("/campaigns/proved/proof")
	p.Press("form[action$='/proof'] button")
	p.Await("Every promise that was checked was kept")
	p.Press("a[href$='/report']")
	p.Await("Event report")
}

func (c *clicker) stopProof() {
	c.slow.Store(true)
	defer c.slow.Store(false)
	p := c.at("/campaigns/steered/proof")
	p.Press("form[action$='/proof'] button")
	p.Await("Running")
	p.Press("form[action$='/stop'] button")
	p.Await("Verify now") // the page lacks this button while a verification runs
}

func (c *clicker) letters(open int) {
	c.t.Helper()
	if found := c.openLetters(); found != open {
		c.t.Errorf("%d dead letters are open, want %d", found, open)
	}
}

func (c *clicker) replayLetter() {
	c.bury("proved", "hana", "it is of epoch 1, the campaign is in 2")
	p := c.at("/recording")
	p.Await("it is of epoch 1")
	p.Press("form[action$='/replay'] button")
	p.Await("Recorded.")
	p.Await("There is no dead letter.")
	c.letters(0)
	c.inForce("proved", 4, "a replay")
}

func (c *clicker) voidCause() {
	c.bury("proved", "late", "number 5 is of epoch 1, the campaign is in 2")
	c.bury("proved", "later", "number 6 is of epoch 1, the campaign is in 2")
	p := c.at("/recording")
	p.Type("[data-causes] [name=reason]", "nobody has them")
	p.Press("[data-causes] button[value=void]")
	p.Await("Void all of this cause?")
	p.Await("dead letters: 2")
	c.letters(2)
	p.Type("[name=typed]", "proved")
	p.Press("section.danger button.danger")
	p.Await("There is no dead letter.")
	c.letters(0)
}

func (c *clicker) voidLetter() {
	c.bury("proved", "late", "it is of epoch 1, the campaign is in 2")
	p := c.at("/recording")
	p.Type("article [name=reason]", "nobody has it")
	p.Press("article button.danger")
	p.Await("Voided.")
	p.Await("There is no dead letter.")
	c.letters(0)
	p.Press("a[href*='resolved=yes']")
	p.Await("voided")
}

func (c *clicker) makeKey() {
	p := c.at("/keys")
	p.Type("[name=name]", "jun")
	p.Press("form[action$='/keys'] button")
	p.Await("The new key, shown only once")
	c.keyOf("jun")
}

// keyOf returns the key with a name.
func (c *clicker) keyOf(name string) firstcome.Key {
	c.t.Helper()
	keys, err := c.ledger.Deployment.Keys(c.t.Context())
	stage.Must(c.t, err)
	n := slices.IndexFunc(keys, func(k firstcome.Key) bool { return k.Name == name })
	if n < 0 {
		c.t.Fatalf("there is no key of %s", name)
	}
	return keys[n]
}

func (c *clicker) revokeKey() {
	c.key(firstcome.Viewer)
	p := c.at("/keys")
	p.Press("form[action$='" + c.keyOf("mina of viewer").ID + "/revoke'] button")
	p.Await("Key revoked.")
	if c.keyOf("mina of viewer").RevokedAt.IsZero() {
		c.t.Error("the key is not revoked")
	}
}

func (c *clicker) examine() {
	p := c.at("/health")
	p.Press("form[action$='/examine'] button")
	p.Await("it is 93 % full")
}

func (c *clicker) speakKorean() {
	p := c.at("/audit-log")
	p.Press(".person a[hreflang]")
	p.Await("로그아웃")
	c.at("/audit-log").Await("로그아웃") // the language is remembered
	p.Press(".person a[hreflang]")
	p.Await("Log out")
}

func (c *clicker) logOut() {
	p := c.at("")
	p.Press("form[action$='/logout'] button")
	p.Await("Log in with your API key.")
	c.at("/keys").Await("Log in with your API key.")
}
