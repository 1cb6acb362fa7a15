package main

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// plantSecret makes the codes of plantable.
var plantSecret = stage.Secret()

// A scene makes a ledger in which every table has rows of all kinds.
type scene struct {
	*ledger.Ledger
	t     *testing.T
	start time.Time
	ticks atomic.Int64
	clock func() time.Time // nil: now
	// beside is a connection to the database without firstcome.
	beside *sql.DB
}

// now is a clock that returns a later time at each call.
func (s *scene) now() time.Time { return s.start.Add(time.Duration(s.ticks.Add(1)) * time.Millisecond) }

// plantable makes a ledger without a breach, for the plants.
func plantable(t *testing.T, name string, beside *sql.DB) {
	s := &scene{t: t, beside: beside, start: time.Unix(1_700_000_000, 0)}
	s.as(name, "", func() {
		s.spring()
		s.switched("autumn", firstcome.ChangeClose)
		s.switched("winter", firstcome.ChangePause)
		s.create("empty", firstcome.Terms{Quantity: 1})
		s.soldOut()
		s.lines()
		s.keys()
		s.vouchers()
	})
	s.as(name, "redis:elsewhere", func() {
		s.old()
		s.shut()
		s.summer()
		s.drop()
		s.ranks()
	})
}

// as opens the ledger like a node with a gate, and closes it.
func (s *scene) as(name, gate string, do func()) {
	clock := s.clock
	if clock == nil {
		clock = s.now
	}
	l, err := ledger.Open(s.t.Context(), name, ledger.Options{Secret: plantSecret, Gate: gate, Clock: clock})
	stage.Must(s.t, err)
	s.Ledger = l
	defer stage.Serve(s.t, l)()
	do()
}

func (s *scene) create(id firstcome.CampaignID, terms firstcome.Terms) {
	terms.Name, terms.Answer = "Test", firstcome.Recorded
	if terms.Prizes == nil {
		terms.Benefit = []byte(`{}`)
	}
	stage.Must(s.t, s.Campaigns.Create(s.t.Context(), "op", id, terms))
}

func (s *scene) claim(id firstcome.CampaignID, users ...firstcome.UserID) {
	for _, user := range users {
		decisions, err := s.Gate.Claim(s.t.Context(), id, []firstcome.UserID{user})
		stage.Must(s.t, err)
		if decisions[0].Outcome != firstcome.Issued {
			s.t.Fatalf("%s claims of %s and gets %v", user, id, decisions[0].Outcome)
		}
	}
}

func (s *scene) quantity(id firstcome.CampaignID, n int64) {
	_, err := s.Campaigns.SetTerms(s.t.Context(), "op", id, 0, func(t *firstcome.Terms) {
		t.Quantity = n
	})
	stage.Must(s.t, err)
}

func (s *scene) turn(id firstcome.CampaignID, to firstcome.ChangeKind) {
	_, err := s.Campaigns.ChangeState(s.t.Context(), "op", id, 0, to)
	stage.Must(s.t, err)
}

// vouchers has imported codes, and a void that lowered its quantity.
func (s *scene) vouchers() {
	s.create("vouchers", firstcome.Terms{Quantity: 3, Imported: true})
	stage.Must(s.t, stage.Err(s.Codes.Import(s.t.Context(), "op", "vouchers", "", []string{"A-1", "A-2", "A-3"})))
	s.turn("vouchers", firstcome.ChangeResume)
	s.claim("vouchers", "a", "b")
	stage.Must(s.t, stage.Err(s.Campaigns.Void(s.t.Context(), "op", "vouchers", 1, "returned")))
}

// spring has coupons of two terms, a pause that is over, and a void whose user came again.
func (s *scene) spring() {
	s.create("spring", firstcome.Terms{Quantity: 10, OpensAt: s.start, ClosesAt: s.start.Add(24 * time.Hour)})
	s.claim("spring", "a", "b", "c")
	s.quantity("spring", 12)
	s.claim("spring", "d")
	s.turn("spring", firstcome.ChangePause)
	s.turn("spring", firstcome.ChangeResume)
	s.claim("spring", "e")
	_, err := s.Campaigns.Void(s.t.Context(), "op", "spring", 2, "sold")
	stage.Must(s.t, err)
	s.claim("spring", "b")
}

func (s *scene) switched(id firstcome.CampaignID, to firstcome.ChangeKind) {
	s.create(id, firstcome.Terms{Quantity: 10})
	s.claim(id, "a", "b")
	s.turn(id, to)
}

// soldOut makes full, sold out since its last coupon, and lowered, sold out since its quantity was lowered.
func (s *scene) soldOut() {
	s.create("full", firstcome.Terms{Quantity: 2})
	s.claim("full", "a", "b")
	s.create("lowered", firstcome.Terms{Quantity: 9})
	s.claim("lowered", "a", "b", "c")
	for _, n := range []int64{1, 3} {
		_, err := s.Campaigns.Void(s.t.Context(), "op", "lowered", n, "sold")
		stage.Must(s.t, err)
	}
	s.quantity("lowered", 1)
	s.turn("lowered", firstcome.ChangePause)
}

