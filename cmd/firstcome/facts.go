package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A topicURL is the URL of a topic of Kafka; empty: none.
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

// String returns the URL as it may be shown.
func (u topicURL) String() string {
	if u == "" {
		return "off"
	}
	return kafka.Shown(string(u))
}

// openFacts makes what publishes facts, if there is a topic. It connects to nothing: whoever claims does not need Kafka.
func (n *node) openFacts() error {
	url := n.flags.Facts
	if url == "" {
		return nil
	}
	var err error
	n.facts, err = kafka.NewPublisher(string(url), kafka.Options{Book: n.ledger.Followers, Facts: n.ledger.Reads.Facts, Ledger: n.ledger.Identity(), OnFail: n.monitor.FactsFailed})
	if err == nil {
		n.monitor.WatchFacts(n.facts)
	}
	return err
}

// published says how far the facts in the topic are behind those in the ledger. What cannot be read of the ledger has been reported before.
func (c *doctorCmd) published(ctx context.Context) (found doctor.Findings) {
	const what = "published facts"
	_ = readLedger(ctx, c.Ledger.path(), func(l *ledger.Ledger) error {
		lag, err := l.Followers.FollowerLag(ctx, kafka.FollowerOf(kafka.TopicOf(string(c.Facts))))
		if err != nil {
			return err
		}
		found.Hold(lag.Ahead == 0, doctor.Fail, what, "see docs/runbooks/FirstcomeFactsAhead.md: the ledger is older than it was",
			"%s of which the topic has facts that the ledger does not have", counted(lag.Ahead, "campaign", "s"))
		late := !lag.Since.IsZero() && time.Since(lag.Since) > lateFacts
		found.Hold(!late, doctor.Warn, what, "nothing, before a node with --facts runs; else its log says why: see docs/runbooks/FirstcomeFactsLate.md",
			"%s not noted as published", counted(lag.Facts, "fact", "s"))
		return nil
	})
	return found
}

// lateFacts is how old a fact that nobody published is when somebody is told.
const lateFacts = time.Minute

type factsCmd struct {
	Replay factsReplayCmd `cmd:"" help:"Have facts published once more, from a position on."`
}

type factsReplayCmd struct {
	ledgerFlag
	outputFlag
	Facts    topicURL `required:"" placeholder:"kafka://HOST:PORT/TOPIC" help:"The topic, as serve has it. FIRSTCOME_FACTS keeps the password out of sight."`
	All      bool     `help:"All facts of all campaigns: of a topic that was recreated, or that has lost some."`
	From     int64    `default:"0" placeholder:"POSITION" help:"Of a campaign: the position of the first fact to publish (default: 1)."`
	Campaign string   `arg:"" optional:"" help:"The campaign."`
}

func (*factsReplayCmd) Help() string {
	return `It writes to the ledger alone, also while nodes serve it; a node with --facts begins anew within a second. What the topic
has already stays there, so consumers get facts again: they know them by their ids.`
}

// check returns what does not fit together.
func (c *factsReplayCmd) check(terminal) []error {
	switch {
	case c.All && (c.Campaign != "" || c.From != 0):
		return []error{errors.New("--all is all campaigns from their first facts on: leave CAMPAIGN and --from out")}
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
	if errors.Is(err, ledger.ErrNoFollower) {
		err = fmt.Errorf("%w: start a node with --facts %s, and it begins with the first facts", err, c.Facts)
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
		fmt.Fprintf(w, "A node with --facts publishes the facts of %s from position %d on once more.\n", what, from)
	})
}
