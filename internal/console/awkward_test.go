package console_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	// hostile is a name as an attacker would type it: markup that would run, quotes, a right-to-left override without an end, and characters of more
	// than one code unit.
	hostile = `<script>owned=1</script>'"><img src=x onerror=owned=1>` + "\u202eשלום מרחבא👩‍👩‍👧‍👦한글"
	// longest has no place where a line may break, and as many bytes as a user id may have.
	longest = "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
	// longestID is the longest campaign id.
	longestID = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
)

// openAwkward opens a house in which every name that people can choose is hard to show.
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
		stage.Must(t, h.ledger.Deployment.AddKey(t.Context(), longest, key))
	}
	return h
}

// awkwardPages are the pages that show names which people chose.
func awkwardPages() (paths []string) {
	for _, id := range []string{longestID, "long"} {
		for _, tab := range []string{"", "/coupons?voided=yes", "/proof", "/report", "/steer", "/changes"} {
			paths = append(paths, "/campaigns/"+id+tab)
		}
	}
	user := func(id string) string { return "/customer?campaign=" + longestID + "&user_id=" + url.QueryEscape(id) }
	return append(paths, "", "?q="+url.QueryEscape(hostile), user(hostile), user(longest), user("b"+longest[1:]), "/customer?user_id="+url.QueryEscape(longest),
		"/campaigns/new?clone="+longestID, "/campaigns/"+longestID+"/coupons?code="+url.QueryEscape(hostile), "/recording", "/audit-log", "/audit-log?user_id="+url.QueryEscape(hostile), "/keys", "/health")
}

// TestWhatPeopleNameIsText shows names that would run on each page. No part of them becomes markup.
func TestWhatPeopleNameIsText(t *testing.T) {
	h := openAwkward(t)
	plain, _ := h.key(firstcome.Admin)
	b := h.login(plain)
	for _, path := range awkwardPages() {
		page := parse(t, b.get("/console"+path).body)
		if found := append(page.all("img"), page.all("script:not([src])")...); len(found) > 0 {
			t.Errorf("%s: markup of a name: %v", path, found[0].attr)
		}
		for _, e := range page.all("[onerror]") {
			t.Errorf("%s: a name is an attribute of %s", path, e.name)
		}
	}
}