// lines has a campaign whose first line ended sold out and whose second one people are in, one that was closed with
// people in line, one whose window ended with people in line, and one with a pace where nobody came.
func (s *scene) lines() {
	join := func(id firstcome.CampaignID, users ...firstcome.UserID) {
		for _, user := range users {
			d, err := s.Gate.Claim(s.t.Context(), id, []firstcome.UserID{user})
			stage.Must(s.t, err)
			if d[0].Outcome != firstcome.Waiting {
				s.t.Fatalf("%s joins %s and gets %v", user, id, d[0].Outcome)
			}
		}
	}
	serve := func(id firstcome.CampaignID, limit, coupons int) {
		served, err := s.Gate.Serve(s.t.Context(), id, limit)
		stage.Must(s.t, err)
		if len(served.Coupons) != coupons {
			s.t.Fatalf("%s serves %d", id, len(served.Coupons))
		}
	}
	pace := &firstcome.Pace{PerSecond: 1000}
	s.create("queue", firstcome.Terms{Quantity: 3, Pace: pace})
	join("queue", "a", "b", "c", "d", "e")
	stage.Must(s.t, stage.Err(s.Gate.Leave(s.t.Context(), "queue", "b")))
	serve("queue", 1, 1)
	_, err := s.Gate.Issue(s.t.Context(), gate.Order{Actor: "op"}, "queue", []firstcome.UserID{"d"})
	stage.Must(s.t, err)
	serve("queue", 9, 1)
	s.quantity("queue", 6)
	s.ticks.Add(1000) // until nothing is quarantined
	join("queue", "e", "f", "g", "h", "i")
	serve("queue", 1, 1)
	stage.Must(s.t, stage.Err(s.Gate.Leave(s.t.Context(), "queue", "g")))
	s.create("gone", firstcome.Terms{Quantity: 9, Pace: pace, Waitlist: true})
	join("gone", "a", "b")
	s.turn("gone", firstcome.ChangeClose)
	s.create("dusk", firstcome.Terms{Quantity: 9, Pace: pace, ClosesAt: s.now().Add(time.Second)})
	join("dusk", "a", "b")
	s.ticks.Add(2000) // until its window has ended
	late, err := s.Gate.Claim(s.t.Context(), "dusk", []firstcome.UserID{"c"})
	stage.Must(s.t, err)
	if late[0].Outcome != firstcome.Closed {
		s.t.Fatalf("c comes to dusk late, and gets %v", late[0].Outcome)
	}
	s.create("quiet", firstcome.Terms{Quantity: 9, Pace: pace})
}

func (s *scene) keys() {
	for n, id := range []string{"good", "bad"} {
		stage.Must(s.t, s.Deployment.AddKey(s.t.Context(), "op", firstcome.Key{ID: id, Name: id, Role: firstcome.Viewer, Hash: [32]byte{byte(n + 1)}, CreatedAt: s.start}))
	}
	stage.Must(s.t, s.Deployment.RevokeKey(s.t.Context(), "op", "bad"))
}

// applied notes that the gate has the campaign's last change, or refused it.
func (s *scene) applied(id firstcome.CampaignID, refused bool) {
	c, err := s.Reads.Campaign(s.t.Context(), id)
	stage.Must(s.t, err)
	stage.Must(s.t, s.Campaigns.Applied(s.t.Context(), firstcome.Change{Campaign: id, Version: c.Version}, refused))
}

// old ended long ago.
func (s *scene) old() {
	s.create("old", firstcome.Terms{Quantity: 10, ClosesAt: s.now().Add(time.Millisecond)})
	s.applied("old", false)
	s.ticks.Add(10)
	retired, err := s.Epochs.Retire(s.t.Context(), "old", gate.State{Version: 1, Epoch: 1, Now: s.now()}, 0)
	if err != nil || !retired {
		s.t.Fatal("not retired", err)
	}
	stage.Must(s.t, s.Epochs.Forgotten(s.t.Context(), "old"))
}

// shut closes two campaigns at their gate, and retires one of them.
func (s *scene) shut() {
	for _, id := range []firstcome.CampaignID{"shutting", "shut"} {
		s.create(id, firstcome.Terms{})
		s.applied(id, false)
		s.turn(id, firstcome.ChangeClose)
		s.applied(id, false)
	}
	seen := gate.State{Version: 2, Epoch: 1, Now: s.now(), Instants: firstcome.Instants{SoldOutAt: s.now(), ClosedAt: s.now()}}
	retired, err := s.Epochs.Retire(s.t.Context(), "shut", seen, 0)
	if err != nil || !retired {
		s.t.Fatal("not retired", err)
	}
}

