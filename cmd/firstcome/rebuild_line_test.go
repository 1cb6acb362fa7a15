//go:build !check

package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// newLine returns a desk of the campaign c, with a quantity of coupons and a line without a limit on its pace. user-0, user-1 and so on are in line.
func newLine(t *testing.T, name string, quantity int64, inLine int) *rewind {
	t.Helper()
	r := &rewind{desk: newDesk(t, services.Redis.Database(t), name, nil)}
	terms := stage.Terms(quantity)
	terms.Pace = &firstcome.Pace{}
	r.reaches("c", r.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	r.joins(people("user-", inLine)...)
	return r
}

func (r *rewind) joins(users ...firstcome.UserID) {
	r.t.Helper()
	for n, answer := range r.claims(users...) {
		if answer != "waiting:0" {
			r.t.Fatalf("%s joins, and is answered %s", users[n], answer)
		}
	}
}

// serves serves a number of users, and returns their coupons.
func (r *rewind) serves(count int) []firstcome.Coupon {
	r.t.Helper()
	served, err := r.remote.gate.Serve(r.t.Context(), "c", count)
	stage.Must(r.t, err)
	return served.Coupons
}

// records brings the journal's coupons to the ledger, and does not tell the gate.
func (r *rewind) records() {
	r.t.Helper()
	uid, err := r.campaignUID(r.t.Context(), "c")
	stage.Must(r.t, err)
	r.do("HSET", r.key("campaign"), "frozen", "0")
	stage.Must(r.t, r.remote.gate.recovery.Empty(r.t.Context(), recovery.Rebuild{Campaign: "c", CampaignUID: uid}, r.ledger.Recorder.Record))
	r.do("HDEL", r.key("campaign"), "frozen")
}

// directly issues coupons bypassing the line.
func (r *rewind) directly(user firstcome.UserID) {
	r.t.Helper()
	stage.Must(r.t, stage.Err(r.remote.gate.Issue(r.t.Context(), gate.Order{Actor: "test"}, "c", []firstcome.UserID{user})))
}

func (r *rewind) leaves(user firstcome.UserID) {
	r.t.Helper()
	stage.Must(r.t, stage.Err(r.remote.gate.Leave(r.t.Context(), "c", user)))
}

// voids voids a coupon, at the gate too.
func (r *rewind) voids(number int64) {
	r.t.Helper()
	r.reaches("c", stage.Err(r.ledger.Campaigns.Void(r.t.Context(), "op", "c", number, "a trial")))
}

// places returns users' places as GENERATION.TICKET+AHEAD, #NUMBER for a user with a coupon, or no.
func (r *rewind) places(users ...firstcome.UserID) (places []string) {
	r.t.Helper()
	for _, user := range users {
		p, c, err := r.remote.gate.Place(r.t.Context(), "c", user)
		switch {
		case errors.Is(err, firstcome.ErrNoTicket):
			places = append(places, "no")
		case err != nil:
			r.t.Fatal(err)
		case c.Number > 0:
			places = append(places, fmt.Sprintf("#%d", c.Number))
		default:
			places = append(places, fmt.Sprintf("%d.%d+%d", p.Generation, p.Ticket, p.Ahead))
		}
	}
	return places
}

// tickets returns coupons as USER@GENERATION.TICKET.
func tickets(coupons []firstcome.Coupon) (all []string) {
	for _, c := range coupons {
		all = append(all, fmt.Sprintf("%s@%d.%d", c.User, c.Generation, c.Ticket))
	}
	return all
}

// ended returns the ended generations as GENERATION=REASON, by the gate and by the ledger.
func (r *rewind) ended() [2][]string {
	r.t.Helper()
	var all [2][]string
	for n, places := range []gate.Places{r.remote.gate, r.ledger.Gate} {
		state, err := places.LineOf(r.t.Context(), "c")
		stage.Must(r.t, err)
		for _, p := range state.Past {
			all[n] = append(all[n], fmt.Sprintf("%d=%s", p.Generation, p.Reason))
		}
	}
	return all
}

// audited serves and records everything, and expects that no promise is broken, by the ledger and by the gate.
func (r *rewind) audited() {
	r.t.Helper()
	for len(r.serves(100)) > 0 { //nolint:revive // until no user is served
	}
	r.records()
	found, err := audit.Ledger(r.t.Context(), r.ledger.Tables().Source(), "c", nil, nil)
	stage.Must(r.t, err)
	if found.Breaches.Total > 0 {
		r.t.Errorf("the audit of the ledger finds %+v", found.Breaches)
	}
	campaign := r.status()
	compared, err := compareWithGate(r.t.Context(), r.ledger.Tables().Source(), inspected(r.t, r.options(r.url)), nil, &campaign, nil)
	stage.Must(r.t, err)
	if compared.Breaches.Total > 0 {
		r.t.Errorf("the audit of the gate finds %+v", compared.Breaches)
	}
}

// TestF77ALineWhoseKeysSurviveIsCarriedOver lets Redis lose its holders while user-6 to user-19 are in line, except user-8, who got a coupon directly, and
// user-9, who left. The coupon of user-1 is voided, and that of user-2 a dead letter.
func TestF77ALineWhoseKeysSurviveIsCarriedOver(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		r := newLine(t, name, 100, 20)
		coupons := r.serves(6)
		r.settle(r.record(coupons[:2]...))
		r.bury(coupons[2])
		r.voids(2)
		r.directly("user-8")
		r.leaves("user-9")
		r.do("DEL", r.key("holders"))
		r.needs(gate.ErrGone)

		done := r.rebuilt(r.rebuilder())
		stage.Same(t, "who kept their places, and who did not", [2]int64{12, 0}, [2]int64{done.Carried, done.LostPlaces})
		stage.Same(t, "what ended", [2][]string{{"1=lost"}, {"1=lost"}}, r.ended())
		stage.Same(t, "places", []string{"#1", "no", "#3", "2.7+0", "2.8+1", "#7", "no", "2.11+4", "2.20+13"},
			r.places("user-0", "user-1", "user-2", "user-6", "user-7", "user-8", "user-9", "user-10", "user-19"))
		r.leaves("user-1")
		r.leaves("user-9")
		if err := stage.Err(r.remote.gate.Leave(t.Context(), "c", "nobody")); !errors.Is(err, firstcome.ErrNoTicket) {
			t.Errorf("who never joined leaves: %v", err)
		}
		r.joins("new", "user-9", "user-1")
		stage.Same(t, "newcomers, behind them", []string{"2.21+14", "2.22+15", "2.23+16"}, r.places("new", "user-9", "user-1"))
		stage.Same(t, "who is served", []string{"user-6@2.7", "user-7@2.8", "user-10@2.11"}, tickets(r.serves(3)))
		r.audited()
		if left := r.keys("c"); len(left) != 5 {
			t.Errorf("the campaign's keys are %v", left)
		}
	})
}

