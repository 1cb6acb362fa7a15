package console_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
)

// people are the roles that may log in, and a person without a login.
var people = []firstcome.Role{firstcome.Admin, firstcome.Operator, firstcome.Support, firstcome.Viewer, ""}

// surface says, by hand, what each of people gets from each page, in that order: 200, 403, or 303 to the login. version in a form is the campaign's.
var surface = []struct {
	operation string
	form      url.Values
	status    [5]int
}{
	{"GET /console/login", nil, [5]int{200, 200, 200, 200, 200}},
	{"POST /console/login", url.Values{"key": {"x"}}, [5]int{403, 403, 403, 403, 403}},
	{"POST /console/logout", url.Values{}, [5]int{303, 303, 303, 303, 303}},
	{"GET /console", nil, sees},
	{"GET /console/campaigns/new", nil, reads},
	{"POST /console/campaigns", url.Values{"id": {"autumn"}, "name": {"a"}, "answer": {"recorded"}, "step": {"create"}}, runs},
	{"GET /console/campaigns/{id}", nil, sees},
	{"GET /console/campaigns/{id}/steer", nil, reads},
	{"GET /console/campaigns/{id}/terms", nil, reads},
	{"POST /console/campaigns/{id}/terms", url.Values{"name": {"another"}, "version": {"1"}}, [5]int{422, 422, 403, 403, 303}},
	{"GET /console/campaigns/{id}/coupons", nil, looks},
	{"GET /console/campaigns/{id}/coupons.csv", nil, reads},
	{"POST /console/campaigns/{id}/coupons/void", url.Values{"numbers": {"1"}, "reason": {"r"}}, reads},
	{"POST /console/campaigns/{id}/coupons/{number}/void", url.Values{"reason": {"r"}}, [5]int{404, 404, 404, 403, 303}},
	{"GET /console/customer", nil, looks},
	{"POST /console/customer/issue", url.Values{"campaign": {"none"}, "user_id": {"mina"}, "reason": {"r"}}, [5]int{422, 422, 403, 403, 303}},
	{"GET /console/health", nil, sees},
	{"POST /console/health/examine", url.Values{}, [5]int{303, 303, 303, 303, 303}},
	{"GET /console/help", nil, sees},
	{"GET /console/recording", nil, reads},
	{"POST /console/recording/dead-letters", url.Values{"of": {"none"}, "cause": {"other"}, "through": {"1"}, "do": {"replay"}}, reads},
	{"POST /console/recording/rebuild", url.Values{}, [5]int{404, 404, 403, 403, 303}},
	{"POST /console/recording/dead-letters/{letter}/replay", url.Values{}, [5]int{404, 404, 403, 403, 303}},
	{"POST /console/recording/dead-letters/{letter}/void", url.Values{"reason": {"r"}}, [5]int{404, 404, 403, 403, 303}},
	{"GET /console/campaigns/{id}/proof", nil, sees},
	{"POST /console/campaigns/{id}/proof", url.Values{}, runs},
	{"POST /console/campaigns/{id}/proof/stop", url.Values{}, runs},
	{"GET /console/campaigns/{id}/report", nil, sees},
	{"POST /console/campaigns/{id}/quantity", url.Values{"quantity": {"20"}, "version": {"1"}}, [5]int{422, 422, 403, 403, 303}},
	{"POST /console/campaigns/{id}/pace", url.Values{"line": {"fast"}, "version": {"1"}}, runs},
	{"POST /console/campaigns/{id}/rebuild", url.Values{"version": {"1"}}, [5]int{422, 422, 403, 403, 303}},
	{"GET /console/campaigns/{id}/events", nil, sees},
	{"POST /console/campaigns/{id}/switch", url.Values{"to": {"pause"}, "version": {"1"}}, runs},
	{"GET /console/campaigns/{id}/changes", nil, reads},
	{"GET /console/audit-log", nil, reads},
	{"GET /console/keys", nil, admins},
	{"POST /console/keys", url.Values{"name": {"mina"}, "role": {"viewer"}}, admins},
	{"POST /console/keys/{key}/revoke", url.Values{}, [5]int{404, 403, 403, 403, 303}},
}

var (
	sees   = [5]int{200, 200, 200, 200, 303}
	runs   = [5]int{303, 303, 403, 403, 303}
	looks  = [5]int{200, 200, 200, 403, 303}
	reads  = [5]int{200, 200, 403, 403, 303}
	admins = [5]int{200, 403, 403, 403, 303}
)

// TestEachRoleGetsItsPages requests each page as each role, with a campaign for each role.
func TestEachRoleGetsItsPages(t *testing.T) {
	h := openHouse(t, withKeys)
	for at, row := range surface {
		for n, role := range people {
			b, id := h.browser(), fmt.Sprintf("campaign-%d-%d", at, n)
			if role != "" {
				plain, _ := h.key(role)
				b = h.login(plain)
			}
			form := maps.Clone(row.form)
			if form.Has("id") {
				form.Set("id", id)
			} else {
				h.campaign(id, 10)
			}
			b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			method, path, _ := strings.Cut(row.operation, " ")
			got := b.do(method, strings.NewReplacer("{id}", id, "{number}", "7", "{letter}", "7", "{key}", "none").Replace(path), form, nil)
			if got.status != row.status[n] {
				t.Errorf("%s by %q: %d, want %d: %s", row.operation, role, got.status, row.status[n], got.text())
			}
			if got.status == http.StatusSeeOther && method == http.MethodPost && strings.HasSuffix(path, "/proof") && role != "" {
				b.await("/console/campaigns/"+id+"/proof", "checked was kept") // one verification runs at a time
			}
			toLogin := strings.HasPrefix(got.head.Get("Location"), "/console/login")
			if role != "" && toLogin && !strings.HasSuffix(path, "/logout") {
				t.Errorf("%s: %q is led to the login", row.operation, role)
			}
			if role == "" && got.status == http.StatusSeeOther && !toLogin {
				t.Errorf("%s: nobody is led to %s", row.operation, got.head.Get("Location"))
			}
		}
	}
}

func TestTheTableOfRolesHasEveryPage(t *testing.T) {
	h := openHouse(t)
	var have []string
	for _, row := range surface {
		have = append(have, row.operation)
	}
	for _, operation := range console.New(h.configWithAuth()).Operations() {
		if !slices.Contains(have, operation) {
			t.Errorf("%s is not in the table", operation)
		}
	}
}
