package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A wire is how a node asks the gate, the journal and the ledger. Each question is an event, and so is its answer: the seed says when
// they arrive, whether they are lost, and what comes in between.
type wire struct {
	*world
	of *node
}

var (
	errLost = errors.New("the connection was lost: nobody knows what became of the question")
	errDead = errors.New("this node is dead")
)

// An answer is what a question gets.
type answer[T any] struct {
	value T
	err   error
}

// asksFor is the key under which a context has the name of the person for whom a node asks.
const asksFor = contextKey("person")

type contextKey string

// ask asks a question. do answers it, at the one who is asked; on no wire it does so at once.
func ask[T any](ctx context.Context, w *wire, whom, what string, do func() (T, error)) (T, error) {
	if w == nil {
		return do()
	}
	var none T
	if w.of.isDead() {
		return none, errDead
	}
	if person, ok := ctx.Value(asksFor).(string); ok {
		what += ", for " + person
	}
	heard := make(chan answer[T], 1)
	if w.stalls(what) {
		w.of.thaws = time.Now().Add(attemptTime + time.Second)
		w.of.frozen.Store(true)
	}
	var held *node // what a frozen node asks leaves it later
	if w.of.frozen.Load() {
		held = w.of
	}
	w.post(held, w.of.name+" asks "+whom+": "+what, func() {
		lost := w.percent(w.lost)
		if lost && w.IntN(3) == 0 {
			w.say("  … and that never arrives")
			heard <- answer[T]{none, errLost}
			return
		}
		if lost && w.IntN(2) == 0 {
			w.say("  … and that is late")
			heard <- answer[T]{none, errLost}
			w.later(w.of.name+" asked "+whom+", and gave up: "+what, func() { _, _ = do() })
			return
		}
		value, err := do()
		said := spell(value, err)
		w.say("  …", said)
		if lost {
			w.say("  … and the answer is lost")
			heard <- answer[T]{none, errLost}
			return
		}
		if w.percent(w.lost) {
			w.later(w.of.name+" asked "+whom+", and that comes again: "+what, func() { _, _ = do() })
		}
		w.post(w.of, whom+" answers "+w.of.name+": "+what+": "+said, func() { heard <- answer[T]{value, err} })
	})
	select {
	case a := <-heard:
		return a.value, a.err
	case <-w.of.cut:
		return none, errDead
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// spell puts an answer into words.
func spell(value any, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	switch v := value.(type) {
	case []firstcome.Decision:
		words := make([]any, len(v))
		for n, d := range v {
			words[n] = spellDecision(d)
		}
		return show(words...)
	case record.Result:
		return show("drained through", v.Through)
	case reading:
		return show(len(v.Coupons), "coupons")
	case gate.Served:
		return show(numbers(v.Coupons), "and", v.Waiting, "wait", v.Ended)
	case stand:
		return show("ticket", v.place.Ticket, "or number", v.held.Number)
	case firstcome.Coupon, ledger.Status, holders, refills, recovery.LedgerState, recovery.GateState, recovery.Adopted, struct{}:
		return "done"
	case []firstcome.Coupon:
		return show(numbers(v))
	case []record.Batch:
		return show(len(v), "batches")
	case recovery.Rebuild:
		return show("attempt", v.Attempt, "in epoch", v.Epoch)
	case recovery.Frozen:
		return show("frozen at version", v.Version)
	case recovery.Refill:
		return show("epoch", v.Epoch, "behind number", v.LastNumber, "up to", v.Ceiling, "and", v.Lost, "lost")
	case recovery.Rebuilt:
		return show("epoch", v.Epoch)
	case recovery.Carried:
		return show(v.People, "wait, and", v.LeftWithCoupon, "were served")
	case seats:
		return v.String()
	case []recordAt:
		return spellRead(v)
	case recovery.LineHistory:
		return show(v.Log.Topic, "from", v.Log.First, "and epochs at", v.Epochs)
	case []firstcome.Change:
		return show(len(v), "changes")
	}
	return fmt.Sprint(value)
}

func spellDecision(d firstcome.Decision) string {
	if d.Outcome.HasCoupon() {
		return fmt.Sprintf("%s:%d", d.Outcome, d.Coupon.Number)
	}
	return d.Outcome.String()
}

// rebuilds is a ledger as a Machine needs it, but for what its recorder asks.
type rebuilds interface {
	Active(ctx context.Context) ([]gate.Revision, error)
	recovery.Ledger
}

// gated is what nodes ask of a gate.
type gated gate.Gate

// remote is a gate at the other end of a wire.
type remote struct {
	gated
	*wire
	rebuilt recovery.Gate
	old     func() *Gate         // what the node reaches instead; nil: the gate
	main    *Gate                // the gate itself
	noted   func() gate.Revision // the campaign, as the node last read it from the ledger
	told    *tells
}

// A tells is what a gate told a node.
type tells struct {
	mu    sync.Mutex // guards what follows
	least gate.Witness
}

// hears notes how far a gate has gone, by an answer that arrived.
func (t *tells) hears(told gate.Witness) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.least.Add(told)
}

// least returns the least that the gate must know by what the node heard of it, by what the node last read from the ledger, and by a revision.
func (r remote) least(rev gate.Revision) gate.Witness {
	r.told.mu.Lock()
	defer r.told.mu.Unlock()
	least, noted := r.told.least, r.noted()
	least.Add(gate.Witness{Epoch: noted.Epoch, Version: noted.Applied, Number: noted.Drained})
	least.Add(gate.Witness{Epoch: rev.Epoch, Version: rev.Applied})
	return least
}

// reached returns the gate that the node reaches now, as a model.
func (r remote) reached() *Gate { return cmp.Or(r.old(), r.main) }

// at returns the gate that the node reaches now, and made the same as a rebuild needs it.
func (r remote) at() gated {
	if old := r.old(); old != nil {
		return old
	}
	return r.gated
}

// decides is ask of what the gate decides in the ledger's epoch only: a node says with the question which one that is.
func decides[T any](ctx context.Context, r remote, what string, do func() (T, error)) (T, error) {
	known, least := r.noted().Epoch, r.least(gate.Revision{})
	var told gate.Witness
	answer, err := ask(ctx, r.wire, "the gate", what, func() (none T, err error) {
		gate := r.reached()
		err = gate.outlived(campaign, known)
		if err == nil {
			err = gate.forgot(campaign, least)
		}
		if err != nil {
			return none, err
		}
		answer, err := do()
		told = gate.knows(campaign)
		return answer, err
	})
	if err == nil {
		r.told.hears(told)
	}
	return answer, err
}

func (r remote) made() recovery.Gate {
	if old := r.old(); old != nil {
		return old
	}
	return r.rebuilt
}

// Claim implements gate.Decider.
func (r remote) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return decides(ctx, r, show("claims by", users), func() ([]firstcome.Decision, error) { return r.at().Claim(ctx, id, users) })
}

