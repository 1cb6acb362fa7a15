package client

import (
	"context"
	"net/http"
	"strconv"
)

// An Operator has the calls for operators of firstcome: to recover a gate or a ledger, to audit a campaign, and to resolve dead letters. A shop needs
// none of them.
type Operator struct{ client *Client }

// Operator returns the calls for operators. They need a key with the role operator or admin.
func (c *Client) Operator() Operator { return Operator{c} }

// Rebuild rebuilds the campaign's gate from the ledger. Statuses of a Problem: 409, the ledger decides the campaign, or it is retired.
func (o Operator) Rebuild(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, o.client, request{method: http.MethodPost, path: campaignPath(id, "rebuild")})
}

// RebuildIfLost rebuilds a gate that has lost the campaign. If a node was faster, it returns that node's result.
func (o Operator) RebuildIfLost(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, o.client, request{method: http.MethodPost, path: campaignPath(id, "rebuild"), query: query("if_lost", "1")})
}

// RebuildWithoutLineLog rebuilds without reading the log of the campaign's line, if Kafka has lost it or does not come back. The line that the gate
// still has is carried over and logged again; places that only the log has are lost.
func (o Operator) RebuildWithoutLineLog(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, o.client, request{method: http.MethodPost, path: campaignPath(id, "rebuild"), query: query("without_line_log", "1")})
}

// Reconcile copies into a ledger that was restored from a backup what only the campaign's gate has. Statuses of a Problem: 409, the ledger is not
// older than the gate, or it decides the campaign.
func (o Operator) Reconcile(ctx context.Context, id string) (Reconciled, error) {
	return ask[Reconciled](ctx, o.client, request{method: http.MethodPost, path: campaignPath(id, "reconcile")})
}

// Estimate returns the expected result of Reconcile, and changes nothing. Statuses of a Problem are those of Reconcile.
func (o Operator) Estimate(ctx context.Context, id string) (Estimate, error) {
	return ask[Estimate](ctx, o.client, request{method: http.MethodGet, path: campaignPath(id, "reconcile")})
}

// Changes returns at most limit changes of a campaign (0 means 100) with versions above after, in order.
func (o Operator) Changes(ctx context.Context, id string, after int64, limit int) (List[Change], error) {
	q := query("after", strconv.FormatInt(after, 10), "limit", number(limit))
	return ask[List[Change]](ctx, o.client, request{method: http.MethodGet, path: campaignPath(id, "changes"), query: q})
}

// LedgerState returns a campaign's state in the ledger.
func (o Operator) LedgerState(ctx context.Context, id string) (LedgerState, error) {
	return ask[LedgerState](ctx, o.client, request{method: http.MethodGet, path: campaignPath(id, "ledger")})
}

// Audit makes the server audit a campaign, which may take minutes. A Problem with the code audit_running means that the node is already auditing, and
// when to ask again.
func (o Operator) Audit(ctx context.Context, id string) (Audit, error) {
	return ask[Audit](ctx, o.client, request{method: http.MethodGet, path: campaignPath(id, "audit")})
}

// A LogFilter selects lines of the audit log. The zero value of a field selects all.
type LogFilter struct {
	Campaign string
	User     string
	Before   string // the Next of the page before
	Limit    int    // at most this many; 0: 100
}

// AuditLog returns the selected lines of the audit log, latest first.
func (o Operator) AuditLog(ctx context.Context, f LogFilter) (List[LogEntry], error) {
	q := query("campaign", f.Campaign, "user_id", f.User, "before", f.Before, "limit", number(f.Limit))
	return ask[List[LogEntry]](ctx, o.client, request{method: http.MethodGet, path: "/v1/audit-log", query: q})
}

// A LetterFilter selects dead letters. The zero value selects all open ones.
type LetterFilter struct {
	Campaign string
	Cause    string // only letters with this cause code
	Resolved bool   // also those that were replayed or voided
	After    string // the Next of the page before
	Limit    int    // the most to return; 0 means 100
}

