package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

const (
	// refusalLease is how long a node may repeat a refusal: at most five calls a
	// second for a campaign that is sold out.
	refusalLease = 200 * time.Millisecond
	// quarantineFor is how long stock that came back counts as in force: longer than any lease
	// that was granted before, by a quarter for clocks that do not run alike.
	quarantineFor = 250 * time.Millisecond

	// defaultMaxLine is that of the ledger.
	defaultMaxLine = 1_000_000

	// defaultBacklog is about a minute of issuing at the fastest: if the ledger is down longer,
	// an operator should learn it from 503s rather than from a Redis without memory.
	defaultBacklog = 1_000_000

	// callTimeout bounds the calls that have no deadline of their caller's.
	callTimeout = 5 * time.Second
)

// Options say which Redis decides, and how.
type Options struct {
	// URL is redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// for TLS. More nodes of a
	// cluster may follow as ?addr=HOST:PORT, Sentinel's name of the primary as ?master_set=.
	URL string
	// Secret makes the codes.
	Secret firstcome.Secret
	// AnyEviction accepts a Redis that may evict keys, with a warning.
	AnyEviction bool
	// KeepUnnamed gives no name to a Redis without one. The gate then has no name either, and makes no campaign.
	KeepUnnamed bool
	// KnownAs is the name, as Name returns it, that a Redis without one gets: it was emptied and is that gate again. Empty: a new one.
	KnownAs string
	// Backlog is how many numbers of a campaign may be undrained before no more are
	// issued. Default 1,000,000; negative: any.
	Backlog int64
	// MaxLine is how many people may be in line of a campaign. Default 1,000,000.
	MaxLine int64
	// Clock is the gate's, for tests. Nil: the server's.
	Clock func() time.Time
	// Ledger names the ledger that the gate decides for: several ledgers may share a Redis. It is
	// first called when Open has returned. Nil: it has no name.
	Ledger func() string
	// Marker returns the ledger's permanent name for a campaign, or firstcome.ErrNoCampaign: see
	// firstcome.Change. Another marker means other keys. Nil: all have the same.
	Marker func(context.Context, firstcome.CampaignID) (string, error)
	// Epoch returns the epoch of a campaign by the ledger, as far as the node knows: in an earlier one nothing is decided. 0: it does not
	// know. Nil: it never does.
	Epoch func(firstcome.CampaignID) int64
	// Lined returns the campaigns that may have people in line, as far as the ledger knows: those with a pace, and those that
	// had one. Nil: none.
	Lined func(context.Context) ([]gate.Revision, error)
	// Missing says what it means that the gate has no such campaign: the ledger knows
	// whether it should have it; firstcome.ErrBusy: it is being made, and no gate ever
	// had it. Nil, or if it returns nil: firstcome.ErrNoCampaign.
	Missing func(context.Context, firstcome.CampaignID) error
}

// A Gate decides claims in Redis. Make one with Open. Its methods may be called
// from many goroutines. Their errors are Errors, firstcome's and flow's.
type Gate struct {
	client   rueidis.Client
	options  Options
	instance string
	warnings []string

	claim, apply, settle, has, look, place, forget                              *rueidis.Lua
	standing, memory, freeze, empty, carry, seat, switchScript, stopped, verify *rueidis.Lua // of a rebuild

	keyring   keyring
	remembers *memory
	lag       schedule // of Lag
	behind    schedule // of Behind
}

var _ gate.Gate = (*Gate)(nil)

// kind begins the names of this kind of gates.
const kind = "redis:"

// Name returns what a campaign says of its gate: redis:INSTANCE; or nothing, if this Redis has no name.
func (g *Gate) Name() string {
	if g.instance == "" {
		return ""
	}
	return kind + g.instance
}

// Warnings returns what an operator should know of this Redis.
func (g *Gate) Warnings() []string { return g.warnings }

// Close ends the connections. Calls under way fail.
func (g *Gate) Close() { g.client.Close() }

// Ping returns nil if Redis answers.
func (g *Gate) Ping(ctx context.Context) error {
	if err := g.client.Do(ctx, g.client.B().Ping().Build()).Error(); err != nil {
		return fmt.Errorf("ping Redis: %w", classify(err))
	}
	return nil
}

// clock returns the gate's time as the scripts take it: empty for the server's own.
func (g *Gate) clock() string {
	if g.options.Clock == nil {
		return ""
	}
	return micros(g.options.Clock())
}

// run runs a script on a campaign and returns the parts of its answer, the first of which is a word.
func (g *Gate) run(ctx context.Context, script *rueidis.Lua, k *keys, args ...string) (word string, parts []rueidis.RedisMessage, err error) {
	answer, err := script.Exec(ctx, g.client, k.all(), args).ToArray()
	if err != nil {
		return "", nil, classify(err)
	}
	if len(answer) == 0 {
		return "", nil, fmt.Errorf("a script answered nothing")
	}
	if word, err = answer[0].ToString(); err != nil {
		return "", nil, fmt.Errorf("a script answered without a word: %w", err)
	}
	switch word {
	case "absent":
		return "", nil, g.missing(ctx, k)
	case "unverified":
		return "", nil, errUnverified
	case "rebuilding":
		return "", nil, errFrozen
	case "replica":
		return "", nil, errReplica
	case "newer":
		of, _ := answer[1].ToString()
		return "", nil, newer(of)
	}
	return word, answer[1:], nil
}
