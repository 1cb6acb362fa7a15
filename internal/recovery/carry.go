package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/point"
)

// begin begins an attempt at a rebuild. If the line's log must be read and cannot be, it begins none: nothing gets frozen, and no attempt blocks an
// operator who orders a rebuild without the log.
func (m *Machine) begin(ctx context.Context, actor string, id firstcome.CampaignID, epoch int64, withoutLog bool) (begun Rebuild, err error) {
	if !withoutLog {
		history, err := m.ledger.LineHistory(ctx, id)
		if err == nil && history.Log != nil {
			_, err = m.endOf(ctx, id, history)
		}
		if err != nil {
			return begun, err
		}
	}
	begun, err = m.ledger.BeginRebuild(ctx, actor, id, epoch)
	begun.WithoutLog = withoutLog
	return begun, err
}

// errNoLog means that a campaign's line has a log that this node is not configured to read.
var errNoLog = fmt.Errorf("%w: start each node with the same --line", firstcome.ErrLineLogAway)

// endOf returns the offset at which the log ends. A log that ends before an epoch begins has lost records.
func (m *Machine) endOf(ctx context.Context, id firstcome.CampaignID, history LineHistory) (end int64, err error) {
	if m.Log == nil {
		return 0, errNoLog
	}
	if end, err = m.Log.End(ctx, id, *history.Log); err != nil {
		return 0, err
	}
	for epoch, begin := range history.Epochs {
		if begin > end {
			return 0, fmt.Errorf("%w: it ends at offset %d, and epoch %d begins at %d: firstcome gate rebuild %s --without-line-log takes the line from the gate's remaining keys",
				firstcome.ErrLineLogGone, end, epoch, begin, id)
		}
	}
	return end, nil
}

// read reads the log of the line to its end. The log then has every place of the frozen gate that a user was told. It reads the line's history again,
// because a reconcile may just have taught the ledger that there is a log.
func (a *attempt) read(ctx context.Context) error {
	history, err := a.ledger.LineHistory(ctx, a.Campaign)
	if err != nil || (history.Log == nil) == (a.logged == nil) && a.moved > 0 {
		return err // a reload reads the log again only if the line got one since
	}
	if history.Log == nil || a.WithoutLog {
		a.logged = history.Log
		return nil
	}
	end, err := a.endOf(ctx, a.Campaign, history)
	if err != nil {
		return err
	}
	a.folded, err = foldAll(a.CampaignUID, history, func(each func(int64, line.Record) error) error {
		return a.Log.Read(ctx, a.Campaign, *history.Log, end, each)
	})
	if err != nil {
		return err
	}
	history.Log.First = end
	a.logged = history.Log
	if a.folded.Latest.After(a.frozen.DecidedAt) { // the gate's time must not go back
		a.frozen.DecidedAt = a.folded.Latest
	}
	point.Reach(point.Folded)
	return nil
}

// foldAll folds the records that read passes to its callback.
func foldAll(uid string, history LineHistory, read func(each func(int64, line.Record) error) error) (*Folded, error) {
	var failed error
	folded := Fold(uid, history, func(yield func(int64, line.Record) bool) {
		failed = read(func(offset int64, r line.Record) error {
			yield(offset, r)
			return nil
		})
	})
	return folded, failed
}

// carry fills the line of the new keys with the people who are still in line: as the log has them, if the line has one, or as the frozen gate has
// them.
func (a *attempt) carry(ctx context.Context) (err error) {
	switch {
	case a.folded != nil:
		err = a.seat(ctx)
	case a.frozen.Line.Generation > a.loaded.Ended: // otherwise the gate has an old state: the ledger knows that this generation ended
		a.loaded.Carried, err = a.gate.Carry(ctx, a.Rebuild, max(a.frozen.Line.Generation, a.loaded.Mark.Generation)+1)
	}
	if err == nil && a.WithoutLog && a.logged != nil {
		err = a.logAnew(ctx)
	}
	if err != nil {
		return err
	}
	point.Reach(point.Loaded)
	return nil
}

// seat fills the line of the new keys with the people who are in line by the log.
func (a *attempt) seat(ctx context.Context) error {
	people, last, passed := a.folded.People(a.loaded.Ended)
	generation := max(a.frozen.Line.Generation, a.loaded.Mark.Generation, a.folded.Generation) + 1
	a.loaded.Carried = Carried{Generation: generation, Last: last, People: int64(len(people)), LeftWithCoupon: passed}
	if len(people) > 0 {
		a.loaded.First = people[0].Ticket
	}
	a.loaded.Log, a.loaded.LogEpoch = a.logged, a.folded.Epoch
	return a.gate.Seat(ctx, a.Rebuild, generation, people)
}

// logAnew appends the people who were carried over from the frozen gate to the log that the line now gets. If Kafka does not answer, they stay in
// line all the same, and each place is appended before its user is told it again; the offset at which the epoch begins is then unknown.
//
// But a log that is lost never returns. Its successor begins even while the topic takes no records yet, as a topic that was just recreated.
func (a *attempt) logAnew(ctx context.Context) error {
	a.loaded.Carried.Generation = max(a.frozen.Line.Generation, a.loaded.Mark.Generation) + 1
	a.loaded.Log = &firstcome.LineLog{Topic: a.logged.Topic, Partition: a.logged.Partition, First: unknownOffset}
	if a.Log == nil {
		return nil
	}
	log, err := a.Log.LogLocation(ctx, a.Campaign)
	if err == nil {
		_, before := a.Log.End(ctx, a.Campaign, *a.logged)
		if err = a.append(ctx, log); errors.Is(err, firstcome.ErrLineLogAway) && errors.Is(before, firstcome.ErrLineLogGone) {
			err = nil
		}
	}
	if errors.Is(err, firstcome.ErrLineLogAway) {
		return nil
	}
	a.loaded.Log, a.loaded.Anew = &log, true
	return err
}

// unknownOffset is the offset of an epoch's beginning if it is unknown.
const unknownOffset = -1

// append appends the people who were carried over to a log.
func (a *attempt) append(ctx context.Context, log firstcome.LineLog) error {
	var some []line.Record
	give := func() error {
		if len(some) == 0 {
			return nil
		}
		err := a.Log.Append(ctx, a.Campaign, some)
		some = some[:0]
		return err
	}
	generation, epoch := a.loaded.Carried.Generation, a.Rebuild.Epoch+1
	if a.reconciled != nil {
		epoch = a.reconciled.Adopted.Epoch + 1
	}
	err := a.gate.Carried(ctx, a.Rebuild, func(one Waiting) error {
		some = append(some, line.Record{
			Logged: firstcome.Logged{LineLog: log, CampaignUID: a.CampaignUID, Epoch: epoch, Began: generation, At: a.frozen.DecidedAt},
			Ticket: firstcome.Ticket{Generation: generation, Number: one.Ticket}, User: one.User,
		})
		if len(some) < giveAtOnce {
			return nil
		}
		return give()
	})
	if err == nil {
		err = give()
	}
	return err
}
