package sim

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A script is what happens in a town in which nothing is left to the seed but the order of what no act is about. Without any fault of the weather,
// there are two nodes, and five people, who ask nothing by themselves.
type script []func(t *town)

// scripted makes a town one for a script: everybody waits for one coupon, which a comes to have.
func (t *town) scripted(terms *firstcome.Terms) {
	t.weather, t.durable, t.follows, t.names, t.people, t.unable = weather{calm: true, patient: 1}, false, false, []string{"n1", "n2"}, nil, ""
	for _, name := range []string{"a", "b", "c", "d", owner} {
		p := &person{name: name, ask: t.visit}
		if name == owner {
			p.left, p.ask = 1, t.rebuild
		}
		t.people = append(t.people, p)
	}
	terms.Quantity, terms.Waitlist, terms.Pace = 1, true, &firstcome.Pace{PerSecond: 1000}
	terms.Answer, terms.OpensAt, terms.ClosesAt = firstcome.Recorded, time.Time{}, time.Time{}
	t.ledger.Backlog = 1 // nodes rebuild an emptied server by themselves
}

// holds has what begins so not happen until it is freed.
func holds(what string) func(*town) { return func(t *town) { t.held = append(t.held, what) } }

// frees ends holds.
func frees(what string) func(*town) {
	return func(t *town) { t.held = slices.DeleteFunc(t.held, func(one string) bool { return one == what }) }
}

// until lets things happen until a condition holds.
func until(is func(t *town) bool) func(*town) {
	return func(t *town) {
		for n := 0; !is(t); n++ {
			if n > 5000 {
				t.breach("P5", "the script does not go on")
				return
			}
			t.step()
		}
	}
}

// waitsFor lets things happen until something that begins so could happen, if it is not held.
func waitsFor(what string) func(*town) {
	return until(func(t *town) bool {
		synctest.Wait()
		t.mu.Lock()
		defer t.mu.Unlock()
		return slices.ContainsFunc(t.pending, func(e *event) bool { return strings.HasPrefix(e.name, what) })
	})
}

// passes lets things happen for a while.
func passes(long time.Duration) func(*town) {
	return func(t *town) {
		end := time.Now().Add(long)
		until(func(*town) bool { return time.Now().After(end) })(t)
	}
}

// asksAt has somebody ask something of a node.
func asksAt(name, at string, what func(*town) func(*person, *node)) func(*town) {
	return func(t *town) {
		p := t.people[slices.IndexFunc(t.people, func(p *person) bool { return p.name == name })]
		until(func(t *town) bool { return p.busy == nil && t.nodes[at] != nil && t.nodes[at].ready.Load() })(t)
		what(t)(p, t.nodes[at])
	}
}

func joins(name, at string) func(*town) {
	return asksAt(name, at, func(t *town) func(*person, *node) { return t.claim })
}

func leaves(name, at string) func(*town) {
	return asksAt(name, at, func(t *town) func(*person, *node) { return t.leave })
}

func asksPlace(name, at string) func(*town) {
	return asksAt(name, at, func(t *town) func(*person, *node) { return t.place })
}

// orders has the owner order something of the second node, until that is done.
func orders(what string, do func(context.Context, *operate.Operator) error) func(*town) {
	return func(t *town) {
		asksAt(owner, "n2", func(t *town) func(*person, *node) {
			return func(p *person, n *node) {
				t.change(p, n, what, func(ctx context.Context) (ledger.Status, error) { return ledger.Status{}, do(ctx, n.operator) })
			}
		})(t)
		hears(owner)(t)
		passes(300 * time.Millisecond)(t)
	}
}

// ordersRebuild has the owner order a rebuild of the second node, whatever the gate says, and waits for nothing.
func ordersRebuild(order recovery.Order) func(*town) {
	return asksAt(owner, "n2", func(t *town) func(*person, *node) {
		return func(p *person, n *node) {
			t.change(p, n, "a rebuild", func(ctx context.Context) (ledger.Status, error) {
				_, err := n.operator.Rebuild(ctx, owner, campaign, order)
				return ledger.Status{}, err
			})
		}
	})
}

// sets has the owner set terms.
func sets(what string, edit func(*firstcome.Terms)) func(*town) {
	return orders(what, func(ctx context.Context, o *operate.Operator) error {
		_, err := o.SetTerms(ctx, owner, campaign, 0, edit)
		return err
	})
}

// issues has the owner issue a coupon to somebody, past the line.
func issues(user firstcome.UserID) func(*town) {
	return orders(show("a coupon for", user), func(ctx context.Context, o *operate.Operator) error {
		_, err := o.Issue(ctx, gate.Order{Actor: owner}, campaign, []firstcome.UserID{user})
		return err
	})
}

// voids has the owner void a number.
func voids(number int64) func(*town) {
	return orders(show("number", number, "voided"), func(ctx context.Context, o *operate.Operator) error {
		_, err := o.Void(ctx, owner, campaign, number, "sim")
		return err
	})
}

// hears lets things happen until somebody has an answer.
func hears(name string) func(*town) {
	return until(func(t *town) bool {
		return !slices.ContainsFunc(t.people, func(p *person) bool { return p.name == name && p.busy != nil })
	})
}

// gives has somebody give up what they wait for.
func gives(name string) func(*town) {
	return func(t *town) {
		t.giveUp(t.people[slices.IndexFunc(t.people, func(p *person) bool { return p.name == name })].busy)
	}
}

// forgets has the gate's server lose the campaign, and loses waits then until nodes have recovered it.
func forgets(t *town) {
	t.say("the gate's server loses the campaign")
	t.gate.loses(campaign)
	t.watch()
	t.broken, t.outages = true, t.outages+1
}

func loses(t *town) {
	forgets(t)
	recovers(t)
}

// keeps makes a copy of the gate's keys, and restores puts it back while the server runs.
func keeps(t *town) { t.copy = t.gate.copied() }

func restores(t *town) {
	t.say("older keys are put back at the gate's server")
	t.gate.goesBack(t.copy.copied(), t.gate.run)
	t.watch()
	t.broken, t.outages = true, t.outages+1
}

// rebuilt waits until a rebuild has ended an epoch, and nodes have recovered the gate.
func rebuilt(epoch int64) func(*town) {
	return func(t *town) {
		until(func(t *town) bool { return t.ledger.campaigns[campaign].epoch > epoch })(t)
		recovers(t)
	}
}

// recovers waits until nodes have recovered the gate.
func recovers(t *town) {
	until(func(t *town) bool { return t.stands() == nil && t.ledger.campaigns[campaign].rebuildingAt.IsZero() })(t)
}

// jumps sets the gate's clock.
func jumps(by time.Duration) func(*town) { return func(t *town) { t.jump(by) } }

// away makes the topic stop answering, and answers ends that, a while after all calls under way.
func away(t *town) { t.topic.away = true }

func answers(t *town) { t.topic.away = false }

// remakes recreates the topic.
func remakes(t *town) { t.remakeTopic() }

// saves makes a backup of the ledger.
func saves(t *town) { t.saved = t.ledger.copied() }

// putsBack puts the ledger back to it, with the gate gone, and waits until nodes have recovered that.
func putsBack(t *town) {
	t.putBackTo(true)
	recovers(t)
}