// TestF77ALineWhoseCountersContradictEachOtherIsCarriedOver sets the counters on Redis to 9 served and 9 in line of 5 tickets. The ledger refuses such a
// line.
func TestF77ALineWhoseCountersContradictEachOtherIsCarriedOver(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		r := newLine(t, name, 100, 5)
		r.do("HSET", r.key("campaign"), "line", "1 5 0 9 9 0 - 0")
		r.needs(gate.ErrGone)
		stage.Same(t, "who kept their places", int64(5), r.rebuilt(r.rebuilder()).Carried)
		stage.Same(t, "places", []string{"2.1+0", "2.5+4"}, r.places("user-0", "user-4"))
	})
}

// TestF77AnOlderGatesLineIsCarriedOverWithoutWhoWasServed takes a gate back to when 10 users were in line and 2 had been served. After that, 4 more were
// served: the last coupon was not recorded, and another was voided. One user got a coupon directly, one left, and 5 joined.
func TestF77AnOlderGatesLineIsCarriedOverWithoutWhoWasServed(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		r := newLine(t, name, 1000, 12)
		r.serves(2)
		r.keep()
		r.serves(3)
		r.directly("user-7")
		r.records()
		r.voids(4)
		r.serves(1)
		r.leaves("user-8")
		r.joins(people("lost-", 5)...)
		r.back()

		done := r.rebuilt(r.rebuilder())
		stage.Same(t, "who kept their places", int64(6), done.Carried)
		stage.Same(t, "what ended", [2][]string{{"1=lost"}, {"1=lost"}}, r.ended())
		stage.Same(t, "the places of who was served, but for whose coupon nobody has", []string{"#3", "no", "#5", "2.6+0", "2.7+1", "#6", "2.9+3"},
			r.places("user-2", "user-3", "user-4", "user-5", "user-6", "user-7", "user-8"))
		stage.Same(t, "whose tickets are lost", []string{"no", "no"}, r.places("lost-0", "lost-4"))
		r.joins("new", "lost-4")
		stage.Same(t, "newcomers, whose tickets nobody had", []string{"2.13+7", "2.14+8"}, r.places("new", "lost-4"))
		stage.Same(t, "who is served", []string{"user-5@2.6", "user-6@2.7", "user-8@2.9", "user-9@2.10", "user-10@2.11", "user-11@2.12", "new@2.13", "lost-4@2.14"},
			tickets(r.serves(100)))
		r.audited()
	})
}

