package client

import (
	"context"
	"net/http"
	"strconv"
)

// A LetterFilter chooses dead letters. The zero value chooses all open ones.
type LetterFilter struct {
	Campaign string
	Resolved bool   // also those that were replayed or voided
	After    string // the Next of the page before
	Limit    int    // at most so many; 0: 100
}

// DeadLetters returns the chosen dead letters in the order in which they came.
func (c *Client) DeadLetters(ctx context.Context, f LetterFilter) (List[DeadLetter], error) {
	q := query("campaign", f.Campaign, "resolved", include(f.Resolved), "after", f.After, "limit", number(f.Limit))
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

func (c *Client) resolve(ctx context.Context, letter int64, how string, body any) (DeadLetter, error) {
	path := "/v1/dead-letters/" + strconv.FormatInt(letter, 10) + "/" + how
	return ask[DeadLetter](ctx, c, request{method: http.MethodPost, path: path, body: body})
}
