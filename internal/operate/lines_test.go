package operate_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/test/stage"
)

// A topic gives partitions and says of each feed whether it is lost, as a test wants it.
type topic struct {
	free  []firstcome.Feed // are given in turn; behind the last one there is none
	lost  bool
	err   error // of both methods
	asked int
	// meanwhile is called between the look for a lost feed and the one for a free partition.
	meanwhile func()
}

func (p *topic) Feed(context.Context) (feed firstcome.Feed, err error) {
	if p.asked++; p.meanwhile != nil {
		p.meanwhile()
	}
	if p.err != nil {
		return feed, p.err
	}
	if len(p.free) == 0 {
		return feed, firstcome.ErrNoPartition
	}
	feed, p.free = p.free[0], p.free[1:]
	return feed, nil
}

func (p *topic) Lost(context.Context, firstcome.CampaignID, firstcome.Feed) (bool, error) {
	return p.lost, p.err
}

// A hall is an Operator at a ledger, with lines in a topic, and the clock of both.
type hall struct {
	*operate.Operator
	t      *testing.T
	ledger *ledger.Ledger
	topic  *topic
	now    time.Time
}

func newHall(t *testing.T, free ...firstcome.Feed) *hall {
	t.Helper()
	h := &hall{t: t, topic: &topic{free: free}, now: stage.Epoch}
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Secret: stage.Secret(), Clock: func() time.Time { return h.now }})
	stage.Must(t, err)
	stage.Serve(t, l)
	h.ledger, h.Operator = l, operate.New(l, &desk{}, nil)
	h.Lines = h.topic
	return h
}

// create makes the campaign c, which closes in an hour.
func (h *hall) create() {
	h.t.Helper()
	terms := stage.Terms(9)
	terms.Pace, terms.ClosesAt = &firstcome.Pace{PerSecond: 5}, h.now.Add(time.Hour)
	stage.Must(h.t, stage.Err(h.Create(h.t.Context(), "test", "c", terms)))
}

// begin has somebody in line of c.
func (h *hall) begin() {
	h.t.Helper()
	stage.Must(h.t, stage.Err(h.ledger.Begin(h.t.Context(), "c", h.feed(), h.line().Generation, 7)))
}

func (h *hall) line() firstcome.Line {
	h.t.Helper()
	state, err := h.ledger.LineOf(h.t.Context(), "c")
	stage.Must(h.t, err)
	return state.Line
}

// ended returns why the generations of c ended, the last one first.
func (h *hall) ended() (reasons []string) {
	h.t.Helper()
	state, err := h.ledger.LineOf(h.t.Context(), "c")
	stage.Must(h.t, err)
	for _, p := range state.Past {
		reasons = append(reasons, p.Reason)
	}
	return reasons
}

func (h *hall) feed() firstcome.Feed {
	h.t.Helper()
	s, err := h.ledger.Campaign(h.t.Context(), "c")
	stage.Must(h.t, err)
	return *s.Feed
}

// The feeds of these tests.
var (
	first  = firstcome.Feed{Topic: "a", Partition: 0}
	second = firstcome.Feed{Topic: "a", Partition: 1}
	anew   = firstcome.Feed{Topic: "b", Partition: 0}
)

func samePace(t *firstcome.Terms) { t.Pace = &firstcome.Pace{PerSecond: 5} }
func noPace(t *firstcome.Terms)   { t.Pace = nil }
func more(t *firstcome.Terms)     { t.Quantity++ }
func longer(t *firstcome.Terms)   { t.ClosesAt = t.ClosesAt.Add(24 * time.Hour) }

// TestACampaignWhoseTopicIsLostGetsAnotherPartitionByItsPace edits the terms of a campaign in whose line somebody is.
func TestACampaignWhoseTopicIsLostGetsAnotherPartitionByItsPace(t *testing.T) {
	for name, test := range map[string]struct {
		lost  bool
		edit  func(*firstcome.Terms)
		want  firstcome.Feed
		ended []string
	}{
		"its pace is set to what it is":    {true, samePace, anew, []string{"lost"}},
		"its pace is taken away":           {true, noPace, anew, []string{"lost"}},
		"its quantity is raised":           {true, more, first, nil},
		"its pace is set, and all is well": {false, samePace, first, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t, first, anew)
			h.create()
			h.begin()
			h.topic.lost = test.lost
			s, err := h.SetTerms(t.Context(), "test", "c", 0, test.edit)
			stage.Must(t, err)
			if feed := h.feed(); feed != test.want || *s.Feed != feed {
				t.Errorf("its feed is %+v, and was answered as %+v", feed, *s.Feed)
			}
			stage.Same(t, "ended", test.ended, h.ended())
			if line := h.line(); line.Begun == (test.want != first) {
				t.Errorf("its line is %+v", line)
			}
		})
	}
}