// DeadLetters returns the selected dead letters in the order in which they were created.
func (o Operator) DeadLetters(ctx context.Context, f LetterFilter) (List[DeadLetter], error) {
	q := query("campaign", f.Campaign, "cause", f.Cause, "resolved", include(f.Resolved), "after", f.After, "limit", number(f.Limit))
	return ask[List[DeadLetter]](ctx, o.client, request{method: http.MethodGet, path: "/v1/dead-letters", query: q})
}

// ReplayDeadLetter records the coupon of a dead letter. Statuses of a Problem: 404, there is no such letter; 409, the ledger refuses it as before, or
// it was already replayed or voided.
func (o Operator) ReplayDeadLetter(ctx context.Context, letter int64) (DeadLetter, error) {
	return o.resolve(ctx, letter, "replay", nil)
}

// VoidDeadLetter resolves a dead letter permanently: its stock returns, and its number is never issued again. Statuses of a Problem: 404, there is no
// such letter; 409, it was already replayed or voided.
func (o Operator) VoidDeadLetter(ctx context.Context, letter int64, reason string) (DeadLetter, error) {
	return o.resolve(ctx, letter, "void", map[string]string{"reason": reason})
}

// A DeadLetterCause counts the open dead letters of one campaign and cause.
type DeadLetterCause struct {
	CampaignID string `json:"campaign_id"`
	CauseCode  string `json:"cause_code"`
	Open       int64  `json:"open"`
	Through    int64  `json:"through"` // the highest id among them
}

// DeadLetterCauses returns the campaigns and causes that have open dead letters, or only those of campaign if that is not empty.
func (o Operator) DeadLetterCauses(ctx context.Context, campaign string) (List[DeadLetterCause], error) {
	return ask[List[DeadLetterCause]](ctx, o.client, request{method: http.MethodGet, path: "/v1/dead-letters/causes", query: query("campaign", campaign)})
}

// LetterChoice selects open dead letters to resolve: those of a campaign and a cause with ids above After and up to Through.
type LetterChoice struct {
	CampaignID string `json:"campaign_id"`
	CauseCode  string `json:"cause_code"`
	Through    int64  `json:"through"`         // the highest id that the operator has seen: later letters are not resolved
	After      int64  `json:"after,omitempty"` // the Next of the previous answer
}

// ResolvedLetters is the result of a call that resolves dead letters: those up to Next were tried. Each letter is either resolved or open.
type ResolvedLetters struct {
	Done      int     `json:"done"`      // letters that were replayed or voided by this call
	Refused   []int64 `json:"refused"`   // ids of letters that the ledger refuses as before: they stay open
	Remaining int64   `json:"remaining"` // open letters that were not tried yet
	Next      *int64  `json:"next"`      // the After of the next call, or nil if none remains
	Stopped   *string `json:"stopped"`   // why the call ended early, or nil
}

// ReplayDeadLetters replays at most 200 of the selected letters, oldest first. It may be repeated.
func (o Operator) ReplayDeadLetters(ctx context.Context, of LetterChoice) (ResolvedLetters, error) {
	return ask[ResolvedLetters](ctx, o.client, request{method: http.MethodPost, path: "/v1/dead-letters/replay", body: of})
}

// VoidDeadLetters voids at most 200 of the selected letters, oldest first. It may be repeated.
func (o Operator) VoidDeadLetters(ctx context.Context, of LetterChoice, reason string) (ResolvedLetters, error) {
	body := struct {
		LetterChoice
		Reason string `json:"reason"`
	}{of, reason}
	return ask[ResolvedLetters](ctx, o.client, request{method: http.MethodPost, path: "/v1/dead-letters/void", body: body})
}

func (o Operator) resolve(ctx context.Context, letter int64, how string, body any) (DeadLetter, error) {
	path := "/v1/dead-letters/" + strconv.FormatInt(letter, 10) + "/" + how
	return ask[DeadLetter](ctx, o.client, request{method: http.MethodPost, path: path, body: body})
}