// TestF77AGateOfBeforeARebuildIsCarriedOverOnceMore takes a gate back to before it was rebuilt, with user-2 to user-5 in line. After the rebuild, user-2
// and user-3 were served, the coupon of user-2 was voided, and a user joined.
func TestF77AGateOfBeforeARebuildIsCarriedOverOnceMore(t *testing.T) {
	r := newLine(t, services.Ledgers[services.SQLite](t), 1000, 6)
	r.serves(2)
	r.keep()
	r.rebuilt(r.rebuilder())
	void := r.serves(2)[0].Number
	r.joins("lost")
	r.records()
	r.voids(void)
	r.back()
	stage.Same(t, "who kept their places", int64(2), r.rebuilt(r.rebuilder()).Carried)
	stage.Same(t, "places", []string{"no", "3.5+0", "3.6+1", "no"}, r.places("user-2", "user-4", "user-5", "lost"))
	stage.Same(t, "what ended", [2][]string{{"2=lost", "1=lost"}, {"2=lost", "1=lost"}}, r.ended())
	r.joins("new", "user-2")
	stage.Same(t, "who is served", []string{"user-4@3.5", "user-5@3.6", "new@3.7", "user-2@3.8"}, tickets(r.serves(100)))
	r.audited()
}

// TestF77WhoWasSentAwayIsNotInLineAgain takes a gate back to before its line ended as sold_out. The ledger knows of the end.
func TestF77WhoWasSentAwayIsNotInLineAgain(t *testing.T) {
	r := newLine(t, services.Ledgers[services.SQLite](t), 3, 5)
	r.keep()
	r.serves(3)
	r.records()
	r.back()
	done := r.rebuilt(r.rebuilder())
	stage.Same(t, "who kept their places, and who did not", [2]int64{0, 0}, [2]int64{done.Carried, done.LostPlaces})
	stage.Same(t, "what ended", [2][]string{{"2=lost", "1=sold_out"}, {"2=lost", "1=sold_out"}}, r.ended())
	stage.Same(t, "places", []string{"#3", "no", "no"}, r.places("user-2", "user-3", "user-4"))
	stage.Same(t, "who claims", []string{"sold_out:0", "sold_out:0"}, r.claims("user-3", "new"))
	r.leaves("user-3")
	r.audited()
}

// TestF77ALineThatIsGoneEndsAsLost deletes the gate's data about the users in line.
func TestF77ALineThatIsGoneEndsAsLost(t *testing.T) {
	for name, lose := range map[string]func(r *rewind){
		"everything":        func(r *rewind) { r.do("FLUSHALL") },
		"the stream":        func(r *rewind) { r.do("DEL", r.key("line")) },
		"the stream's type": func(r *rewind) { r.do("SET", r.key("line"), "somebody's") },
		"the counters":      func(r *rewind) { r.do("DEL", r.key("campaign")) },
		"what they count":   func(r *rewind) { r.do("HSET", r.key("campaign"), "line", "nobody can read this") },
		"each entry's fields": func(r *rewind) {
			r.do("DEL", r.key("line"))
			r.do("XADD", r.key("line"), "1-9", "who", "user-8", "x", "y")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLine(t, services.Ledgers[services.SQLite](t), 100, 10)
			r.serves(4)
			r.records()
			lose(r)
			done := r.rebuilt(r.rebuilder())
			stage.Same(t, "who kept their places, and how many did not", [2]int64{0, 6}, [2]int64{done.Carried, done.LostPlaces})
			stage.Same(t, "what ended", [2][]string{{"1=lost"}, {"1=lost"}}, r.ended())
			stage.Same(t, "places", []string{"#4", "no", "no"}, r.places("user-3", "user-4", "user-9"))
			r.joins("user-9", "user-4")
			stage.Same(t, "who joins again", []string{"2.1+0", "2.2+1"}, r.places("user-9", "user-4"))
			r.audited()
		})
	}
}

