package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Redis is an open gate: a type for each of its jobs, over one connection. Make one with Open. All methods may be called from many
// goroutines. Their errors are Errors, and those of packages firstcome, gate and record.
type Redis struct {
	Gate     *Gate     // decides claims and applies changes
	Line     *Line     // serves waiting lines
	Journal  *Journal  // says how far campaigns are drained
	Recovery *Recovery // verifies, rebuilds and retires campaigns
	conn     *conn
}

// AsGate returns the gate as a gate.Router asks it.
func (r *Redis) AsGate() gate.Gate {
	return struct {
		*Gate
		*Line
		*Journal
	}{r.Gate, r.Line, r.Journal}
}

// A conn is a connection to one Redis, and what all types share over it.
type conn struct {
	client    rueidis.Client
	options   Options
	instance  string
	warnings  []string
	keyring   keyring
	remembers *remembered
}

// kind begins the names of this kind of gates.
const kind = "redis:"

// Name returns what a campaign says of its gate: redis:INSTANCE; or nothing, if this Redis has no name.
func (r *Redis) Name() string { return r.conn.Name() }

// Ping returns nil if Redis answers.
func (r *Redis) Ping(ctx context.Context) error { return r.conn.Ping(ctx) }

// Warnings returns what an operator should know of this Redis.
func (r *Redis) Warnings() []string { return r.conn.warnings }

// EachCreated calls each with the ids of all campaigns that this gate's ledger ever made here: see Inspector.EachCreated.
func (r *Redis) EachCreated(ctx context.Context, each func(firstcome.CampaignID) error) error {
	i := Inspector{r.conn}
	return i.EachCreated(ctx, each)
}

// Close ends the connections. Calls under way fail.
func (r *Redis) Close() { r.conn.client.Close() }

// Name returns what a campaign says of its gate: redis:INSTANCE; or nothing, if this Redis has no name.
func (c *conn) Name() string {
	if c.instance == "" {
		return ""
	}
	return kind + c.instance
}

// Ping returns nil if Redis answers.
func (c *conn) Ping(ctx context.Context) error {
	if err := c.client.Do(ctx, c.client.B().Ping().Build()).Error(); err != nil {
		return fmt.Errorf("ping Redis: %w", classify(err))
	}
	return nil
}

// clock returns the clock as the scripts take it: empty for the server's clock.
func (c *conn) clock() string {
	if c.options.Clock == nil {
		return ""
	}
	return micros(c.options.Clock())
}

// run runs a script on a campaign. Args are names and values in turn; a list follows an empty name.
func (c *conn) run(ctx context.Context, s *script, k *keys, args ...string) (*answer, error) {
	return c.runOn(ctx, s, k, k.all(), args...)
}

// runOn is run with more keys than the campaign's.
func (c *conn) runOn(ctx context.Context, s *script, k *keys, keys []string, args ...string) (*answer, error) {
	parts, err := s.Exec(ctx, c.client, keys, args).ToArray()
	if err != nil {
		return nil, classify(err)
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("the %s script answered nothing", s.name)
	}
	a := &answer{script: s.name, parts: parts[1:]}
	if a.word, err = parts[0].ToString(); err != nil {
		return nil, fmt.Errorf("the %s script answered without a word: %w", s.name, err)
	}
	switch a.word {
	case "absent":
		return nil, c.missing(ctx, k)
	case "unverified":
		return nil, errUnverified
	case "behind":
		return nil, c.remembers.behind(k, a)
	case "rebuilding":
		return nil, errFrozen
	case "replica":
		return nil, errReplica
	case "newer":
		return nil, newer(a.text("layout"))
	}
	return a, nil
}

// fields returns numbers of the campaign's hash.
func (c *conn) fields(ctx context.Context, k *keys, names ...string) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	values, err := c.client.Do(ctx, c.client.B().Hmget().Key(k.campaign).Field(names...).Field("layout").Build()).ToArray()
	if err != nil {
		return nil, classify(err)
	}
	if of, _ := values[len(names)].ToString(); !knows(of) {
		return nil, newer(of)
	}
	if slices.ContainsFunc(values[:len(names)], func(m rueidis.RedisMessage) bool { return m.IsNil() }) {
		return nil, c.missing(ctx, k)
	}
	numbers := make([]int64, len(names))
	for n := range numbers {
		if numbers[n], err = parseInt(values[n]); err != nil {
			return nil, fmt.Errorf("%w: %s of %s is not a number: %w", errHolder, names[n], k.id, err)
		}
	}
	return numbers, nil
}

