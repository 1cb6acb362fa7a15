package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/wire"
)

// auditLog serves the audit log.
type auditLog struct{ *core }

// list answers GET /v1/audit-log.
func (s *auditLog) list(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	q := parseQuery(r)
	most := q.limit()
	filter := ledger.LogFilter{
		Campaign: parsed(q, "campaign", firstcome.ParseCampaignID), User: parsed(q, "user_id", firstcome.ParseUserID),
		Before: q.number("before"), Limit: most + 1,
	}
	if q.err() != nil {
		return q.err()
	}
	lines, err := s.Ledger.AuditLog(r.Context(), filter)
	if err != nil {
		return err
	}
	keys, err := s.Keys.Keys(r.Context())
	if err != nil {
		return err
	}
	lines, next := pageOf(lines, most, func(e ledger.LogEntry) int64 { return e.ID })
	return writeList(w, lines, next, func(e ledger.LogEntry) client.LogEntry { return wireLine(e, keys) })
}

// wireLine converts an entry of the audit log. If the entry's detail is unreadable, because it was edited in the ledger,
// wireLine returns the raw text instead of an error, so that the other entries can still be listed.
func wireLine(e ledger.LogEntry, keys []firstcome.Key) client.LogEntry {
	line := client.LogEntry{
		ID: e.ID, At: client.Time{Time: e.At}, Actor: e.Actor, ActorName: keyName(e.Actor, keys), Action: e.Action,
		CampaignID: optional(string(e.Campaign)), UserID: optional(string(e.User)), Number: optional(e.Number),
	}
	if wireDetail(&line, e) != nil {
		line.Old, line.New, line.Detail = nil, nil, asJSON(map[string]any{"unreadable": string(e.Detail)})
	}
	return line
}

// errNoDetail means that an entry's detail is null.
var errNoDetail = errors.New("there is no detail")

// wireDetail sets a line's old, new and detail.
func wireDetail(line *client.LogEntry, e ledger.LogEntry) error {
	var detail map[string]any
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return err
	}
	if detail == nil {
		return errNoDetail
	}
	before, after := any(nil), any(nil)
	if detail["new"] == nil {
		before, after = turned(e, detail)
	} else {
		old, changed, err := e.TermsOf()
		if err == nil {
			before, after, err = termsTurned(old, changed)
		}
		if err != nil {
			return err
		}
		if n := skipped(changed) - skipped(old); n > 0 {
			detail["skipped"] = n
		}
	}
	delete(detail, "old")
	delete(detail, "new")
	if e.Refused {
		detail["refused"] = true
	}
	line.Old, line.New, line.Detail = asJSON(before), asJSON(after), asJSON(detail)
	return nil
}

// asJSON encodes a value that cannot fail to encode: one read from JSON, or made of strings and numbers.
func asJSON(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// keyName returns the name of an actor that is a key, otherwise nil.
func keyName(actor string, keys []firstcome.Key) *string {
	for n := range keys {
		if actor == "key:"+keys[n].ID {
			return &keys[n].Name
		}
	}
	return nil
}

// turned returns the state before and after an action without terms. The action implies the state before.
func turned(e ledger.LogEntry, detail map[string]any) (before, after any) {
	type values map[string]any
	switch e.Action {
	case "campaign.pause":
		return values{"paused": false}, values{"paused": true}
	case "campaign.resume":
		return values{"paused": true}, values{"paused": false}
	case "campaign.close":
		return values{"closed": false}, values{"closed": true}
	case "campaign.retire":
		return values{"retired_at": nil}, values{"retired_at": wire.Time(e.At)}
	case "coupon.void":
		return values{"state": "in_force"}, values{"state": "voided"}
	case "dead_letter.replay":
		return values{"resolved_by": nil}, values{"resolved_by": "replayed"}
	case "dead_letter.void":
		return values{"resolved_by": nil}, values{"resolved_by": "voided"}
	case "key.create":
		return nil, values{"id": detail["key"], "name": detail["name"], "role": detail["role"]}
	case "key.revoke":
		return values{"revoked_at": nil}, values{"revoked_at": wire.Time(e.At)}
	}
	return nil, nil
}

// termsTurned returns the fields of the terms that changed, before and after.
func termsTurned(old, changed *firstcome.Terms) (before, after any, err error) {
	switch {
	case changed == nil:
		return nil, nil, nil
	case old == nil:
		return nil, wireTerms(changed), nil
	}
	a, b := wireTerms(old), wireTerms(changed)
	from, to, err := differing(a, b)
	if err != nil || to["coupon"] == nil {
		return from, to, err
	}
	// The fields of coupon are compared one by one, as PATCH changes them.
	from["coupon"], to["coupon"], err = differing(a.Coupon, b.Coupon)
	return from, to, err
}

// skipped returns how many numbers have no rank under the terms. It is 0 if t is nil.
func skipped(t *firstcome.Terms) int64 {
	if t == nil || len(t.Skips) == 0 {
		return 0
	}
	return t.Skips[len(t.Skips)-1].Skipped
}

// differing returns the fields whose JSON differs between two values of the same type.
func differing(a, b any) (from, to map[string]any, err error) {
	before, err := fieldsOf(a)
	if err != nil {
		return nil, nil, err
	}
	after, err := fieldsOf(b)
	from, to = map[string]any{}, map[string]any{}
	for name := range after {
		if !bytes.Equal(before[name], after[name]) {
			from[name], to[name] = before[name], after[name]
		}
	}
	return from, to, err
}

// fieldsOf returns the fields of a value's JSON.
func fieldsOf(value any) (o object, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	return o, err
}
