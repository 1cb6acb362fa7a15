//go:build !check

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A paperLog is the log of a line, in memory: an offset is a place in a slice.
type paperLog struct {
	topic   string
	records []line.Record
	away    bool
	full    bool // it takes no records
}

func (p *paperLog) answers(log firstcome.LineLog) error {
	switch {
	case p.away:
		return firstcome.ErrLineLogAway
	case log.Topic != p.topic || log.First > int64(len(p.records)):
		return firstcome.ErrLineLogGone
	}
	return nil
}

func (p *paperLog) Append(_ context.Context, _ firstcome.CampaignID, records []line.Record) error {
	if err := p.answers(records[0].LineLog); err != nil || p.full {
		return cmp.Or(err, firstcome.ErrLineLogAway)
	}
	p.records = append(p.records, records...)
	return nil
}

func (p *paperLog) LogLocation(context.Context, firstcome.CampaignID) (firstcome.LineLog, error) {
	log := firstcome.LineLog{Topic: p.topic, First: int64(len(p.records))}
	return log, p.answers(log)
}

func (p *paperLog) End(_ context.Context, _ firstcome.CampaignID, log firstcome.LineLog) (int64, error) {
	return int64(len(p.records)), p.answers(log)
}

func (p *paperLog) Read(_ context.Context, _ firstcome.CampaignID, log firstcome.LineLog, end int64, each func(int64, line.Record) error) error {
	for offset := log.First; offset < end; offset++ {
		if err := each(offset, p.records[offset]); err != nil {
			return err
		}
	}
	return p.answers(log)
}

// A logging is a desk whose campaign c has a log of its line.
type logging struct {
	*rewind
	log    *paperLog
	teller *line.Teller
}

// newLogged returns a desk of the campaign c, with a quantity of coupons and a line without a limit on its pace. user-0, user-1 and so on were told their
// places.
func newLogged(t *testing.T, name string, quantity int64, inLine int) *logging {
	t.Helper()
	l := &logging{rewind: &rewind{desk: newDesk(t, services.Redis.Database(t), name, nil)}, log: &paperLog{topic: "lines", records: make([]line.Record, 3)}}
	l.tells()
	terms := stage.Terms(quantity)
	terms.Pace, terms.Log = &firstcome.Pace{}, &firstcome.LineLog{Topic: "lines", First: 3}
	l.reaches("c", l.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	l.joins(people("user-", inLine)...)
	return l
}

// tells starts another node that tells places.
func (l *logging) tells() { l.teller = line.NewTeller(l.remote.gate, l.log) }

// joins claims for users, who are told their places.
func (l *logging) joins(users ...firstcome.UserID) {
	l.t.Helper()
	l.rewind.joins(users...)
	for _, user := range users {
		stage.Must(l.t, l.told(user))
	}
}

// told returns why a user is not told a place.
func (l *logging) told(user firstcome.UserID) error {
	_, _, err := l.teller.Place(l.t.Context(), "c", user)
	return err
}

// leaves takes users out of the line, and expects that they are told.
func (l *logging) leaves(users ...firstcome.UserID) {
	l.t.Helper()
	for _, user := range users {
		stage.Must(l.t, stage.Err(l.teller.Leave(l.t.Context(), "c", user)))
	}
}

func (l *logging) rebuilder() *recovery.Machine {
	r := l.rewind.rebuilder()
	r.Log = l.log
	return r
}

// mends rebuilds the gate, and starts another node that tells places from then on.
func (l *logging) mends() recovery.Rebuilt {
	l.t.Helper()
	done := l.rebuilt(l.rebuilder())
	l.tells()
	return done
}

// inForce returns the users with a coupon in the ledger, in the order of numbers, with their tickets.
func (l *logging) inForce() (all []string) {
	l.t.Helper()
	var coupons []firstcome.Coupon
	stage.Must(l.t, l.ledger.Reads.Coupons(l.t.Context(), "c", ledger.Page{}, func(c firstcome.Coupon) error {
		coupons = append(coupons, c)
		return nil
	}))
	return tickets(coupons)
}

// losses are the ways in which Redis loses data.
var losses = map[string]func(l *logging){
	"everything":                  func(l *logging) { l.do("FLUSHALL") },
	"the holders":                 func(l *logging) { l.do("DEL", l.key("holders")) },
	"the holders and the journal": func(l *logging) { l.do("DEL", l.key("holders"), l.key("journal")) },
	"the line":                    func(l *logging) { l.do("DEL", l.key("line")) },
	"the line's type":             func(l *logging) { l.do("SET", l.key("line"), "somebody's") },
	"who left":                    func(l *logging) { l.do("DEL", l.key("tickets")) },
	"who left, and its type":      func(l *logging) { l.do("SET", l.key("tickets"), "somebody's") },
	"the counters":                func(l *logging) { l.do("DEL", l.key("campaign")) },
	"what they count":             func(l *logging) { l.do("HSET", l.key("campaign"), "line", "nobody can read this") },
	"nothing":                     func(*logging) {},
}

// TestF77ALoggedLineLosesNobodyWhateverRedisLoses has twelve users in line. Six were served and recorded, the coupon of user-1 was voided, user-9 left,
// user-8 got a coupon directly, and user-6 and user-7 were served and not recorded. Then Redis loses data.
func TestF77ALoggedLineLosesNobodyWhateverRedisLoses(t *testing.T) {
	for what, lose := range losses {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			losesNobody(t, services.Ledgers[services.SQLite](t), lose)
		})
	}
	ledgers(t, func(t *testing.T, name string) { losesNobody(t, name, losses["everything"]) })
}

