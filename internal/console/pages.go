package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/firstcome/firstcome/internal/auth"
)

// A page is one operation of a person. Only the roles in who may use it.
type page struct {
	method, path string
	who          auth.Who
	serve        func(*view) error
	length       length
}

// A length is how long an answer takes.
type length uint8

const (
	short   length = iota // it ends within readWait
	endless               // as long as the browser listens
)

const (
	// pagesOfKey is how many pages one key may read at once, and how many streams, exports and rebuilds: twice the screens of one desk.
	pagesOfKey = 8
	// mostPages is the same for all keys together: half of the console's own connections.
	mostPages = 128
)

// Callers of pages. Keys of the roles service and shop are for systems, and have no pages.
const (
	run  = auth.SeesAll       // manages campaigns
	look = run | auth.Support // looks up one user
	see  = look | auth.Viewer // sees no user's id
)

// pages is the whole surface. A GET changes nothing.
func (c *Console) pages() []page {
	const admin, anybody = auth.Admin, auth.Everyone
	return []page{
		{"GET", "/login", anybody, c.logins.show, short},
		{"POST", "/login", anybody, c.logins.login, short},
		{"POST", "/logout", anybody, c.logins.logout, short},

		{"GET", "", see, c.campaigns.list, short},
		{"GET", "/campaigns/new", run, c.campaigns.showNew, short},
		{"POST", "/campaigns", run, c.campaigns.create, short},
		{"GET", "/campaigns/{id}", see, c.live.show, short},
		{"GET", "/campaigns/{id}/events", see, c.live.follow, endless},
		{"POST", "/campaigns/{id}/switch", run, c.steer.switchTo, short},
		{"GET", "/campaigns/{id}/coupons", look, c.coupons.show, short},
		{"GET", "/campaigns/{id}/coupons.csv", run, c.coupons.export, endless},
		{"POST", "/campaigns/{id}/coupons/void", run, c.coupons.void, short},
		{"POST", "/campaigns/{id}/coupons/{number}/void", look, c.customers.void, short},
		{"GET", "/campaigns/{id}/proof", see, c.proofs.show, short},
		{"POST", "/campaigns/{id}/proof", run, c.proofs.start, short},
		{"POST", "/campaigns/{id}/proof/stop", run, c.proofs.stop, short},
		{"GET", "/campaigns/{id}/report", see, c.proofs.showReport, short},
		{"GET", "/campaigns/{id}/steer", run, c.steer.show, short},
		{"POST", "/campaigns/{id}/quantity", run, c.steer.changeQuantity, short},
		{"POST", "/campaigns/{id}/pace", run, c.steer.changePace, short},
		{"POST", "/campaigns/{id}/rebuild", run, c.steer.rebuild, endless}, // a million holders take seconds
		{"GET", "/campaigns/{id}/terms", run, c.campaigns.showTerms, short},
		{"POST", "/campaigns/{id}/terms", run, c.campaigns.changeTerms, short},
		{"GET", "/campaigns/{id}/changes", run, c.records.show, short},

		{"GET", "/customer", look, c.customers.show, short},
		{"POST", "/customer/issue", run, c.customers.issue, short},
		{"GET", "/health", see, c.health.show, short},
		{"POST", "/health/examine", see, c.health.examine, short},
		{"GET", "/help", see, c.showHelp, short},
		{"GET", "/recording", run, c.recording.show, short},
		{"POST", "/recording/dead-letters", run, c.recording.resolve, short},
		{"POST", "/recording/rebuild", run, c.recording.rebuild, endless},
		{"POST", "/recording/dead-letters/{letter}/replay", run, c.recording.replay, short},
		{"POST", "/recording/dead-letters/{letter}/void", run, c.recording.void, short},
		{"GET", "/audit-log", run, c.records.show, short},
		{"GET", "/keys", admin, c.keys.show, short},
		{"POST", "/keys", admin, c.keys.create, short},
		{"POST", "/keys/{key}/revoke", admin, c.keys.revoke, short},
	}
}

// A door lets people through to a page, and answers the page's errors.
type door struct {
	console *Console
	page    page
}

// readWait bounds how long a page may read or write.
const readWait = 10 * time.Second

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := d.console.newView(w, r)
	defer d.survive(v)
	if d.page.length == short {
		ctx, done := context.WithTimeout(r.Context(), readWait)
		defer done()
		v.r = r.WithContext(ctx)
	}
	err := v.enter(d.page.who)
	if room := d.console.rooms[d.page.length]; err == nil && d.page.who != auth.Everyone {
		if room.Enter(v.who.Actor) {
			defer room.Leave(v.who.Actor)
		} else {
			err = errRoom
		}
	}
	if err == nil {
		err = v.readForm()
	}
	if err == nil {
		err = d.page.serve(v)
	}
	if err != nil {
		v.refuse(err)
	}
}

// survive answers in place of a page that panicked, and logs where.
func (d *door) survive(v *view) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	d.console.Log.Error("a page of the console panicked", "page", d.page.path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	v.refuse(errPanic)
}

// A field is an input with its label.
type field struct {
	Name, Label, Value, Kind, Wrong string
	First                           bool // the first wrong one of its form
}

// wrongOf returns what is wrong with a field, or "".
func wrongOf(wrongs map[string]string, name string) string {
	return cmp.Or(wrongs[name], wrongs["coupon."+name])
}

func fieldOf(wrongs map[string]string, name, label, value, kind string) field {
	first := slices.IndexFunc(formOrder, func(name string) bool { return wrongOf(wrongs, name) != "" })
	return field{name, label, value, kind, wrongOf(wrongs, name), first >= 0 && formOrder[first] == name}
}

type lineFields struct {
	Line string
	Pace field
}

func lineFieldsOf(wrongs map[string]string, line, perSecond string) lineFields {
	return lineFields{line, fieldOf(wrongs, "per_second", "", perSecond, "number")}
}

// wrongAt returns the attributes of an input if it is the one that is wrong. The message has the id "wrong". A browser puts the focus there.
func wrongAt(name, wrong string) template.HTMLAttr {
	if name != wrong {
		return ""
	}
	return `aria-invalid="true" aria-describedby="wrong" autofocus`
}
