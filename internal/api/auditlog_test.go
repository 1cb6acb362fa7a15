package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheAuditLogSaysWhatChangedFromWhatToWhat makes an operator do everything that the log has.
func TestTheAuditLogSaysWhatChangedFromWhatToWhat(t *testing.T) {
	s := open(t, guarded)
	operator := s.key(firstcome.Operator)
	do := func(method, path, body string) {
		t.Helper()
		if r := s.call(method, path, body, operator...); r.status > 299 {
			t.Fatalf("%s %s answers %d %s", method, path, r.status, r.body)
		}
	}
	do("POST", "/v1/campaigns", `{"id":"c","name":"n","quantity":null,"opens_at":"2026-01-02T03:04:05+09:00","coupon":{"benefit":{"won":5000},"valid_for":"36h"}}`)
	do("PATCH", "/v1/campaigns/c", `{"quantity":9,"name":"n","coupon":{"benefit":{"won":12345678901234567890},"valid_for":"36h"}}`)
	do("PATCH", "/v1/campaigns/c", `{"quantity":null,"opens_at":null,"closes_at":"2999-01-01T00:00:00.5Z","coupon":{"valid_for":null,"valid_until":"2999-01-01T00:00:00Z"}}`)
	do("POST", "/v1/campaigns/c/coupons", `{"user_ids":["a"]}`)
	do("POST", "/v1/campaigns/c/coupons/1/void", `{"reason":"returned"}`)
	do("POST", "/v1/campaigns/c/pause", "")
	do("POST", "/v1/campaigns/c/resume", "")
	do("POST", "/v1/campaigns/c/close", "")
	items := s.call("GET", "/v1/audit-log?campaign=c", "", operator...).want(t, 200, "").items()
	slices.Reverse(items)
	want := []struct{ action, from, to, detail string }{
		{"campaign.create", `null`, `{"name":"n","quantity":null,"opens_at":"2026-01-01T18:04:05.000000Z","closes_at":null,"answer":"recorded","pace":null,"waitlist":false,"line_log":false,"coupon":{"benefit":{"won":5000},"valid_until":null,"valid_for":"36h0m0s"},"prizes":null}`, `{}`},
		{"campaign.update", `{"quantity":null,"coupon":{"benefit":{"won":5000}}}`, `{"quantity":9,"coupon":{"benefit":{"won":12345678901234567890}}}`, `{}`},
		{
			"campaign.update", `{"quantity":9,"opens_at":"2026-01-01T18:04:05.000000Z","closes_at":null,"coupon":{"valid_for":"36h0m0s","valid_until":null}}`,
			`{"quantity":null,"opens_at":null,"closes_at":"2999-01-01T00:00:00.500000Z","coupon":{"valid_for":null,"valid_until":"2999-01-01T00:00:00.000000Z"}}`, `{}`,
		},
		{"coupon.issue", `null`, `null`, `{"issued":1,"last_number":1,"waiting":0}`},
		{"coupon.void", `{"state":"in_force"}`, `{"state":"voided"}`, `{"reason":"returned"}`},
		{"campaign.pause", `{"paused":false}`, `{"paused":true}`, `{}`},
		{"campaign.resume", `{"paused":true}`, `{"paused":false}`, `{}`},
		{"campaign.close", `{"closed":false}`, `{"closed":true}`, `{}`},
	}
	if len(items) != len(want) {
		t.Fatalf("the log has %d lines: %v", len(items), items)
	}
	for n, w := range want {
		line := items[n]
		if line["action"] != w.action || line["actor_name"] != "test" {
			t.Errorf("line %d is %v", n, line)
		}
		for field, text := range map[string]string{"old": w.from, "new": w.to, "detail": w.detail} {
			var value any
			stage.Must(t, json.Unmarshal([]byte(text), &value))
			if diff := cmp.Diff(value, line[field]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", w.action, field, diff)
			}
		}
	}
	// The new values in the log can be sent as a PATCH.
	again, err := json.Marshal(items[1]["new"])
	stage.Must(t, err)
	s.call("POST", "/v1/campaigns", `{"id":"d","name":"n","quantity":1}`, operator...).want(t, 201, "")
	s.call("PATCH", "/v1/campaigns/d", string(again), operator...).want(t, 200, "")
	log := s.call("GET", "/v1/audit-log?campaign=d&limit=1", "", operator...)
	if line := log.items()[0]; !cmp.Equal(line["new"], items[1]["new"]) {
		t.Errorf("done again it is %v", line)
	}
}

// TestALineThatCannotBeReadHidesNoOther edits the ledger's rows so that one entry cannot be read.
func TestALineThatCannotBeReadHidesNoOther(t *testing.T) {
	for _, detail := range []string{"x", "[]", "null", "", `{"old":null,"new":7}`, `{"old":{"quantity":"many"},"new":{}}`, `{"old":{"benefit":1},"new":[]}`} {
		s := open(t)
		s.create(`{"id":"c","name":"n","quantity":9}`)
		s.call("POST", "/v1/campaigns/c/pause", "").want(t, 200, "")
		s.behind(`UPDATE audit_log SET detail = '` + detail + `' WHERE action = 'campaign.create'`)
		items := s.call("GET", "/v1/audit-log", "").want(t, 200, "").items()
		if len(items) != 2 || items[0]["action"] != "campaign.pause" || items[1]["action"] != "campaign.create" {
			t.Errorf("with the detail %s the log is %v", detail, items)
			continue
		}
		if diff := cmp.Diff(map[string]any{"unreadable": detail}, items[1]["detail"]); diff != "" {
			t.Errorf("the detail %s:\n%s", detail, diff)
		}
	}
}

func TestTheAuditLogSaysWhoMadeAndRevokedKeys(t *testing.T) {
	s := open(t, guarded)
	admin := s.key(firstcome.Admin)
	id := strings.Split(admin[1], "_")[1]
	stage.Must(t, s.ledger.Deployment.RevokeKey(t.Context(), "local:kim", id))
	lines := s.call("GET", "/v1/audit-log", "", s.key(firstcome.Operator)...).items()
	revoked, made := lines[1], lines[2]
	if made["action"] != "key.create" || made["old"] != nil || !cmp.Equal(made["new"], any(map[string]any{"id": id, "name": "test", "role": "admin"})) {
		t.Errorf("it was made by %v", made)
	}
	at, _ := revoked["new"].(map[string]any)
	if revoked["action"] != "key.revoke" || revoked["actor"] != "local:kim" || revoked["actor_name"] != nil || at["revoked_at"] != revoked["at"] {
		t.Errorf("it was revoked by %v", revoked)
	}
}