// TestF77ALineThatTheLedgerNeverHeardOfEndsAsLost lets Redis lose a line that the ledger does not know, after an operator has removed the pace.
func TestF77ALineThatTheLedgerNeverHeardOfEndsAsLost(t *testing.T) {
	for name, end := range map[string]func(r *rewind){
		"by a rebuild": func(r *rewind) { r.rebuilt(r.rebuilder()) },
		"by a close": func(r *rewind) {
			stage.Must(r.t, stage.Err(r.ledger.Campaigns.ChangeState(r.t.Context(), "op", "c", 0, firstcome.ChangeClose)))
			stage.Must(r.t, r.ledger.Recorder.LoseLine(r.t.Context(), "c"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledgers(t, func(t *testing.T, name string) {
				r := newLine(t, name, 100, 3)
				paced := func(pace *firstcome.Pace) error {
					return stage.Err(r.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Pace = pace }))
				}
				r.reaches("c", paced(nil))
				r.do("FLUSHALL")
				end(r)
				state, err := r.ledger.Gate.LineOf(t.Context(), "c")
				stage.Must(t, err)
				if len(state.Past) != 1 || state.Past[0].Reason != "lost" || state.Line.Generation != 2 {
					t.Fatalf("by the ledger the line is %+v", state)
				}
				if r.status().Closed {
					return
				}
				r.reaches("c", paced(&firstcome.Pace{}))
				r.joins("new")
				stage.Same(t, "who joins afterwards", []string{"2.1+0"}, r.places("new"))
				r.audited()
			})
		})
	}
}

// TestF77TicketsThatAreGoneAreMadeOfTheLine deletes or overwrites the keys that find a user's ticket.
func TestF77TicketsThatAreGoneAreMadeOfTheLine(t *testing.T) {
	for name, lose := range map[string]func(r *rewind, key string){
		"none":            func(r *rewind, key string) { r.do("DEL", key) },
		"of another type": func(r *rewind, key string) { r.do("DEL", key); r.do("SET", key, "somebody's") },
		"of other users":  func(r *rewind, key string) { r.do("DEL", key); r.do("HSET", key, "user-9", "x", "somebody", "y") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLine(t, services.Ledgers[services.SQLite](t), 100, 5)
			r.serves(1)
			lose(r, r.key("tickets"))
			stage.Same(t, "who kept their places", int64(4), r.rebuilt(r.rebuilder()).Carried)
			stage.Same(t, "places", []string{"#1", "2.2+0", "2.5+3"}, r.places("user-0", "user-1", "user-4"))
			r.audited()
		})
	}
}

// TestF77ACampaignThatIsOverEndsTheLineThatWasCarriedOver rebuilds while the gate lacks a change that ends the campaign.
func TestF77ACampaignThatIsOverEndsTheLineThatWasCarriedOver(t *testing.T) {
	r := newLine(t, services.Ledgers[services.SQLite](t), 100, 5)
	stage.Must(t, stage.Err(r.ledger.Campaigns.ChangeState(t.Context(), "op", "c", 0, firstcome.ChangeClose)))
	stage.Same(t, "who kept their places", int64(5), r.rebuilt(r.rebuilder()).Carried)
	stage.Same(t, "nobody is served", 0, len(r.serves(5)))
	stage.Same(t, "what ended", []string{"2=closed", "1=lost"}, r.ended()[0])
	stage.Same(t, "who asks", []string{"closed:0"}, r.claims("user-0"))
	r.audited()
}

// TestF18F77ALineIsCarriedOverWhateverStepItsOwnerIsFrozenBefore stops the owner of a rebuild before each of its steps. Another node then rebuilds and
// serves, and a user joins. After that, the owner continues.
func TestF18F77ALineIsCarriedOverWhateverStepItsOwnerIsFrozenBefore(t *testing.T) {
	for _, step := range []string{"freeze", "empty", "record", "load", "carry", "finish", "switch"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newLine(t, services.Ledgers[services.SQLite](t), 100, 10)
			r.serves(2)
			h := &halt{r.ledger.Recorder, r.ledger.Epochs, r.remote.gate.recovery, step, make(chan struct{}), make(chan struct{})}
			ended := make(chan error, 1)
			go func() {
				_, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "frozen", "c", recovery.Order{})
				ended <- err
			}()
			<-h.reached
			if step != "freeze" {
				if _, err := r.remote.gate.Claim(t.Context(), "c", people("new-", 1)); !errors.Is(err, gate.ErrUnverified) {
					t.Errorf("somebody joins a frozen line: %v", err)
				}
				if err := stage.Err(r.remote.gate.Leave(t.Context(), "c", "user-5")); !errors.Is(err, gate.ErrUnverified) {
					t.Errorf("somebody leaves a frozen line: %v", err)
				}
			}
			if step != "switch" {
				r.outlive()
			}
			stage.Same(t, "who kept their places", int64(8), r.rebuilt(r.rebuilder()).Carried)
			generation := 2
			if step == "switch" {
				generation = 3 // the owner's generation is in the ledger, and users were never told of it
			}
			r.leaves("user-4")
			r.joins("new")
			served := r.serves(1)
			close(h.goOn)
			if err := <-ended; err != nil && !errors.Is(err, recovery.ErrMoved) {
				t.Errorf("the owner goes on, and ends with %v", err)
			}
			at := func(user string, ticket int) string { return fmt.Sprintf("%s@%d.%d", user, generation, ticket) }
			stage.Same(t, "who was served", []string{at("user-2", 3)}, tickets(served))
			stage.Same(t, "and then", []string{at("user-3", 4), at("user-5", 6), at("user-6", 7), at("user-7", 8), at("user-8", 9), at("user-9", 10), at("new", 11)},
				tickets(r.serves(100)))
			r.audited()
		})
	}
}

