package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A waiter is a record of the topic: a user who claims a coupon. The record's key is the campaign.
type waiter struct {
	User firstcome.UserID `json:"user"`
	// Generation is the one that the gate had when the user claimed. A record that came later than the end of its generation is nobody's.
	Generation int64 `json:"generation"`
}

// waiterRecord returns the record of a user.
func waiterRecord(id firstcome.CampaignID, partition int32, w waiter) *kgo.Record {
	value, err := json.Marshal(w)
	if err != nil {
		panic(err) // it has a text and a number
	}
	return &kgo.Record{Partition: partition, Key: []byte(id), Value: value}
}

// userOf returns whose a record is in the line of a campaign and a generation; empty: nobody's.
func userOf(r *kgo.Record, id firstcome.CampaignID, generation int64) firstcome.UserID {
	var w waiter
	if string(r.Key) != string(id) || json.Unmarshal(r.Value, &w) != nil || w.Generation != generation {
		return ""
	}
	user, err := firstcome.ParseUserID(string(w.User))
	if err != nil { // whoever wrote that was no node
		return ""
	}
	return user
}

// asks bounds how often a claim asks the gate anew because a generation ended meanwhile.
const asks = 3

// Claim decides claims: see gate.Decider. Those that join a line in the topic are appended behind the gate's answer. Where the topic does not take
// them in time they are not decided. Some may be in line all the same: whoever claims again has the earliest of their places.
//
// Why nobody can join is an error only if all would: whoever holds a coupon or comes too late is answered, whatever the topic does.
func (l *Line) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	var decisions []firstcome.Decision
	why := fmt.Errorf("%w: the line of %s ended repeatedly", firstcome.ErrGateUnavailable, id)
	for range asks {
		var err error
		if decisions, err = l.FedGate.Claim(ctx, id, users); err != nil {
			return nil, err
		}
		joins := joining(decisions)
		if joins == nil {
			return decisions, nil
		}
		done, err := l.join(ctx, id, users, decisions, joins)
		if done {
			return decisions, nil
		}
		if err != nil {
			l.alarms.Tell(id, err)
			why = err
			break
		}
	}
	if !slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.Joins == nil }) {
		return nil, why
	}
	undecided(decisions, why)
	return decisions, nil
}

// joining returns the line that some of those who claimed join, or nil.
func joining(decisions []firstcome.Decision) *firstcome.Joins {
	for n := range decisions {
		if joins := decisions[n].Joins; joins != nil {
			return joins
		}
	}
	return nil
}

// join appends those who join the line, and completes their decisions. It returns false if the generation ended meanwhile, and nobody was
// appended. An error says why nobody can join.
func (l *Line) join(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID, decisions []firstcome.Decision, joins *firstcome.Joins) (bool, error) {
	feed, line := *joins.Campaign.Feed, joins.Line
	if err := l.holds(id, feed); err != nil {
		return false, err
	}
	f := l.fed(id, feed)
	if err := f.whyLost(); err != nil {
		return false, err
	}
	if err := f.rests(); err != nil {
		return false, err
	}
	if !line.Begun {
		end, err := l.ends(ctx, f)
		if err != nil {
			f.fails(err)
			return false, err
		}
		if line, err = l.Begin(ctx, id, feed, line.Generation, end); err != nil || line.Generation != joins.Line.Generation || !line.Begun {
			return false, err
		}
	}
	if f.behind(line.Offset(line.Serving())) >= l.options.MaxLine {
		undecided(decisions, firstcome.ErrLineFull)
		return true, nil
	}
	records := make([]*kgo.Record, 0, len(users))
	for n := range decisions {
		if decisions[n].Joins != nil {
			records = append(records, waiterRecord(id, feed.Partition, waiter{users[n], line.Generation}))
		}
	}
	if err := appendAll(ctx, l.connection(), records); err != nil {
		err = away(l.topic.explain(fmt.Errorf("append %d claims of %s to the topic %s: %w", len(records), id, l.topic.name, err)))
		f.fails(err)
		l.alarms.Tell(id, err)
		undecided(decisions, err)
		return true, nil
	}
	for n := range decisions {
		d := &decisions[n]
		if d.Joins == nil {
			continue
		}
		offset := records[0].Offset
		records = records[1:]
		ticket := offset - line.First + 1
		if ticket <= line.ServedThrough {
			return false, lost(id, "a claim has the offset %d of the partition %d of the topic %s, and those before %d are served, so the topic lacks records, or was recreated",
				offset, feed.Partition, l.topic.name, line.Offset(line.Serving()))
		}
		f.reaches(offset + 1)
		d.Place, d.Joins = joins.Campaign.Place(line, ticket, d.InForce, d.At), nil
		d.Place.Proof = l.proofOf(id, users[n], firstcome.Ticket{Generation: line.Generation, Number: ticket})
		d.InLine = f.behind(line.Offset(line.Serving()))
	}
	return true, nil
}

// undecided takes the decisions back of those who would join the line, and says why.
func undecided(decisions []firstcome.Decision, why error) {
	for n := range decisions {
		if decisions[n].Joins != nil {
			decisions[n] = firstcome.Decision{Undecided: why, At: decisions[n].At}
		}
	}
}

// fails keeps others from being appended for a while.
func (f *fed) fails(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest, f.why = time.Now().Add(joinRest), why
}

// rests returns why nobody is appended now, or nil.
func (f *fed) rests() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.rest) {
		return f.why
	}
	return nil
}

// Issue issues past the line: see gate.Decider. The audit log has how many people were in the topic before.
func (l *Line) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if l.known(id) != nil {
		state, err := l.LineOf(ctx, id)
		if err != nil { // the coupons are issued all the same
			l.alarms.Tell(id, fmt.Errorf("nobody can say how many people a direct issue passes: %w", err))
		}
		order.Passed = state.Line.Waiting
	}
	decisions, err := l.FedGate.Issue(ctx, order, id, users)
	for n := range decisions {
		decisions[n].InLine = max(decisions[n].InLine, order.Passed)
	}
	return decisions, err
}

// LineOf returns a campaign's line: see gate.Places. Where the topic keeps it, it counts the topic's records.
func (l *Line) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	state, err := l.FedGate.LineOf(ctx, id)
	if err != nil || state.Campaign.Feed == nil || !state.Line.Begun {
		return state, err
	}
	if err := l.holds(id, *state.Campaign.Feed); err != nil {
		return state, err
	}
	f := l.fed(id, *state.Campaign.Feed)
	if f.behind(0) == 0 {
		if _, err := l.ends(ctx, f); err != nil {
			return state, err
		}
	}
	state.Line = f.complete(state.Line)
	return state, nil
}

// complete returns a line with those who are in line by the topic.
func (f *fed) complete(line firstcome.Line) firstcome.Line {
	line.Waiting = f.behind(line.Offset(line.Serving()))
	line.LastTicket = line.ServedThrough + line.Waiting
	return line
}

// LeaveOf takes a user out of the line: see gate.Fed. All of their records until now are passed over.
func (l *Line) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) error {
	state, err := l.FedGate.LineOf(ctx, id)
	if err != nil {
		return err
	}
	if feed := state.Campaign.Feed; feed != nil && state.Line.Begun && state.Line.Generation == ticket.Generation {
		if err := l.holds(id, *feed); err != nil {
			return err
		}
		end, err := l.ends(ctx, l.fed(id, *feed))
		if err != nil {
			return err
		}
		ticket.Number = max(ticket.Number, end-state.Line.First)
	}
	return l.FedGate.LeaveOf(ctx, id, user, ticket)
}
