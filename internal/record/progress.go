package record

import (
	"time"

	"github.com/firstcome/firstcome"
)

// A campaignState is a Recorder's state of a campaign. Only the worker that has the campaign uses it.
type campaignState struct {
	lettersKnownThrough int64     // a number up to which the gate certainly knows all dead letters
	missing             time.Time // since when numbers below recorded numbers have been missing; zero if none are
	hole                HoleError // why numbers must be recorded from the gate's holders; empty if they need not be
	filled              time.Time // when numbers last were recorded from the gate's holders
	last                mark      // of the last batch that was acknowledged
	again               int       // how often it came again since
}

// A mark distinguishes a batch from the next. garbage is the source of the first entry that cannot be read.
type mark struct {
	epoch, first int64
	coupons      int
	garbage      string
	line         firstcome.Line
}

// tries is how often a source may return a batch again that was acknowledged. A topic may have the same coupons in several records.
const tries = 3

// advances returns errStuck if the acknowledged batch is the last one again, for the tries-th time.
func (c *campaignState) advances(b Batch) error {
	this := mark{epoch: b.Epoch, coupons: len(b.Coupons), line: b.Line.Line}
	if len(b.Coupons) > 0 {
		this.first = b.Coupons[0].Number
	}
	if len(b.Garbage) > 0 {
		this.garbage = b.Garbage[0].Source
	}
	switch {
	case len(b.Coupons)+len(b.Garbage) == 0 && b.Line.Empty(): // it only tells the gate how far the campaign is drained
	case this != c.last:
		c.last, c.again = this, 0
	default:
		c.again++
	}
	if c.again >= tries {
		return errStuck
	}
	return nil
}

// follow notes that coupons from the number first on were recorded, and that all numbers up to through are drained. Numbers in between may be with
// another recorder, or come later. If they do not come within the patience, they count as missing. This finds a hole even in a journal that is never
// empty.
func (c *campaignState) follow(first, through int64, patience time.Duration) {
	switch {
	case through >= first-1:
		c.missing = time.Time{}
	case c.missing.IsZero():
		c.missing = time.Now()
	case time.Since(c.missing) > patience:
		c.lacks(errGap)
	}
}

// lacks notes that numbers are missing, unless such numbers were recorded from the gate's holders within refillEvery.
func (c *campaignState) lacks(why HoleError) {
	if c.hole == "" && time.Since(c.filled) > refillEvery {
		c.hole = why
	}
}
