//go:build !check

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF77ALineOfAFeedLosesNobodyWhateverRedisLoses has twelve people in line. Six were served and recorded, the coupon of user-1 is void, user-9
// left, user-8 got a coupon directly, and user-6 and user-7 were served, of whom nobody knows but Redis. Then Redis loses something.
func TestF77ALineOfAFeedLosesNobodyWhateverRedisLoses(t *testing.T) {
	for what, lose := range map[string]func(f *feeding){
		"everything":                  func(f *feeding) { f.do("FLUSHALL") },
		"the holders":                 func(f *feeding) { f.do("DEL", f.key("holders")) },
		"the holders and the journal": func(f *feeding) { f.do("DEL", f.key("holders"), f.key("journal")) },
		"who left":                    func(f *feeding) { f.do("DEL", f.key("tickets")) },
		"who left, and its type":      func(f *feeding) { f.do("SET", f.key("tickets"), "somebody's") },
		"the counters":                func(f *feeding) { f.do("DEL", f.key("campaign")) },
		"what they count":             func(f *feeding) { f.do("HSET", f.key("campaign"), "line", "nobody can read this") },
		"nothing":                     func(*feeding) {},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			losesNobody(t, services.Ledgers[services.SQLite](t), lose)
		})
	}
	ledgers(t, func(t *testing.T, name string) { losesNobody(t, name, func(f *feeding) { f.do("FLUSHALL") }) })
}

func losesNobody(t *testing.T, name string, lose func(*feeding)) {
	f := newFed(t, name, 100, 12)
	f.serves(6)
	f.records()
	f.voids(2)
	f.leaves("user-9", 10)
	f.directly("user-8")
	f.serves(2)
	lose(f)

	done := f.rebuilt(f.rebuilder())
	stage.Same(t, "who was carried, and who lost a place", [2]int64{}, [2]int64{done.Carried, done.LostPlaces})
	stage.Same(t, "what ended", [2][]string{}, f.ended())
	if line := f.at(); line.Generation != 1 || line.First != 3 || !line.Begun || line.ServedThrough < 6 {
		t.Errorf("the line is %+v", line)
	}
	stage.Same(t, "places", map[firstcome.UserID]string{"user-1": "no", "user-9": "no"}, f.places(map[firstcome.UserID]int64{"user-1": 2, "user-9": 10}))
	f.appends("user-1")
	f.compared()
	f.serves(100)
	f.records()
	got, want := f.inForce(), []string{"user-0@1.1", "user-2@1.3", "user-3@1.4", "user-4@1.5", "user-5@1.6", "user-6@1.7", "user-7@1.8", "user-10@1.11", "user-11@1.12", "user-1@1.13"}
	if len(got) != len(want)+1 || !slices.Contains(got, "user-8@0.0") && !slices.Contains(got, "user-8@1.9") {
		t.Errorf("user-8 has no coupon, or somebody has two: %v", got)
	}
	got = slices.DeleteFunc(got, func(c string) bool { return c == "user-8@0.0" || c == "user-8@1.9" })
	stage.Same(t, "who has a coupon, in the order of the numbers", want, got)
	stage.Same(t, "how far the line is served", int64(13), f.at().ServedThrough)
	f.compared()
}

// TestF77AnOlderGateOfAFeedServesNobodyTwice takes a gate back to when two had been served and nobody had left. Then four more were served and
// recorded, one of whom has a void coupon, and two left, one of whom before they were served.
func TestF77AnOlderGateOfAFeedServesNobodyTwice(t *testing.T) {
	f := newFed(t, services.Ledgers[services.SQLite](t), 100, 10)
	f.leaves("user-6", 7)
	f.serves(2)
	f.keep()
	f.leaves("user-3", 4)
	f.serves(4)
	f.records()
	f.voids(5)
	f.leaves("user-6", 9)
	f.feed = append(f.feed, "user-6")
	f.back()
	f.rebuilt(f.rebuilder())
	f.compared()
	stage.Same(t, "who is served", []string{"user-7@1.8", "user-8@1.9", "user-9@1.10", "user-6@1.11"}, tickets(f.serves(100)))
	f.records()
	f.compared()
}