// TestF77ALineIsCarriedOverAnewWhenTheLedgerChanges changes the ledger between the load and the end of the epoch: user-1's coupon is voided, or a recorder
// of another server reports that the generation was sold out.
func TestF77ALineIsCarriedOverAnewWhenTheLedgerChanges(t *testing.T) {
	type want struct {
		carried int64
		places  []string
		ended   []string
	}
	for name, c := range map[string]struct {
		change func(r *rewind) error
		want   want
	}{
		"a void": {
			func(r *rewind) error { return stage.Err(r.ledger.Campaigns.Void(t.Context(), "op", "c", 2, "a trial")) },
			want{8, []string{"#1", "no", "2.3+0", "2.10+7"}, []string{"1=lost"}},
		},
		"the end of the generation": {
			func(r *rewind) error {
				return stage.Err(r.ledger.Recorder.Record(t.Context(), record.Batch{Campaign: "c", Epoch: 1, Line: gate.LineReport{
					Line: firstcome.Line{Generation: 2},
					Past: []firstcome.PastLine{{Line: firstcome.Line{Generation: 1, LastTicket: 10, ServedThrough: 2, Served: 2, Waiting: 8}, Reason: "sold_out", EndedAt: time.Now().UTC()}},
				}}))
			},
			want{0, []string{"#1", "#2", "no", "no"}, []string{"2=lost", "1=sold_out"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLine(t, services.Ledgers[services.SQLite](t), 100, 10)
			r.serves(2)
			r.records()
			h := &halt{r.ledger.Recorder, r.ledger.Epochs, r.remote.gate.recovery, "finish", make(chan struct{}), make(chan struct{})}
			ended := make(chan recovery.Rebuilt, 1)
			go func() {
				done, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "op", "c", recovery.Order{})
				if err != nil {
					t.Error(err)
				}
				ended <- done
			}()
			<-h.reached
			h.step = "" // it stops once
			stage.Must(t, c.change(r))
			close(h.goOn)
			got := want{carried: (<-ended).Carried, places: r.places("user-0", "user-1", "user-2", "user-9"), ended: r.ended()[0]}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("the rebuild comes to (-want +got):\n%s", diff)
			}
		})
	}
}

// TestF77WhatIsLoadedIsCountedBeforeTheSwitch deletes keys that an attempt has loaded, before its switch. A later attempt loads them again.
func TestF77WhatIsLoadedIsCountedBeforeTheSwitch(t *testing.T) {
	for _, key := range []string{"holders", "line", "tickets"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			r := newLine(t, services.Ledgers[services.SQLite](t), 100, 10)
			r.serves(2)
			h := &halt{r.ledger.Recorder, r.ledger.Epochs, r.remote.gate.recovery, "switch", make(chan struct{}), make(chan struct{})}
			ended := make(chan error, 1)
			go func() {
				_, err := recovery.New(h, h, h, recovery.NewWatch(nil), nil).Rebuild(t.Context(), "op", "c", recovery.Order{})
				ended <- err
			}()
			<-h.reached
			frozen := r.do("HGET", r.key("campaign"), "frozen")
			attempt, err := frozen.ToString()
			stage.Must(t, err)
			if n, err := r.deleted(r.key("attempt:" + attempt + ":" + key)); n != 1 || err != nil {
				t.Fatalf("%d keys are deleted, %v", n, err)
			}
			close(h.goOn)
			if err := <-ended; !errors.Is(err, recovery.ErrMoved) {
				t.Errorf("the rebuild ends with %v", err)
			}
			r.rebuilt(r.rebuilder())
			stage.Same(t, "places", []string{"#1", "#2", "3.3+0", "3.10+7"}, r.places("user-0", "user-1", "user-2", "user-9"))
			r.audited()
		})
	}
}

func (r *rewind) deleted(key string) (int64, error) {
	answer := r.do("DEL", key)
	return answer.AsInt64()
}
