package client

import (
	"context"
	"net/http"
	"strconv"
)

// A LetterFilter chooses dead letters. The zero value chooses all open ones.
type LetterFilter struct {
	Campaign string
	Cause    string // those of this cause code
	Resolved bool   // also those that were replayed or voided
	After    string // the Next of the page before
	Limit    int    // at most so many; 0: 100
}

// DeadLetters returns the chosen dead letters in the order in which they came.
func (c *Client) DeadLetters(ctx context.Context, f LetterFilter) (List[DeadLetter], error) {
	q := query("campaign", f.Campaign, "cause", f.Cause, "resolved", include(f.Resolved), "after", f.After, "limit", number(f.Limit))
	return ask[List[DeadLetter]](ctx, c, request{method: http.MethodGet, path: "/v1/dead-letters", query: q})
}

// ReplayDeadLetter records the coupon of a dead letter. Statuses of a Problem: 404,
// there is no such letter; 409, the ledger refuses it as before, or it was replayed or
// voided before.
func (c *Client) ReplayDeadLetter(ctx context.Context, letter int64) (DeadLetter, error) {
	return c.resolve(ctx, letter, "replay", nil)
}

// VoidDeadLetter resolves a dead letter for good: its stock returns, and its number is
// never given again. Statuses of a Problem: 404, there is no such letter; 409, it was
// replayed or voided before.
func (c *Client) VoidDeadLetter(ctx context.Context, letter int64, reason string) (DeadLetter, error) {
	return c.resolve(ctx, letter, "void", map[string]string{"reason": reason})
}

// A DeadLetterCause counts the open dead letters of one campaign and cause.
type DeadLetterCause struct {
	CampaignID string `json:"campaign_id"`
	CauseCode  string `json:"cause_code"`
	Open       int64  `json:"open"`
	Through    int64  `json:"through"` // the highest id of them
}

// DeadLetterCauses returns which campaigns and causes have open dead letters; of one campaign if it is not empty.
func (c *Client) DeadLetterCauses(ctx context.Context, campaign string) (List[DeadLetterCause], error) {
	return ask[List[DeadLetterCause]](ctx, c, request{method: http.MethodGet, path: "/v1/dead-letters/causes", query: query("campaign", campaign)})
}

// LetterChoice chooses open dead letters to resolve: those of a campaign and a cause with ids above After, up to Through.
type LetterChoice struct {
	CampaignID string `json:"campaign_id"`
	CauseCode  string `json:"cause_code"`
	Through    int64  `json:"through"`         // the highest id that was seen: later letters are left alone
	After      int64  `json:"after,omitempty"` // the Next of the answer before
}

// ResolvedLetters is what became of dead letters that one call was to resolve: those up to Next were tried. Each letter is resolved or
// open, and never in between.
type ResolvedLetters struct {
	Done      int     `json:"done"`      // letters that were replayed or voided
	Refused   []int64 `json:"refused"`   // ids of letters that the ledger refuses as before: they stay open
	Remaining int64   `json:"remaining"` // open letters that were not tried
	Next      *int64  `json:"next"`      // the After of the next call, or nil if none remains
	Stopped   *string `json:"stopped"`   // why it ended early, or nil if it did not
}

// ReplayDeadLetters replays at most 200 of the chosen letters, the oldest first. Calling it again is safe.
func (c *Client) ReplayDeadLetters(ctx context.Context, of LetterChoice) (ResolvedLetters, error) {
	return ask[ResolvedLetters](ctx, c, request{method: http.MethodPost, path: "/v1/dead-letters/replay", body: of})
}

// VoidDeadLetters voids at most 200 of the chosen letters, the oldest first. Calling it again is safe.
func (c *Client) VoidDeadLetters(ctx context.Context, of LetterChoice, reason string) (ResolvedLetters, error) {
	body := struct {
		LetterChoice
		Reason string `json:"reason"`
	}{of, reason}
	return ask[ResolvedLetters](ctx, c, request{method: http.MethodPost, path: "/v1/dead-letters/void", body: body})
}

func (c *Client) resolve(ctx context.Context, letter int64, how string, body any) (DeadLetter, error) {
	path := "/v1/dead-letters/" + strconv.FormatInt(letter, 10) + "/" + how
	return ask[DeadLetter](ctx, c, request{method: http.MethodPost, path: path, body: body})
}