func losesNobody(t *testing.T, name string, lose func(*logging)) {
	l := newLogged(t, name, 100, 12)
	l.serves(6)
	l.records()
	l.voids(2)
	l.leaves("user-9")
	l.directly("user-8")
	l.serves(2)
	lose(l)

	done := l.mends()
	stage.Same(t, "what ended", [2][]string{{"1=lost"}, {"1=lost"}}, l.ended())
	stage.Same(t, "places", []string{"no", "no", "no"}, l.places("user-1", "user-9", "nobody"))
	l.joins("user-1")
	stage.Must(t, l.told("user-10"))
	l.sound()
	l.serves(100)
	l.records()
	got, want := l.inForce(), []string{"user-0@1.1", "user-2@1.3", "user-3@1.4", "user-4@1.5", "user-5@1.6", "user-6", "user-7", "user-10@2.11", "user-11@2.12", "user-1@2.13"}
	if len(got) != len(want)+1 {
		t.Fatalf("they have coupons: %v", got)
	}
	// A user who was served and not recorded is in line again, with the same ticket, unless the journal has the coupon.
	got = slices.DeleteFunc(got, func(c string) bool { return c == "user-8@0.0" || c == "user-8@2.9" })
	for n, c := range got {
		if c == "user-6@1.7" || c == "user-6@2.7" || c == "user-7@1.8" || c == "user-7@2.8" {
			got[n] = c[:len("user-6")]
		}
	}
	stage.Same(t, "who has a coupon, in the order of the numbers", want, got)
	if done.Carried < 2 || done.Carried > 5 {
		t.Errorf("%d people kept their places", done.Carried)
	}
	l.audited()
}

// TestF77ALoggedLineOutlivesOneLossAfterTheOther empties Redis twice. No user asks for a place in between.
func TestF77ALoggedLineOutlivesOneLossAfterTheOther(t *testing.T) {
	l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 6)
	l.serves(1)
	l.records()
	for range 2 {
		l.do("FLUSHALL")
		stage.Same(t, "who kept their places", int64(5), l.mends().Carried)
	}
	l.joins("new")
	l.leaves("user-2")
	l.do("FLUSHALL")
	stage.Same(t, "who kept their places", int64(5), l.mends().Carried)
	stage.Same(t, "who is served", []string{"user-1@4.2", "user-3@4.4", "user-4@4.5", "user-5@4.6", "new@4.7"}, tickets(l.serves(9)))
	l.audited()
}