// TestF77WhoLeftAnEarlierGenerationOfAFeedIsServed takes a gate back to before a generation ended, which somebody had left with a late ticket.
func TestF77WhoLeftAnEarlierGenerationOfAFeedIsServed(t *testing.T) {
	f := newFed(t, services.Ledgers[services.SQLite](t), 1, 2)
	f.leaves("user-1", 9)
	f.keep()
	f.serves(1)
	f.records()
	f.voids(1)
	f.begins(2)
	f.back()
	f.rebuilt(f.rebuilder())
	f.compared()
	f.appends("user-1")
	stage.Same(t, "who is served", []string{"user-1@2.1"}, tickets(f.serves(9)))
}

// TestF77AGenerationOfAFeedThatRedisEndedIsNotServedAgain has Redis end a generation, of which the ledger has not heard. The next one begins or does
// not, and Redis is emptied or is not.
func TestF77AGenerationOfAFeedThatRedisEndedIsNotServedAgain(t *testing.T) {
	for what, c := range map[string]struct {
		begins bool
		lose   func(f *feeding)
		ended  string
		line   firstcome.Line
	}{
		"a generation that goes on in Redis":                  {true, func(*feeding) {}, "1=sold_out", firstcome.Line{Generation: 2, First: 8, Begun: true}},
		"a generation that has begun, and an emptied Redis":   {true, func(f *feeding) { f.do("FLUSHALL") }, "1=lost", firstcome.Line{Generation: 2, First: 8, Begun: true}},
		"a generation that has begun, and no journal":         {true, func(f *feeding) { f.do("DEL", f.key("journal")) }, "1=lost", firstcome.Line{Generation: 2, First: 8, Begun: true}},
		"a generation that has not begun in Redis":            {false, func(*feeding) {}, "1=sold_out", firstcome.Line{Generation: 2}},
		"a generation that has not begun, and no journal":     {false, func(f *feeding) { f.do("DEL", f.key("journal")) }, "1=lost", firstcome.Line{Generation: 2}},
		"a generation that nobody knows of, in emptied Redis": {false, func(f *feeding) { f.do("FLUSHALL") }, "", firstcome.Line{Generation: 1, First: 3, Begun: true}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFed(t, services.Ledgers[services.SQLite](t), 3, 5)
			stage.Same(t, "who is served", 3, len(f.serves(5)))
			f.terms(func(terms *firstcome.Terms) { terms.Quantity = 9 })
			if c.begins {
				stage.Await(t, "stock that has left quarantine", "waiting:0", func() string { return f.claims("new")[0] })
				f.begins(2)
				f.appends("new")
			}
			c.lose(f)
			f.rebuilt(f.rebuilder())
			got := f.at()
			got.Due, got.LastTicket, got.ServedThrough, got.Served = c.line.Due, 0, 0, 0
			stage.Same(t, "the line", c.line, got)
			want := [2][]string{}
			if c.ended != "" {
				want = [2][]string{{c.ended}, {c.ended}}
			}
			stage.Same(t, "what ended", want, f.ended())
			f.records()
			f.compared()
			if c.begins {
				stage.Same(t, "who is served", []string{"new@2.1"}, tickets(f.serves(9)))
			}
		})
	}
}

// TestP9TheLedgersWordIsWhereAGenerationBegins has the ledger hear of a generation, and Redis not, or two nodes begin it at two offsets.
func TestP9TheLedgersWordIsWhereAGenerationBegins(t *testing.T) {
	for what, rebuild := range map[string]func(f *feeding){
		"as it is": func(*feeding) {},
		"behind a rebuild": func(f *feeding) {
			f.rebuilt(f.rebuilder())
			stage.Same(f.t, "where it has begun", int64(8), f.at().First)
		},
		"behind a rebuild of an emptied Redis": func(f *feeding) {
			f.do("FLUSHALL")
			f.rebuilt(f.rebuilder())
			stage.Same(f.t, "where it has begun", int64(8), f.at().First)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFed(t, services.Ledgers[services.SQLite](t), 1, 5)
			f.serves(1)
			f.records()
			f.voids(1)
			stage.Must(t, stage.Err(f.ledger.Begin(t.Context(), "c", firstcome.Feed{Topic: "id"}, 2, 8))) // one node, which does not come to the gate
			rebuild(f)
			other, err := f.over.Begin(t.Context(), "c", firstcome.Feed{Topic: "id"}, 2, 11)
			stage.Must(t, err)
			late, err := f.remote.gate.Begin(t.Context(), "c", firstcome.Feed{Topic: "id"}, 2, 8)
			stage.Must(t, err)
			known, err := f.ledger.LineOf(t.Context(), "c")
			stage.Must(t, err)
			stage.Same(t, "where it begins", []int64{8, 8, 8, 8}, []int64{other.First, late.First, f.at().First, known.Line.First})
			f.compared()
		})
	}
}