// issued is a coupon of summer, as its gate issued it.
func (s *scene) issued(number, version int64, user firstcome.UserID) firstcome.Coupon {
	return firstcome.Coupon{
		Campaign: "summer", Number: number, User: user, Code: plantSecret.Code("summer", number),
		IssuedAt: s.now(), TermsVersion: version,
	}
}

// summer has the numbers 1, which is voided, 2, 3, 4, a dead letter that was replayed, 5, one that was voided,
// 6 and 7, which are lost, 8 of the second epoch and of later terms, and 9, an open dead letter. One more dead letter belongs to no campaign.
func (s *scene) summer() {
	ctx := s.t.Context()
	s.create("summer", firstcome.Terms{Quantity: 10})
	s.applied("summer", false)
	batch := func(epoch int64, coupons ...firstcome.Coupon) record.Batch {
		return record.Batch{Campaign: "summer", Epoch: epoch, Coupons: coupons}
	}
	keep := func(b record.Batch) {
		_, err := s.Recorder.Record(ctx, b)
		stage.Must(s.t, err)
	}
	bury := func(b record.Batch) {
		_, err := s.Recorder.Bury(ctx, b, "a trial")
		stage.Must(s.t, err)
	}
	keep(batch(1, s.issued(1, 1, "u1"), s.issued(2, 1, "u2"), s.issued(3, 1, "u3")))
	bury(batch(1, s.issued(4, 1, "u4"), s.issued(5, 1, "u5")))
	letters, err := s.Reads.DeadLetters(ctx, ledger.Letters{Campaign: "summer"})
	stage.Must(s.t, err)
	stage.Must(s.t, s.Recorder.Replay(ctx, "op", letters[0].ID))
	stage.Must(s.t, s.Recorder.VoidLetter(ctx, "op", letters[1].ID, "gone")) // version 2
	s.applied("summer", false)
	_, err = s.Campaigns.Void(ctx, "op", "summer", 1, "sold") // 3
	stage.Must(s.t, err)
	s.applied("summer", false)
	for _, n := range []int64{20, 9, 15, 16} { // 4, 5, which is refused, 6 and 7
		s.quantity("summer", n)
		s.applied("summer", n == 9)
	}
	s.lose()
	keep(batch(2, s.issued(8, 4, "u8")))
	bury(batch(2, s.issued(9, 4, "u9")))
	bury(record.Batch{Campaign: "nowhere", Garbage: []record.Garbage{{Source: "stream/1", Payload: "?", Cause: "a trial"}}})
}

// drop has a line that its gate keeps: number 1 went to the ticket 1.2, number 2 passed the line, and number 3 went to 2.1,
// where number 4, for 2.3, is a dead letter. Three were served of the first generation, of whom one had number 2.
func (s *scene) drop() {
	s.create("drop", firstcome.Terms{Quantity: 9})
	s.applied("drop", false)
	issued := func(number, generation, ticket int64) firstcome.Coupon {
		return firstcome.Coupon{
			Campaign: "drop", Number: number, User: firstcome.UserID(fmt.Sprint("d", number)), Code: plantSecret.Code("drop", number),
			IssuedAt: s.now(), TermsVersion: 1, Generation: generation, Ticket: ticket,
		}
	}
	first := record.Batch{Campaign: "drop", Epoch: 1, Coupons: []firstcome.Coupon{issued(1, 1, 2), issued(2, 0, 0)}}
	first.Line = gate.LineReport{Line: firstcome.Line{Generation: 2}, Past: []firstcome.PastLine{
		{Line: firstcome.Line{Generation: 1, LastTicket: 4, ServedThrough: 3, Served: 3, Waiting: 1}, Reason: "sold_out", EndedAt: s.now()},
	}}
	second := record.Batch{Campaign: "drop", Epoch: 1, Coupons: []firstcome.Coupon{issued(3, 2, 1)}}
	second.Line.Line = firstcome.Line{Generation: 2, LastTicket: 5, ServedThrough: 3, Served: 2, Waiting: 2}
	for _, b := range []record.Batch{first, second} {
		_, err := s.Recorder.Record(s.t.Context(), b)
		stage.Must(s.t, err)
	}
	_, err := s.Recorder.Bury(s.t.Context(), record.Batch{Campaign: "drop", Epoch: 1, Coupons: []firstcome.Coupon{issued(4, 2, 3)}}, "a trial")
	stage.Must(s.t, err)
}

// lose loses the numbers 6 and 7, as a gate that lost its memory would.
func (s *scene) lose() {
	for _, statement := range []string{`INSERT INTO lost VALUES ('summer', 6, 1, 2), ('summer', 7, 1, 2)`, `UPDATE campaigns SET epoch = 2 WHERE id = 'summer'`} {
		_, err := s.beside.ExecContext(s.t.Context(), statement)
		stage.Must(s.t, err)
	}
}