// TestF77WhoLeftALoggedLineIsNotServed takes a gate back to when two users had been served and none had left. After that, four more were served and
// recorded, and one of their coupons voided. Two users left, and one of them joined again.
func TestF77WhoLeftALoggedLineIsNotServed(t *testing.T) {
	l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 10)
	l.serves(2)
	l.keep()
	l.leaves("user-3", "user-6")
	l.serves(4)
	l.records()
	l.voids(4)
	l.joins("user-6")
	l.back()
	l.mends()
	stage.Same(t, "who is served", []string{"user-8@2.9", "user-9@2.10", "user-6@2.11"}, tickets(l.serves(100)))
	l.audited()
}

// TestF77AGenerationThatSoldOutIsNotInLineAgain ends a generation on Redis, and a user joins the next generation. The ledger knows of the end, or does not.
func TestF77AGenerationThatSoldOutIsNotInLineAgain(t *testing.T) {
	for what, records := range map[string]bool{"the ledger knows": true, "the ledger does not know": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t, services.Ledgers[services.SQLite](t), 3, 5)
			stage.Same(t, "who is served", 3, len(l.serves(5)))
			if records {
				l.records()
			}
			l.terms(func(terms *firstcome.Terms) { terms.Quantity = 9 })
			stage.Await(t, "stock that has left quarantine", "waiting:0", func() string { return l.claims("new")[0] })
			stage.Must(t, l.told("new"))
			l.do("FLUSHALL")
			l.mends()
			stage.Same(t, "who is served", []string{"new@3.1"}, tickets(l.serves(9)))
			l.audited()
		})
	}
}

// TestNobodyIsToldAPlaceOfAnEpochThatHasEnded gives a node a ticket, and the gate loses its memory before the node appends it.
func TestNobodyIsToldAPlaceOfAnEpochThatHasEnded(t *testing.T) {
	l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 1)
	decisions, err := l.remote.gate.Claim(t.Context(), "c", []firstcome.UserID{"late"})
	stage.Must(t, err)
	l.do("FLUSHALL")
	l.rebuilt(l.rebuilder())
	if err := l.teller.Tell(t.Context(), "c", []line.Telling{{User: "late", Place: decisions[0].Place}}); !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("who was forgotten is told %v", err)
	}
	l.joins("new")
	l.do("FLUSHALL")
	l.mends()
	stage.Same(t, "places", []string{"3.1+0", "no", "3.2+1"}, l.places("user-0", "late", "new"))
	l.audited()
}

// TestF77WithoutItsLogALineIsLeftAlone empties Redis while Kafka is unreachable, or after the topic was recreated. An operator then orders a rebuild of the
// line from Redis.
func TestF77WithoutItsLogALineIsLeftAlone(t *testing.T) {
	for what, c := range map[string]struct {
		lose func(l *logging)
		want error
	}{
		"Kafka is away":                               {func(l *logging) { l.log.away = true }, firstcome.ErrLineLogAway},
		"the topic was made again":                    {func(l *logging) { *l.log = paperLog{topic: "again"} }, firstcome.ErrLineLogGone},
		"the topic was made again, and takes nothing": {func(l *logging) { *l.log = paperLog{topic: "again", full: true} }, firstcome.ErrLineLogGone},
		"the log was cut": {func(l *logging) {
			l.do("FLUSHALL")
			l.mends()
			l.log.records = l.log.records[:4]
		}, firstcome.ErrLineLogGone},
		"no --line": {func(l *logging) {}, firstcome.ErrLineLogAway},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 5)
			l.serves(1)
			l.records()
			c.lose(l)
			l.do("DEL", l.key("holders"))
			r := l.rebuilder()
			if what == "no --line" {
				r.Log = nil
			}
			if _, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{}); !errors.Is(err, c.want) {
				t.Errorf("a rebuild without the log ends with %v, want %v", err, c.want)
			}
			if frozen, _ := l.frozen(); frozen != 0 {
				t.Error("the gate is frozen, and nothing is done")
			}
			done, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{WithoutLog: true})
			stage.Must(t, err)
			stage.Same(t, "who kept their places", int64(4), done.Carried)
			generation := fmt.Sprint(done.Epoch)
			stage.Same(t, "places", []string{generation + ".2+0", generation + ".5+3"}, l.places("user-1", "user-4"))
			l.tells()
			l.log.away, l.log.full = false, false
			for _, user := range people("user-", 5)[1:] {
				stage.Must(t, l.told(user))
			}
			l.joins("new")
			l.do("FLUSHALL")
			stage.Same(t, "who kept their places behind it", int64(5), l.mends().Carried)
			l.audited()
		})
	}
}

