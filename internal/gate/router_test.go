package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// A plight is the state of a campaign at a gate, in the ledger and in recovery. It notes which of them is called.
type plight struct {
	fails   error // of each call of the gate
	retired bool
	closed  bool
	refusal error
	asked   []string
}

func (p *plight) note(what string) { p.asked = append(p.asked, what) }

// far is the gate of a plight.
type far struct {
	gate.Gate
	*plight
}

func (f far) call() error {
	f.note("gate")
	return f.fails
}

func (f far) Claim(context.Context, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error) {
	return nil, f.call()
}

func (f far) Issue(context.Context, gate.Order, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error) {
	return []firstcome.Decision{{Outcome: firstcome.Issued}}, f.call()
}

func (f far) Holders(context.Context, firstcome.CampaignID, func(firstcome.UserID)) (int64, error) {
	return 0, f.call()
}

func (f far) Serve(context.Context, firstcome.CampaignID, int) (gate.Served, error) {
	return gate.Served{}, f.call()
}

func (f far) Place(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	return firstcome.Place{}, firstcome.Coupon{}, f.call()
}

func (f far) Leave(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Place, error) {
	return firstcome.Place{}, f.call()
}

func (f far) Stays(context.Context, firstcome.CampaignID, firstcome.UserID) ([]gate.Stay, error) {
	return nil, f.call()
}

func (f far) Decides(context.Context, firstcome.CampaignID, int64) error { return f.call() }

func (f far) LineOf(context.Context, firstcome.CampaignID) (gate.LineState, error) {
	return gate.LineState{}, f.call()
}

func (f far) CouponOf(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Coupon, error) {
	return firstcome.Coupon{}, f.call()
}

func (f far) Apply(context.Context, firstcome.Change) (bool, error) { return false, f.call() }

func (f far) State(context.Context, firstcome.CampaignID) (gate.State, error) {
	return gate.State{}, f.call()
}

func (f far) DrainedThrough(context.Context, firstcome.CampaignID) (int64, error) {
	return 0, f.call()
}

func (f far) Has(_ context.Context, _ firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	return make([]bool, len(coupons)), f.call()
}

// near is the ledger of a plight.
type near struct {
	gate.Retired
	gate.Ledger
	*plight
}

func (n near) ClaimRetired(context.Context, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error) {
	n.note("claim")
	return nil, nil
}

func (n near) StateRetired(context.Context, firstcome.CampaignID) (gate.State, error) {
	n.note("retired?")
	if n.retired {
		return gate.State{}, nil
	}
	return gate.State{}, gate.ErrGone
}

func (n near) Holders(context.Context, firstcome.CampaignID, func(firstcome.UserID)) (int64, error) {
	n.note("holders")
	return 0, nil
}

func (n near) CouponOf(context.Context, firstcome.CampaignID, firstcome.UserID) (firstcome.Coupon, error) {
	n.note("coupon")
	return firstcome.Coupon{}, nil
}

func (n near) LineOf(context.Context, firstcome.CampaignID) (gate.LineState, error) {
	n.note("line")
	return gate.LineState{View: firstcome.View{Campaign: firstcome.Campaign{Closed: n.closed}}}, nil
}

func (n near) Has(_ context.Context, _ firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	n.note("has")
	return make([]bool, len(coupons)), nil
}

func (n near) LoseLine(context.Context, firstcome.CampaignID) error {
	n.note("lose")
	return nil
}

func (n near) LogDirect(context.Context, gate.Order, firstcome.CampaignID, []firstcome.Decision) error {
	n.note("log")
	return nil
}

// Refusal implements gate.Watch.
func (p *plight) Refusal(firstcome.CampaignID) error { return p.refusal }

// Suspect implements gate.Watch.
func (p *plight) Suspect(firstcome.CampaignID, error) { p.note("suspect") }

// A call is a call of a Router, and the calls that the Router makes for it.
type call struct {
	do                    func(ctx context.Context, r *gate.Router) error
	stops                 string // at which refusals: all, stale, or none
	fine, retired, closed string // who is asked: if all is well, and behind gate and ledger if the campaign is retired, or closed and lost
}

const one firstcome.CampaignID = "c"

