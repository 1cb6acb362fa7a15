package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Rights are what a Redis user needs, as ACL SETUSER spells them; the last three are
// for a cluster and for a primary that Sentinel names. Before Redis 7 a new user may
// use every channel, and naming one in addition is an error.
const Rights = "~firstcome:* resetchannels &firstcome:* +@connection +eval +evalsha +info +time +get +set +unlink +rename " +
	"+hset +hget +hmget +hlen +hdel +hscan +publish +subscribe +unsubscribe " +
	"+xadd +xlen +xrange +xdel +xtrim +xack +xgroup +xreadgroup +xautoclaim +xclaim " +
	"+cluster|slots +cluster|shards +role"

const (
	dialTimeout = 2 * time.Second
	// writeTimeout is how long a connection may give no sign of life, by a ping a
	// second, before it is given up.
	writeTimeout = 4 * time.Second
	pingEvery    = time.Second
	// buffer of each connection, in bytes: a batch of 512 claims is some 20 KB.
	buffer = 128 << 10
	// poolSize bounds the connections for blocking calls. Only subscriptions block.
	poolSize = 16
	// redirections bounds how often a call follows a slot that moves.
	redirections = 8
	// askSentinelEvery is how often Sentinel is asked who the primary is. It says so by itself too, but once, and who does not hear it
	// would ask the old primary for good.
	askSentinelEvery = 2 * time.Second
)

// Open connects to Redis, checks that it may be a gate, and makes its instance
// name if it has none, unless Options.KeepUnnamed. No error or warning has the password.
func Open(ctx context.Context, options Options) (*Gate, error) {
	client, err := connect(options)
	if err != nil {
		return nil, err
	}
	g := &Gate{
		client: client, options: options,
		claim: aboutLine(claimScript), apply: aboutLine(applyScript), settle: aboutCampaign(settleScript),
		has: aboutCampaign(hasScript), look: aboutCampaign(lookScript), place: aboutLine(placeScript), forget: aboutCampaign(forgetScript),
		standing: aboutLine(standingScript), memory: aboutCampaign(roomScript), freeze: aboutCampaign(freezeScript), empty: aboutCampaign(emptyScript),
		carry: aboutLine(carryScript), switchScript: aboutCampaign(switchScript),
		stopped: aboutCampaign(stoppedScript), verify: aboutCampaign(verifyScript),
		seat:    aboutCampaign(seatScript),
		keyring: newKeyring(), remembers: newMemory(), lag: schedule{slow: defaultSlow}, behind: schedule{slow: defaultSlow},
	}
	if err := g.check(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("open the Redis gate: %w", err)
	}
	return g, nil
}

// Inspect connects to Redis to read what a gate has there: Name, State, DecidedBy, Coupons, Unrecorded and EachCreated. It writes nothing, and the
// user needs only the right to read; Masters needs INFO besides. Name is empty if the Redis is no gate or was emptied.
func Inspect(ctx context.Context, options Options) (*Gate, error) {
	client, err := connect(options)
	if err != nil {
		return nil, err
	}
	g := &Gate{client: client, options: options, keyring: newKeyring(), remembers: newMemory(), place: aboutLine(placeScript)}
	if g.instance, err = g.text(ctx, instanceKey); err == nil {
		err = g.checkLayout(ctx)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open the Redis gate: %w", err)
	}
	return g, nil
}

// connect returns a client. It sends nothing a second time by itself: see the
// package's comment.
func connect(options Options) (rueidis.Client, error) {
	o, err := readURL(options.URL)
	if err != nil {
		return nil, err
	}
	o.DisableRetry, o.DisableCache = true, true
	o.ClientName, o.ClientSetInfo = "firstcome", rueidis.DisableClientSetInfo
	o.Dialer.Timeout, o.Dialer.KeepAlive, o.ConnWriteTimeout = dialTimeout, pingEvery, writeTimeout
	o.Sentinel.Dialer, o.Sentinel.TopologyRefreshInterval = o.Dialer, askSentinelEvery
	o.ReadBufferEachConn, o.WriteBufferEachConn = buffer, buffer
	o.BlockingPoolSize = poolSize
	o.ClusterOption.MaxMovedRedirections = redirections
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("connect to Redis at %s: %w", strings.Join(o.InitAddress, ", "), greeting(err, o.TLSConfig != nil))
	}
	return client, nil
}

