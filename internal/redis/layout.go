package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome"
)

// layout is the newest layout of the gate's keys that this firstcome knows. A release whose keys earlier ones
// would misread has a higher layout; the scripts have the same number. See docs/adr/0014.
//
// Two places say which one is written. layoutKey is raised first, and keeps older programs
// from starting and from making campaigns. The field layout of a campaign's hash is raised by the
// script that first writes that campaign's keys so. Every script and every reading compares it,
// so that a program which runs already stops at that very instant, campaign by campaign.
const layout = 1

// knows tells whether this firstcome knows a layout; none at all is the first.
func knows(of string) bool {
	n, err := strconv.Atoi(of)
	return of == "" || err == nil && n <= layout
}

// A newerError says that keys have a layout that this firstcome does not know.
type newerError struct{ layout string }

func (e newerError) Error() string {
	return fmt.Sprintf("a newer firstcome writes the gate's keys in this Redis, in the layout %q, and this one knows none above %d: run the newer firstcome on this node too", e.layout, layout)
}

// newer is the error of a campaign whose keys have a layout that this firstcome does not know.
func newer(of string) error {
	return fmt.Errorf("%w: %w", firstcome.ErrGateMismatch, newerError{of})
}

// openLayout refuses a Redis with a layout that this firstcome does not know. It sets
// this layout in one that has none yet.
func (g *Gate) openLayout(ctx context.Context) error {
	of, err := g.once(ctx, layoutKey, strconv.Itoa(layout))
	if err == nil && !knows(of) {
		err = newerError{of}
	}
	return err
}

// checkLayout returns firstcome.ErrGateMismatch if campaigns of this Redis may have a layout
// that this firstcome does not know.
func (g *Gate) checkLayout(ctx context.Context) error {
	of, err := g.text(ctx, layoutKey)
	if err == nil && !knows(of) {
		err = newer(of)
	}
	return err
}