// TestF75AnotherFeedEndsTheGenerationAtBoth gives the campaign another partition while people are in line, when Redis has heard of their
// generation or has not, and loses Redis's word of it or does not.
func TestF75AnotherFeedEndsTheGenerationAtBoth(t *testing.T) {
	for what, lose := range map[string]func(f *feeding){
		"as it is":         func(*feeding) {},
		"in another order": func(f *feeding) { f.records() },
		"a rebuild":        func(f *feeding) { f.rebuilt(f.rebuilder()) },
		"an emptied Redis": func(f *feeding) { f.do("FLUSHALL"); f.rebuilt(f.rebuilder()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFed(t, services.Ledgers[services.SQLite](t), 9, 5)
			f.serves(2)
			f.terms(func(terms *firstcome.Terms) { terms.Feed = &firstcome.Feed{Topic: "id", Partition: 1} })
			lose(f)
			stage.Same(t, "what ended", [2][]string{{"1=lost"}, {"1=lost"}}, f.ended())
			stage.Same(t, "the place of who was in line", map[firstcome.UserID]string{"user-4": "no"}, f.places(map[firstcome.UserID]int64{"user-4": 5}))
			f.feed = nil
			if line := f.begins(2); line.Generation != 2 || !line.Begun || line.First != 0 {
				t.Errorf("the next one begins as %+v", line)
			}
			f.appends("user-4", "new")
			stage.Same(t, "who is served", []string{"user-4@2.1", "new@2.2"}, tickets(f.serves(9)))
			f.records()
			f.compared()
			if what == "an emptied Redis" {
				return
			}
			told, err := f.ledger.LineOf(t.Context(), "c")
			stage.Must(t, err)
			known, err := f.remote.gate.LineOf(t.Context(), "c")
			stage.Must(t, err)
			stage.Same(t, "what ended, by the gate and by the ledger", known.Past, told.Past)
		})
	}
	t.Run("Redis has not heard of the generation", func(t *testing.T) {
		t.Parallel()
		f := newFed(t, services.Ledgers[services.SQLite](t), 1, 2)
		f.serves(1)
		f.records()
		f.voids(1)
		stage.Must(t, stage.Err(f.ledger.Begin(t.Context(), "c", firstcome.Feed{Topic: "id"}, 2, 5)))
		f.terms(func(terms *firstcome.Terms) { terms.Feed = &firstcome.Feed{Topic: "id", Partition: 1} })
		f.feed = nil
		if line := f.begins(f.at().Generation); line.Generation != 3 || !line.Begun || line.First != 0 {
			t.Errorf("the next one begins as %+v", line)
		}
		f.compared()
	})
	t.Run("the change is on its way", func(t *testing.T) {
		t.Parallel()
		f := newFed(t, services.Ledgers[services.SQLite](t), 1, 2)
		f.serves(1)
		f.records()
		f.voids(1)
		_, err := f.ledger.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Feed = &firstcome.Feed{Topic: "id", Partition: 1} })
		stage.Must(t, err)
		if _, err := f.over.Begin(t.Context(), "c", firstcome.Feed{Topic: "id"}, 2, 5); !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("a generation begins in nobody knows which feed: %v", err)
		}
		f.reaches("c", nil)
		stage.Same(t, "where it begins behind it", int64(2), f.begins(2).Generation)
	})
}