// TestALineThatNobodyJoinedIsNotLost: nobody has a ticket of the generation, so it goes on in the other partition.
func TestALineThatNobodyJoinedIsNotLost(t *testing.T) {
	h := newHall(t, first, anew)
	h.create()
	h.topic.lost = true
	stage.Must(t, stage.Err(h.SetTerms(t.Context(), "test", "c", 0, samePace)))
	if line := h.line(); line.Generation != 1 || h.feed() != anew || h.ended() != nil {
		t.Errorf("its line is %+v, its feed %+v; ended are %v", line, h.feed(), h.ended())
	}
}

// TestACampaignThatGoesOnGetsAPartitionAgain has a campaign be over and give its partition up, and then be open for longer. It may get the
// same partition. Whoever was in line has heard that it closed, and does not hear otherwise.
func TestACampaignThatGoesOnGetsAPartitionAgain(t *testing.T) {
	for name, again := range map[string]firstcome.Feed{"the same": first, "another": second} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t, first, again)
			h.create()
			h.begin()
			h.now = h.now.Add(2 * time.Hour)
			free, err := h.ledger.FreePartition(t.Context(), first.Topic, 1)
			if err != nil || free != 0 || h.feed().Partition != -1 {
				t.Fatalf("the partition %d is free, the campaign's feed is %+v, %v", free, h.feed(), err)
			}
			h.topic.lost = true
			s, err := h.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Quantity = 9 })
			if err != nil || s.Version != 1 {
				t.Errorf("an edit that changes nothing made version %d, %v", s.Version, err)
			}
			stage.Must(t, stage.Err(h.SetTerms(t.Context(), "test", "c", 0, longer)))
			if h.feed() != again {
				t.Errorf("it got the feed %+v", h.feed())
			}
			stage.Same(t, "ended", []string{"closed"}, h.ended())
			if line := h.line(); line.Generation != 2 || line.Begun {
				t.Errorf("its line is %+v", line)
			}
		})
	}
}

// TestACampaignThatStaysOverGetsNoPartition edits one that is over, also its pace.
func TestACampaignThatStaysOverGetsNoPartition(t *testing.T) {
	h := newHall(t, first, second)
	h.create()
	h.now = h.now.Add(2 * time.Hour)
	stage.Must(t, stage.Err(h.ledger.FreePartition(t.Context(), first.Topic, 1)))
	h.topic.lost = true
	for name, edit := range map[string]func(*firstcome.Terms){"quantity": more, "pace": noPace} {
		if stage.Must(t, stage.Err(h.SetTerms(t.Context(), "test", "c", 0, edit))); h.feed().Partition != -1 {
			t.Errorf("by its %s it has the feed %+v", name, h.feed())
		}
	}
}

// TestOfTwoOperatorsAtOnceOneGivesThePartition: the other one finds that the line is in another feed than the one that is lost.
func TestOfTwoOperatorsAtOnceOneGivesThePartition(t *testing.T) {
	h := newHall(t, first, second, anew)
	h.create()
	h.topic.lost = true
	h.topic.meanwhile = func() {
		h.topic.meanwhile = func() {}
		stage.Must(t, stage.Err(h.SetTerms(t.Context(), "faster", "c", 0, samePace)))
		h.begin()
	}
	stage.Must(t, stage.Err(h.SetTerms(t.Context(), "test", "c", 0, samePace)))
	if h.feed() != second || !h.line().Begun {
		t.Errorf("it has the feed %+v, and its line is %+v", h.feed(), h.line())
	}
}