// holders are those of a campaign as of a version.
type holders struct {
	users   []firstcome.UserID
	version int64
}

// Holders implements gate.Decider.
func (r remote) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	h, err := ask(ctx, r.wire, "the gate", "who holds a coupon", func() (h holders, err error) {
		h.version, err = r.at().Holders(ctx, id, func(u firstcome.UserID) { h.users = append(h.users, u) })
		return h, err
	})
	for _, u := range h.users {
		each(u)
	}
	return h.version, err
}

// Apply implements gate.Applier.
func (r remote) Apply(ctx context.Context, c firstcome.Change) (bool, error) {
	return decides(ctx, r, show("to apply change", c.Version, c.Kind), func() (bool, error) { return r.at().Apply(ctx, c) })
}

// State implements gate.Counters.
func (r remote) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	return ask(ctx, r.wire, "the gate", "its state", func() (gate.State, error) { return r.at().State(ctx, id) })
}

// CouponOf implements gate.Coupons.
func (r remote) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return decides(ctx, r, show("the coupon of", user), func() (firstcome.Coupon, error) { return r.at().CouponOf(ctx, id, user) })
}

// DrainedThrough implements gate.Progress.
func (r remote) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	return ask(ctx, r.wire, "the gate", "how far it is drained", func() (int64, error) { return r.at().DrainedThrough(ctx, id) })
}

// Has implements gate.Progress.
func (r remote) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	return ask(ctx, r.wire, "the gate", show("whether it has", numbers(coupons)), func() ([]bool, error) { return r.at().Has(ctx, id, coupons) })
}

// Serve implements gate.Line.
func (r remote) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	return decides(ctx, r, "to serve the line", func() (gate.Served, error) { return r.at().Serve(ctx, id, limit) })
}

// Lines implements gate.Line.
func (r remote) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	all, err := ask(ctx, r.wire, "the gate", "where people are in line", func() (all []firstcome.CampaignID, err error) {
		err = r.at().Lines(ctx, func(id firstcome.CampaignID) { all = append(all, id) })
		return all, err
	})
	for _, id := range all {
		each(id)
	}
	return err
}

// A stand is where somebody stands: in line, or with a coupon.
type stand struct {
	place firstcome.Place
	held  firstcome.Coupon
}

// Place implements gate.Places.
func (r remote) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	at, err := decides(ctx, r, show("the place of", user), func() (at stand, err error) {
		at.place, at.held, err = r.at().Place(ctx, id, user)
		return at, err
	})
	return at.place, at.held, err
}

// Leave implements gate.Places.
func (r remote) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	at, err := decides(ctx, r, show("to let", user, "leave"), func() (at stand, err error) {
		at.place, err = r.at().Leave(ctx, id, user)
		return at, err
	})
	return at.place, err
}

// Decides implements gate.Gate.
func (r remote) Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error {
	least := r.least(gate.Revision{})
	return order(ctx, r.wire, "the gate", show("whether epoch", epoch, "decides"), func() error {
		return cmp.Or(r.at().Decides(ctx, id, epoch), r.reached().forgot(id, least))
	})
}