// calls has all calls of a Router.
var calls = map[string]call{
	"Claim": {stops: "all", retired: " claim", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Claim(ctx, one, nil))
	}},
	"Issue": {stops: "all", fine: " log", retired: " claim", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Issue(ctx, gate.Order{}, one, nil))
	}},
	"Serve": {stops: "all", do: func(ctx context.Context, r *gate.Router) error { return stage.Err(r.Serve(ctx, one, 1)) }},
	"Place": {stops: "all", retired: " coupon", do: func(ctx context.Context, r *gate.Router) error {
		_, _, err := r.Place(ctx, one, "u")
		return err
	}},
	"LineOf": {stops: "all", retired: " line", closed: " line", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.LineOf(ctx, one))
	}},
	"Decides": {stops: "all", do: func(ctx context.Context, r *gate.Router) error { return r.Decides(ctx, one, 1) }},
	"Apply": {stops: "all", closed: " lose", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Apply(ctx, firstcome.Change{Campaign: one, Kind: firstcome.ChangeClose}))
	}},
	"Stays": {stops: "all", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Stays(ctx, one, "u"))
	}},
	"Leave": {stops: "stale", retired: " coupon", do: func(ctx context.Context, r *gate.Router) error {
		if err := stage.Err(r.Leave(ctx, one, "u")); !errors.Is(err, firstcome.ErrServed) {
			return err
		}
		return nil
	}},
	"CouponOf": {stops: "stale", retired: " coupon", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.CouponOf(ctx, one, "u"))
	}},
	"Holders": {stops: "none", retired: " holders", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Holders(ctx, one, nil))
	}},
	"State": {stops: "none", retired: " retired?", do: func(ctx context.Context, r *gate.Router) error { return stage.Err(r.State(ctx, one)) }},
	"DrainedThrough": {stops: "none", retired: " retired?", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.DrainedThrough(ctx, one))
	}},
	"Has": {stops: "none", fine: " has", retired: " has", do: func(ctx context.Context, r *gate.Router) error {
		return stage.Err(r.Has(ctx, one, make([]firstcome.Coupon, 1)))
	}},
}

// TestEachCallGoesToTheGateOrToTheLedger makes each call of a Router in each plight of a campaign, and compares the calls that the Router makes, the
// trouble that it reports, and its result.
func TestEachCallGoesToTheGateOrToTheLedger(t *testing.T) {
	stale, rolledBack, away := &gate.StaleEpochError{}, &gate.LedgerRolledBackError{}, errors.New("away")
	elsewhere := fmt.Errorf("%w: %w", gate.ErrGone, firstcome.ErrGateMismatch)
	for what, c := range map[string]struct {
		plight
		asked func(call) string
		err   error
	}{
		"all is well":                         {asked: func(c call) string { return "gate" + c.fine }},
		"its gate has forgotten it":           {plight{fails: gate.ErrRetired, retired: true}, func(c call) string { return "gate retired?" + c.retired }, nil},
		"it is retired, and the gate is lost": {plight{fails: gate.ErrGone, retired: true}, func(c call) string { return "gate retired?" + c.retired }, nil},
		"the gate alone says it is over":      {plight{fails: gate.ErrRetired}, func(call) string { return "gate retired?" }, gate.ErrRetired},
		"it is closed, and the gate is lost":  {plight{fails: gate.ErrGone, closed: true}, func(c call) string { return "gate retired? suspect" + c.closed }, gate.ErrGone},
		"another gate decides it":             {plight{fails: elsewhere}, func(c call) string { return "gate retired?" + c.closed }, gate.ErrGone},
		"the gate is not verified":            {plight{fails: gate.ErrUnverified}, func(call) string { return "gate suspect" }, gate.ErrUnverified},
		"the gate is in a stale epoch":        {plight{fails: stale}, func(call) string { return "gate suspect" }, gate.ErrStaleEpoch},
		"the gate is away":                    {plight{fails: away}, func(call) string { return "gate" }, away},
		"the ledger is older": {plight{refusal: rolledBack}, func(c call) string {
			return map[bool]string{true: "", false: "gate" + c.fine}[c.stops == "all"]
		}, gate.ErrLedgerRolledBack},
		"the gate is known to be in a stale epoch": {plight{refusal: stale}, func(c call) string {
			return map[bool]string{true: "gate" + c.fine, false: ""}[c.stops == "none"]
		}, gate.ErrStaleEpoch},
	} {
		for name, call := range calls {
			p := c.plight
			err := call.do(t.Context(), &gate.Router{Gate: far{plight: &p}, Retired: near{plight: &p}, Ledger: near{plight: &p}, Watch: &p})
			about := name + ", if " + what
			stage.Same(t, "who is asked by "+about, c.asked(call), strings.Join(p.asked, " "))
			want := c.err
			if p.refusal != nil && len(p.asked) > 0 || name == "LineOf" && p.closed {
				want = nil // it went to the gate all the same; the ledger knows how the line ended
			}
			if name == "Decides" && p.retired {
				want = gate.ErrRetired // the ledger answers for it, and decides nothing
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %v", about, err)
			}
		}
	}
}