// TestF01ALineOfAFeedGoesOnBehindARestart kills a Redis that syncs before it answers. Where it has another feed than the ledger, it is rebuilt.
func TestF01ALineOfAFeedGoesOnBehindARestart(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*feeding)
		want   recovery.Stats
	}{
		"as it is":      {func(*feeding) {}, recovery.Stats{Verified: 1}},
		"another topic": {func(f *feeding) { f.do("HSET", f.key("campaign"), "line", "1 2 2 2 0 0 0 0 other 0 0 1") }, recovery.Stats{Finished: 1}},
		"no topic":      {func(f *feeding) { f.do("HSET", f.key("campaign"), "line", "1 2 2 2 0 0 0 0") }, recovery.Stats{Finished: 1}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := services.Redis.Server(t, "--appendfsync", "always")
			f := &feeding{rewind: &rewind{desk: newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil)}}
			terms := stage.Terms(100)
			terms.Pace, terms.Feed = &firstcome.Pace{}, &firstcome.Feed{Topic: "id"}
			f.reaches("c", f.ledger.Create(t.Context(), "test", "c", terms))
			f.through()
			r := f.watch()
			f.begins(1)
			f.appends(people("user-", 6)...)
			f.serves(2)
			f.leaves("user-3", 4)
			c.change(f)
			stage.Must(t, server.Kill())
			stage.Must(t, server.Restart(t.Context()))
			got := f.decides(r)
			got.Lost = 0
			stage.Same(t, "what became of the gate", c.want, got)
			stage.Same(t, "who is served", []string{"user-2@1.3", "user-4@1.5", "user-5@1.6"}, tickets(f.serves(9)))
			f.records()
			f.compared()
		})
	}
}

// TestF77NobodyLeavesWhileTheGateIsMadeAnew has the ledger refuse to note who left, since the new gate may not know it.
func TestF77NobodyLeavesWhileTheGateIsMadeAnew(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		f := newFed(t, name, 9, 3)
		attempt, err := f.ledger.BeginRebuild(t.Context(), "op", "c", 0)
		stage.Must(t, err)
		err = f.ledger.KeepLeaver(t.Context(), "c", "user-1", firstcome.Ticket{Generation: 1, Number: 2})
		if !errors.Is(err, flow.ErrRebuilding) || !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("who leaves meanwhile is told %v", err)
		}
		stage.Must(t, f.ledger.GiveUpRebuild(t.Context(), attempt))
		f.leaves("user-1", 2)
	})
}

// TestF54P9AReconcileKeepsTheLineOfAFeed has people in line when the backup is made. Behind it two left, some were served, of whom one has a void
// coupon, and the campaign got another feed or did not.
func TestF54P9AReconcileKeepsTheLineOfAFeed(t *testing.T) {
	for _, refed := range []bool{false, true} {
		t.Run(fmt.Sprint("another feed: ", refed), func(t *testing.T) {
			ledgers(t, func(t *testing.T, name string) {
				f := newFed(t, name, 100, 10)
				f.serves(2)
				f.leaves("user-9", 8) // and with a later ticket behind the backup
				f.records()
				b := f.backup()
				generation := int64(1)
				if refed {
					f.terms(func(terms *firstcome.Terms) { terms.Feed = &firstcome.Feed{Topic: "id", Partition: 1} })
					f.feed = nil
					f.begins(2)
					f.appends(people("user-", 12)[2:]...)
					generation = 2
				}
				f.leaves("user-8", 9)
				f.leaves("user-9", 10)
				f.settleAll(f.record(f.serves(2)...))
				f.voids(4)
				f.serves(2)
				f.desk = b.restore()
				f.through()

				stage.Must(t, stage.Err(f.rebuilder().Reconcile(t.Context(), "op", "c")))
				stage.Same(t, "the generation", generation, f.at().Generation)
				got := tickets(f.serves(100))
				for _, c := range got {
					for _, not := range []string{"user-2", "user-3@", "user-4", "user-5", "user-8", "user-9"} {
						if len(c) >= len(not) && c[:len(not)] == not {
							t.Errorf("%s is served again", c)
						}
					}
				}
				f.appends("user-3")
				stage.Same(t, "who has a void coupon, and claims again", 1, len(f.serves(9)))
				if s := f.status(); refed != (s.Feed.Partition == 1) {
					t.Errorf("the feed is %+v", s.Feed)
				}
			})
		})
	}
}