// TestNothingChangesWhileTheTopicDoesNotAnswer, nor where no partition is free: the answer says which.
func TestNothingChangesWhileTheTopicDoesNotAnswer(t *testing.T) {
	for _, want := range []error{firstcome.ErrFeedAway, firstcome.ErrNoPartition} {
		h := newHall(t, first)
		h.create()
		h.topic.lost = true
		if !errors.Is(want, firstcome.ErrNoPartition) {
			h.topic.err = want
		}
		_, err := h.SetTerms(t.Context(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace, t.Quantity = &firstcome.Pace{}, 99 })
		s, not := h.ledger.Campaign(t.Context(), "c")
		if !errors.Is(err, want) || not != nil || s.Version != 1 {
			t.Errorf("%v: %v, and the version is %d, %v", want, err, s.Version, not)
		}
	}
}

// TestAPartitionThatAnotherCampaignTookIsNotShared: between the look for a free partition and the change, another one takes it.
func TestAPartitionThatAnotherCampaignTookIsNotShared(t *testing.T) {
	h := newHall(t, first, second, second, anew, anew, anew)
	h.create()
	terms := stage.Terms(9)
	terms.Pace = &firstcome.Pace{}
	stage.Must(t, stage.Err(h.Create(t.Context(), "test", "d", terms)))
	h.topic.lost = true
	stage.Must(t, stage.Err(h.SetTerms(t.Context(), "test", "c", 0, samePace)))
	if h.feed() != anew {
		t.Errorf("it has the feed %+v", h.feed())
	}
}

// TestAStaleEditAsksForNoPartition: it is refused for what is wrong with it.
func TestAStaleEditAsksForNoPartition(t *testing.T) {
	h := newHall(t, first)
	h.create()
	h.topic.lost, h.topic.err = true, errors.New("asked")
	if _, err := h.SetTerms(t.Context(), "test", "c", 7, samePace); !errors.Is(err, firstcome.ErrStale) {
		t.Errorf("%v", err)
	}
	stage.Must(t, stage.Err(h.Switch(t.Context(), "test", "c", 0, ledger.Close)))
	if _, err := h.SetTerms(t.Context(), "test", "c", 0, samePace); !errors.Is(err, firstcome.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := h.SetTerms(t.Context(), "test", "d", 0, samePace); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("%v", err)
	}
}

// TestWhatKeepsACampaignFromBeingMadeIsToldBeforeThePartitions: a campaign that is made twice exists, also if it has the last partition, and
// terms that are not allowed are refused for that.
func TestWhatKeepsACampaignFromBeingMadeIsToldBeforeThePartitions(t *testing.T) {
	h := newHall(t, first)
	h.create()
	terms := stage.Terms(9)
	terms.Pace = &firstcome.Pace{}
	if _, err := h.Create(t.Context(), "test", "c", terms); !errors.Is(err, firstcome.ErrCampaignExists) {
		t.Errorf("the recreated campaign is %v", err)
	}
	if _, err := h.Create(t.Context(), "test", "d", terms); !errors.Is(err, firstcome.ErrNoPartition) {
		t.Errorf("one without a partition is %v", err)
	}
	asked := h.topic.asked
	terms.Name = ""
	if _, err := h.Create(t.Context(), "test", "d", terms); !errors.As(err, new(*firstcome.FieldError)) || h.topic.asked != asked {
		t.Errorf("one without a name is %v", err)
	}
}

// TestACopyOfTermsHasAFeedOfItsOwn makes a campaign from another one's terms.
func TestACopyOfTermsHasAFeedOfItsOwn(t *testing.T) {
	h := newHall(t, first, second)
	h.create()
	from, err := h.ledger.Campaign(t.Context(), "c")
	stage.Must(t, err)
	copied, err := h.Create(t.Context(), "test", "d", from.Terms)
	if err != nil || *copied.Feed != second {
		t.Errorf("the copy has the feed %+v, %v", copied.Feed, err)
	}
	from.Pace = nil
	if copied, err = h.Create(t.Context(), "test", "e", from.Terms); err != nil || copied.Feed != nil {
		t.Errorf("the copy without a pace has the feed %+v, %v", copied.Feed, err)
	}
	h.Lines = nil
	from.Pace = &firstcome.Pace{}
	if copied, err = h.Create(t.Context(), "test", "f", from.Terms); err != nil || copied.Feed != nil {
		t.Errorf("the copy at a node whose lines are at the gate has the feed %+v, %v", copied.Feed, err)
	}
}
