package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A topicURL is the URL of a Kafka topic, or empty for no topic.
type topicURL string

func (u *topicURL) UnmarshalText(text []byte) error {
	if len(text) > 0 {
		if err := kafka.CheckURL(string(text)); err != nil {
			return err
		}
	}
	*u = topicURL(text)
	return nil
}

// String returns the URL without user and password.
func (u topicURL) String() string {
	if u == "" {
		return "off"
	}
	return kafka.Shown(string(u))
}

// openFacts creates the publisher of facts, if there is a topic. It does not connect to Kafka, which claims do not need.
func (n *node) openFacts() error {
	url := n.flags.Facts
	if url == "" {
		return nil
	}
	var err error
	n.facts, err = kafka.NewPublisher(string(url), kafka.Options{Cursors: n.ledger.Followers, Facts: n.ledger.Reads.Facts, Terms: n.terms.Terms, Ledger: n.ledger.Identity(), OnFail: n.monitor.FactsFailed})
	if err == nil {
		n.monitor.WatchFacts(n.facts)
	}
	return err
}

// published reports how far the topic lags behind the facts in the ledger. Earlier findings have the errors of reading the ledger.
func (c *doctorCmd) published(ctx context.Context) (found doctor.Findings) {
	const what = "published facts"
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		lag, err := l.Followers.FollowerLag(ctx, kafka.FollowerOf(kafka.TopicOf(string(c.Facts))))
		if err != nil {
			return err
		}
		found.Hold(lag.Ahead == 0, doctor.Fail, what, "see docs/runbooks/FirstcomeFactsAhead.md: the ledger is older than it was",
			"the topic has facts that the ledger lacks, of %s", counted(lag.Ahead, "campaign", "s"))
		late := !lag.Since.IsZero() && time.Since(lag.Since) > lateFacts
		found.Hold(!late, doctor.Warn, what, "nothing, if no node with --facts runs yet; otherwise read the node's log, and see docs/runbooks/FirstcomeFactsLate.md",
			"%s not yet noted as published", counted(lag.Facts, "fact", "s"))
		return nil
	})
	return found
}

// lateFacts is the age from which doctor reports an unpublished fact.
const lateFacts = time.Minute

type factsCmd struct {
	Replay factsReplayCmd `cmd:"" help:"Publish facts again, from a position on."`
}

type factsReplayCmd struct {
	ledgerFlag
	outputFlag
	Facts    topicURL `required:"" placeholder:"kafka://HOST:PORT/TOPIC" help:"The topic, as in serve --facts. If the URL has a password, set FIRSTCOME_FACTS instead."`
	All      bool     `variable:"none" help:"Publish all facts of all campaigns again, for a topic that was recreated or has lost facts."`
	From     int64    `default:"0" placeholder:"POSITION" help:"With a campaign: the position of the first fact to publish (default: 1)."`
	Campaign string   `arg:"" optional:"" help:"The campaign whose facts to publish again."`
}

func (*factsReplayCmd) Help() string {
	return `replay writes only to the ledger, also while nodes serve it. Within a second, a node with --facts starts to publish from
the position. Facts that the topic already has stay there, so consumers get them twice: the facts have the same ids.`
}

// check returns an error if the flags do not fit together.
func (c *factsReplayCmd) check(terminal) []error {
	switch {
	case c.All && (c.Campaign != "" || c.From != 0):
		return []error{errors.New("--all means all campaigns from their first facts on: leave CAMPAIGN and --from out")}
	case !c.All && c.Campaign == "":
		return []error{errors.New("name a CAMPAIGN, or --all")}
	case c.From < 0:
		return []error{errors.New("--from: positions begin at 1")}
	}
	return nil
}

func (c *factsReplayCmd) Run(ctx context.Context, t terminal) error {
	if err := mustExist(c.Ledger.path()); err != nil {
		return err
	}
	from, follower := max(c.From, 1), kafka.FollowerOf(kafka.TopicOf(string(c.Facts)))
	err := writeLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		if c.All {
			return l.Followers.ReplayAllFacts(ctx, actor(), follower)
		}
		return l.Followers.ReplayFacts(ctx, actor(), follower, firstcome.CampaignID(c.Campaign), from)
	})
	if errors.Is(err, follow.ErrNoFollower) {
		err = fmt.Errorf("%w: start a node with --facts %s, which publishes from the first fact on", err, c.Facts)
	}
	if err != nil {
		return err
	}
	done := struct {
		Campaign string `json:"campaign_id,omitempty"`
		From     int64  `json:"from"`
		Follower string `json:"follower"`
	}{c.Campaign, from, follower}
	return c.print(t, done, func(w io.Writer) {
		what := "all campaigns"
		if c.Campaign != "" {
			what = c.Campaign
		}
		fmt.Fprintf(w, "A node with --facts will publish the facts of %s again, from position %d on.\n", what, from)
	})
}