// check refuses a Redis that cannot be a gate.
func (g *Gate) check(ctx context.Context) error {
	for address, node := range g.client.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			return classify(err)
		}
		warnings, err := checkInfo(parseInfo(info), g.options.AnyEviction)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		g.warnings = append(g.warnings, warnings...)
	}
	if err := g.name(ctx); err != nil {
		return err
	}
	if err := g.checkRights(ctx); err != nil {
		return err
	}
	if g.instance == "" {
		return g.checkLayout(ctx)
	}
	return g.openLayout(ctx)
}

// parseInfo reads the lines of INFO, name:value.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// checkInfo says whether a server's INFO is that of a gate. Managed services do not
// allow CONFIG, and INFO has the same.
func checkInfo(info map[string]string, anyEviction bool) (warnings []string, err error) {
	if v := info["redis_version"]; !atLeast(v, 6, 2) {
		return nil, fmt.Errorf("this is version %q: firstcome needs Redis 6.2 or later, or Valkey", v)
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		reason := fmt.Sprintf("maxmemory-policy is %q: when memory is short Redis would throw away holders and journals, and coupons "+
			"would be issued twice; set it to noeviction (CONFIG SET, or the parameter group of a managed service)", policy)
		if !anyEviction {
			return nil, errors.New(reason)
		}
		warnings = append(warnings, reason)
	}
	if info["aof_enabled"] == "0" {
		warnings = append(warnings, "the append-only file is off: a restart of Redis loses what the ledger does not have yet; set appendonly yes")
	}
	if _, asked := info["min_slaves_good_slaves"]; !asked && number(info, "connected_slaves") > 0 {
		warnings = append(warnings, "there is a replica and min-replicas-to-write is 0: a primary that is cut off goes on issuing what a fail-over then loses; set min-replicas-to-write 1 and min-replicas-max-lag 2")
	}
	return warnings, nil
}

// atLeast tells whether a version like 7.0.15 is major.minor or later.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// checkRights tries what the scripts do, and writes nothing, so that a right that is
// missing is known now, and not in the middle of a script.
func (g *Gate) checkRights(ctx context.Context) error {
	keys := []string{instanceKey, "firstcome:{" + instanceKey + "}:rights:" + rand.Text()}
	missing, err := rueidis.NewLuaScript(rightsScript).Exec(ctx, g.client, keys, []string{"firstcome:wake:rights"}).AsStrSlice()
	if err != nil {
		return classify(err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("the user may not run %s: ACL SETUSER NAME %s", strings.Join(missing, ", "), Rights)
	}
	return nil
}

// name reads the instance's name, and makes one if there is none and one is allowed. Nodes that
// start at once all get the same name.
func (g *Gate) name(ctx context.Context) (err error) {
	if g.options.KeepUnnamed {
		g.instance, err = g.text(ctx, instanceKey)
		return err
	}
	name := strings.TrimPrefix(g.options.KnownAs, kind)
	if name == "" {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return err
		}
		name = hex.EncodeToString(random[:])
	}
	g.instance, err = g.once(ctx, instanceKey, name)
	return err
}

// once reads a key, and makes it first if it is missing. It writes only then, so a full Redis still takes new nodes.
func (g *Gate) once(ctx context.Context, key, value string) (string, error) {
	if text, err := g.text(ctx, key); err != nil || text != "" {
		return text, err
	}
	made := g.client.Do(ctx, g.client.B().Set().Key(key).Value(value).Nx().Build()).Error()
	if made != nil && !rueidis.IsRedisNil(made) {
		return "", classify(made)
	}
	return g.text(ctx, key)
}

// text returns a string, or the empty one where there is none.
func (g *Gate) text(ctx context.Context, key string) (string, error) {
	text, err := g.client.Do(ctx, g.client.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return text, classify(err)
}