// TestTheLogOfALineIsMadeAnew recreates the topic, and rebuilds the line from Redis. Then it empties Redis, before any user asks.
func TestTheLogOfALineIsMadeAnew(t *testing.T) {
	l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 5)
	*l.log = paperLog{topic: "again", records: make([]line.Record, 7)}
	if err := l.told("user-1"); err != nil {
		t.Errorf("who was told before is told %v", err)
	}
	l.rewind.joins("late")
	if err := l.told("late"); !errors.Is(err, firstcome.ErrLineLogGone) {
		t.Errorf("who was not told is told %v", err)
	}
	stage.Must(t, stage.Err(l.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{WithoutLog: true})))
	l.do("FLUSHALL")
	stage.Same(t, "who kept their places", int64(6), l.mends().Carried)
	stage.Same(t, "who is served", []string{"user-0@3.1", "user-1@3.2", "user-2@3.3", "user-3@3.4", "user-4@3.5", "late@3.6"}, tickets(l.serves(9)))
	l.audited()
}

// TestF54P9AReconcileReadsTheLogOfTheLine has users in line when the backup is made. After the backup, one left, some were served, one coupon of theirs was
// voided, and Redis was rebuilt or was not.
func TestF54P9AReconcileReadsTheLogOfTheLine(t *testing.T) {
	for what, rebuilds := range map[string]bool{"in the epoch of the backup": false, "in another epoch": true} {
		t.Run(what, func(t *testing.T) {
			ledgers(t, func(t *testing.T, name string) {
				l := newLogged(t, name, 100, 10)
				l.serves(2)
				l.records()
				b := l.backup()
				if rebuilds {
					l.do("FLUSHALL")
					l.mends()
				}
				l.leaves("user-8")
				l.serves(2)
				l.records()
				l.voids(l.coupon("user-3"))
				l.serves(2)
				l.joins("new")
				l.desk = b.restore()
				l.tells()

				stage.Must(t, stage.Err(l.rebuilder().Reconcile(t.Context(), "op", "c")))
				var users []firstcome.UserID
				for _, c := range l.serves(100) {
					users = append(users, c.User)
				}
				stage.Same(t, "who is served", []firstcome.UserID{"user-6", "user-7", "user-9", "new"}, users)
				l.records()
			})
		})
	}
}

// coupon returns the number of a user's coupon at the gate.
func (l *logging) coupon(user firstcome.UserID) int64 {
	l.t.Helper()
	c, err := l.remote.gate.CouponOf(l.t.Context(), "c", user)
	stage.Must(l.t, err)
	return c.Number
}

// TestF01ALoggedLineGoesOnBehindARestart kills and restarts a Redis that syncs before it answers.
func TestF01ALoggedLineGoesOnBehindARestart(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always")
	l := &logging{rewind: &rewind{desk: newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil)}, log: &paperLog{topic: "lines"}}
	l.tells()
	terms := stage.Terms(100)
	terms.Pace, terms.Log = &firstcome.Pace{}, &firstcome.LineLog{Topic: "lines"}
	l.reaches("c", l.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	r := l.watch()
	l.joins(people("user-", 6)...)
	l.serves(2)
	l.leaves("user-3")
	stage.Must(t, server.Kill())
	stage.Must(t, server.Restart(t.Context()))
	stage.Same(t, "what became of the gate", recovery.Stats{Verified: 1}, l.decides(r))
	stage.Must(t, l.told("user-5"))
	stage.Same(t, "who is served", []string{"user-2@1.3", "user-4@1.5", "user-5@1.6"}, tickets(l.serves(9)))
	l.audited()
}