// TestTheAuditFindsDamageToTheLineOfAFeedAtRedis changes what Redis has of a line whose ticket 1.8 is next, of which user-9 and user-10 left and the
// first six have coupons.
func TestTheAuditFindsDamageToTheLineOfAFeedAtRedis(t *testing.T) {
	line := func(field string) func(*feeding) {
		return func(f *feeding) { f.do("HSET", f.key("campaign"), "line", field) }
	}
	mark := func(entry string) func(*feeding) {
		return func(f *feeding) { f.do("HSET", f.key("tickets"), "user-9", entry) }
	}
	for what, c := range map[string]struct {
		damage func(*feeding)
		text   string
	}{
		"nothing":                             {func(*feeding) {}, ""},
		"another partition":                   {line("1 7 7 6 0 0 0 0 id 5 3 2"), "by the gate the line is in the partition 5 of the topic id, and by the ledger"},
		"another beginning":                   {line("1 7 7 6 0 0 0 0 id 0 4 2"), "begins at the offset 4 at the gate, and at 3 by the ledger"},
		"a generation that has not begun":     {line("1 7 7 6 0 0 0 0 id 0 - 2"), "begun: false"},
		"tickets that are to be served again": {line("1 5 5 5 0 0 0 0 id 0 3 2"), "whose turn has not come at the gate"},
		"fewer served":                        {line("1 7 7 5 0 0 0 0 id 0 3 2"), "counts 5 tickets served, and 6 coupons name one of them"},
		"somebody in line":                    {line("1 8 7 6 1 0 0 0 id 0 3 2"), "1 in line"},
		"the next generation":                 {line("2 0 0 0 0 0 0 0 id 0 9 2"), "generation 2 has begun at the gate, and the ledger does not know it"},
		"no feed":                             {line("1 7 7 6 0 0 0 0"), "by the gate the line is at its gate"},
		"nothing that can be read":            {line("1 7 7 6 0 0 0 0 id"), "cannot be read"},
		"who left, not counted":               {line("1 7 7 6 0 0 0 0 id 0 3 1"), "counts 1 users who left, and has 2"},
		"who left, gone":                      {func(f *feeding) { f.do("DEL", f.key("tickets")) }, `the user "user-9" left with all tickets up to 1.10, and the gate would serve them`},
		"who left with an earlier ticket":     {mark("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x09\x01"), `the user "user-9" left with all tickets up to 1.10`},
		"who left an older generation":        {mark("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0a\x01"), `the user "user-9" left with all tickets up to 1.10`},
		"a ticket":                            {mark("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x0a"), `the ticket 1.10 of the user "user-9" was not given by the gate`},
		"a mark that cannot be read":          {mark("x"), "cannot be read"},
		"somebody at the gate":                {func(f *feeding) { f.do("XADD", f.key("line"), "1-8", "user", "user-7", "at", "1") }, "is in line at the gate, and a topic keeps the line"},
		"who was served, as who left": {func(f *feeding) {
			f.do("HSET", f.key("tickets"), "user-2", "\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x03\x01")
			line("1 7 7 6 0 0 0 0 id 0 3 3")(f)
		}, `was issued to the ticket 1.3 of the user "user-2", who had left`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFed(t, services.Ledgers[services.SQLite](t), 100, 6)
			f.appends("user-0", "user-7", "user-8", "user-9", "user-10")
			f.leaves("user-9", 10)
			f.leaves("user-10", 11)
			f.serves(7)
			f.records()
			c.damage(f)
			gate, err := redisKind{}.inspect(t.Context(), f.url, f.ledger, f.marker)
			stage.Must(t, err)
			defer gate.Close()
			campaign := f.status()
			found, err := compareWithGate(t.Context(), f.ledger.Books().Source(), gate, nil, &campaign, nil)
			stage.Must(t, err)
			switch {
			case c.text == "":
				if found.Breaches.Total > 0 {
					t.Errorf("without damage there is %+v", found.Breaches.Shown)
				}
			case !slices.ContainsFunc(found.Breaches.Shown, func(b audit.Breach) bool { return strings.Contains(b.Text, c.text) }):
				t.Errorf("the audit finds %+v, and not that %s", found.Breaches.Shown, c.text)
			}
		})
	}
}