func numbers(coupons []firstcome.Coupon) (all []int64) {
	for _, c := range coupons {
		all = append(all, c.Number)
	}
	return all
}

// WatchDrained implements gate.Progress. Each message to a watcher is an event, too, and may be lost.
func (r remote) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	return r.gated.WatchDrained(ctx, ready, func(id firstcome.CampaignID, through int64) {
		r.post(r.of, show(r.of.name, "hears that number", through, "is drained"), func() {
			if r.old() != nil || r.percent(r.lost) {
				r.say("  … and that is lost")
				return
			}
			each(id, through)
		})
	})
}

// paper is a ledger at the other end of a wire.
type paper struct {
	*Ledger
	*wire
	rebuilds        rebuilds
	operate.Letters // nobody asks for them
	operate.Reads
	gate.Retired // nor for campaigns that are over, but for what follows
}

// Record implements record.Keeper.
func (p paper) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	return ask(ctx, p.wire, "the ledger", show("to record", numbers(b.Coupons)), func() (record.Result, error) { return p.Ledger.Record(ctx, b) })
}

// Bury implements record.Keeper.
func (p paper) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	return ask(ctx, p.wire, "the ledger", show("to bury", numbers(b.Coupons), "because of", cause), func() (record.Result, error) { return p.Ledger.Bury(ctx, b, cause) })
}

// Has implements gate.Kept.
func (p paper) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	return ask(ctx, p.wire, "the ledger", show("whether it has", numbers(coupons)), func() ([]bool, error) { return p.Ledger.Has(ctx, id, coupons) })
}

// StateRetired implements gate.Retired: no campaign is.
func (paper) StateRetired(context.Context, firstcome.CampaignID) (gate.State, error) {
	return gate.State{}, gate.ErrGone
}

// LoseLine implements gate.Kept.
func (p paper) LoseLine(ctx context.Context, id firstcome.CampaignID) error {
	_, err := ask(ctx, p.wire, "the ledger", "to end the line as lost", func() (struct{}, error) { return struct{}{}, p.Ledger.LoseLine(ctx, id) })
	return err
}

// CouponOf and Holders are gate.Retired's.
func (p paper) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	return p.Retired.CouponOf(ctx, id, user)
}

// LogDirect implements gate.Kept: nobody reads the audit log.
func (paper) LogDirect(context.Context, gate.Order, firstcome.CampaignID, []firstcome.Decision) error {
	return nil
}

// Pending implements gate.ChangeBook.
func (p paper) Pending(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Change, error) {
	return ask(ctx, p.wire, "the ledger", "which changes wait", func() ([]firstcome.Change, error) { return p.Ledger.Pending(ctx, id) })
}

// Applied implements gate.ChangeBook.
func (p paper) Applied(ctx context.Context, c firstcome.Change, refused bool) error {
	_, err := ask(ctx, p.wire, "the ledger", show("to note change", c.Version), func() (struct{}, error) { return struct{}{}, p.Ledger.Applied(ctx, c, refused) })
	return err
}

// Refusal implements gate.ChangeLog.
func (p paper) Refusal(ctx context.Context, id firstcome.CampaignID, version int64) (error, error) {
	return ask(ctx, p.wire, "the ledger", show("whether change", version, "was refused"), func() (error, error) { return p.Ledger.Refusal(ctx, id, version) })
}

// Campaign is operate.Ledger's.
func (p paper) Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error) {
	return ask(ctx, p.wire, "the ledger", "the campaign", func() (ledger.Status, error) { return p.Ledger.Campaign(ctx, id) })
}

// SetTerms is operate.Ledger's. As the ledger's changes do, it goes on when ctx ends.
func (p paper) SetTerms(ctx context.Context, actor string, id firstcome.CampaignID, version int64, edit func(*firstcome.Terms)) (int64, error) {
	ctx = context.WithoutCancel(ctx)
	return ask(ctx, p.wire, "the ledger", "to change the terms", func() (int64, error) { return p.Ledger.SetTerms(ctx, actor, id, version, edit) })
}

// ChangeState is operate.Ledger's.
func (p paper) ChangeState(ctx context.Context, actor string, id firstcome.CampaignID, version int64, to firstcome.ChangeKind) (int64, error) {
	ctx = context.WithoutCancel(ctx)
	return ask(ctx, p.wire, "the ledger", show("to", to), func() (int64, error) { return p.Ledger.ChangeState(ctx, actor, id, version, to) })
}

// Void is operate.Ledger's.
func (p paper) Void(ctx context.Context, actor string, id firstcome.CampaignID, number int64, reason string) (firstcome.Coupon, error) {
	ctx = context.WithoutCancel(ctx)
	return ask(ctx, p.wire, "the ledger", show("to void number", number), func() (firstcome.Coupon, error) { return p.Ledger.Void(ctx, actor, id, number, reason) })
}

// MayIssue is operate.Campaigns's. No campaign has imported codes here.
func (paper) MayIssue(context.Context, firstcome.CampaignID) error { return nil }