// parseInt returns the whole number that a message is, or is the text of. It returns 0 for an empty text.
func parseInt(m rueidis.RedisMessage) (int64, error) {
	if m.IsInt64() {
		return m.AsInt64()
	}
	text, err := m.ToString()
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// now returns the server's time, or that of the tests' clock.
func (c *conn) now(ctx context.Context) (time.Time, error) {
	if c.options.Clock != nil {
		return c.options.Clock().UTC().Truncate(time.Microsecond), nil
	}
	parts, err := c.client.Do(ctx, c.client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return time.Time{}, classify(err)
	}
	if len(parts) != 2 {
		return time.Time{}, errors.New("the answer to TIME cannot be read")
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	fraction, err2 := strconv.ParseInt(parts[1], 10, 64)
	return time.UnixMicro(seconds*1_000_000 + fraction).UTC(), errors.Join(err1, err2)
}

// once reads a key, and makes it first if it is missing. It writes only then, so a full Redis still takes new nodes.
func (c *conn) once(ctx context.Context, key, value string) (string, error) {
	if text, err := c.text(ctx, key); err != nil || text != "" {
		return text, err
	}
	made := c.client.Do(ctx, c.client.B().Set().Key(key).Value(value).Nx().Build()).Error()
	if made != nil && !rueidis.IsRedisNil(made) {
		return "", classify(made)
	}
	return c.text(ctx, key)
}

// text returns a string, or the empty one where there is none.
func (c *conn) text(ctx context.Context, key string) (string, error) {
	text, err := c.client.Do(ctx, c.client.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return text, classify(err)
}

// subscribe calls each with every message on a channel until ctx ends or the
// connection is lost. ready is called once Redis has confirmed the subscription.
func (c *conn) subscribe(ctx context.Context, channel string, ready func(), each func(message string)) error {
	told := false
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" && !told {
			told = true
			ready()
		}
	})
	err := c.client.Receive(ctx, c.client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { each(m.Message) })
	if err == nil {
		return errors.New("the subscription was ended")
	}
	return classify(err)
}

// inspect returns nil if the gate decides claims of a campaign. gate.ErrUnverified and gate.ErrGone mean that it needs a rebuild,
// recovery.ErrAhead that it knows more than the revision has, a gate.StaleEpochError that its epoch has ended.
func (c *conn) inspect(ctx context.Context, r gate.Revision) error {
	k := c.keysIn(r)
	return wrap(c.inspectKeys(ctx, k, &r), "look whether the gate of %s stands", r.Campaign)
}

// inspectKeys returns what inspect does. If ledger is nil, it compares the gate's keys only with each other, and with what the gate told this node.
func (c *conn) inspectKeys(ctx context.Context, k *keys, ledger *gate.Revision) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	least := c.remembers.witness(k)
	if ledger != nil {
		least.Add(gate.Witness{Epoch: ledger.Epoch, Version: ledger.Applied})
	}
	args := []string{"witness", witnessArg(least)}
	if ledger != nil {
		args = append(args, "epoch", formatInt(ledger.Epoch), "version", formatInt(ledger.Version), "drained", formatInt(ledger.Drained))
	}
	a, err := c.run(ctx, inspectScript, k, args...)
	if err != nil {
		return err
	}
	switch a.word {
	case "intact":
		return nil
	case "part_gone":
		return errPart
	case "ahead":
		return recovery.ErrAhead
	case "ended":
		return &gate.StaleEpochError{Campaign: k.id, Gate: a.integer("epoch"), Ledger: ledger.Epoch}
	}
	return a.unexpected()
}

// errUnverified means that the scripts do nothing, because the campaign's keys may be out of date.
var errUnverified = fmt.Errorf("%w: %w", firstcome.ErrGateUnavailable, gate.ErrUnverified)

// errFrozen means that a rebuild froze the campaign.
var errFrozen = fmt.Errorf("%w: %w", errUnverified, record.ErrRebuilding)
