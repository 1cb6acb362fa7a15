package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/trust"
)

const (
	dialTimeout = 2 * time.Second
	// writeTimeout is how long a connection may leave pings, one a second, without an
	// answer before it is closed.
	writeTimeout = 4 * time.Second
	pingEvery    = time.Second
	// buffer of each connection, in bytes: a batch of 512 claims is some 20 KB.
	buffer = 128 << 10
	// poolSize bounds the connections for blocking calls. Only subscriptions block.
	poolSize = 16
	// redirections bounds how often a call follows a slot that moves.
	redirections = 8
	// askSentinelEvery is how often Sentinel is asked which server is the primary. Sentinel also announces it, but once: a node that missed
	// the message would keep asking the old primary.
	askSentinelEvery = 2 * time.Second
)

// Options say which Redis decides, and how.
type Options struct {
	// URL is redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// for TLS. More nodes of a
	// cluster may follow as ?addr=HOST:PORT, Sentinel's name of the primary as ?master_set=, and the
	// log-in of the Sentinels as sentinel_user and sentinel_password or sentinel_passwordfile.
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
	// CampaignUID returns the ledger's permanent name for a campaign, or firstcome.ErrNoCampaign: see
	// firstcome.Change. Another UID means other keys. Nil: all have the same.
	CampaignUID func(context.Context, firstcome.CampaignID) (string, error)
	// Noted returns a campaign as last read from the ledger, or the zero value if the node does not know it. In an earlier epoch, and
	// without the changes that the ledger has noted as applied and the numbers that are drained, the gate decides nothing. If Noted is
	// nil, the node never knows.
	Noted func(firstcome.CampaignID) gate.Revision
	// Lined returns the campaigns that may have people in line, as far as the ledger knows: those with a pace, and those that
	// had one. Nil: none.
	Lined func(context.Context) ([]gate.Revision, error)
	// OnUnknown returns the error for a campaign that the gate does not have: the ledger knows
	// whether it should. firstcome.ErrBusy means that the campaign is being made, and that no gate ever
	// had it. If OnUnknown is nil or returns nil, the error is firstcome.ErrNoCampaign.
	OnUnknown func(context.Context, firstcome.CampaignID) error
}

// Rights are what a Redis user needs, as ACL SETUSER spells them; the last three are
// for a cluster and for a primary that Sentinel names. Before Redis 7 a new user may
// use every channel, and naming one in addition is an error.
const Rights = "~firstcome:* resetchannels &firstcome:* +@connection +eval +evalsha +info +time +get +set +unlink +rename " +
	"+hset +hget +hmget +hlen +hdel +hscan +publish +subscribe +unsubscribe " +
	"+xadd +xlen +xrange +xdel +xtrim +xack +xgroup +xreadgroup +xautoclaim +xclaim " +
	"+cluster|slots +cluster|shards +role"

// Open connects to Redis, checks that it may be a gate, and makes its instance
// name if it has none, unless Options.KeepUnnamed. No error or warning has the password.
func Open(ctx context.Context, options Options) (*Redis, error) {
	client, err := connect(options)
	if err != nil {
		return nil, err
	}
	c := newConn(client, options)
	if err := c.check(ctx); err != nil {
		client.Close()
		return nil, fmt.Errorf("open the Redis gate: %w", err)
	}
	j := &Journal{conn: c, lag: schedule{slow: defaultSlow}, behind: schedule{slow: defaultSlow}}
	g := &Gate{conn: c, journal: j, claim: claimScript}
	return &Redis{Gate: g, Line: &Line{c, j}, Journal: j, Recovery: &Recovery{c}, conn: c}, nil
}

func newConn(client rueidis.Client, options Options) *conn {
	return &conn{client: client, options: options, keyring: newKeyring(), remembers: newMemory(options.Noted)}
}

// Inspect connects to Redis to read what a gate has there. It writes nothing, and the user needs only the right to read; Masters also needs
// INFO. Name is empty if the Redis is no gate or was emptied.
func Inspect(ctx context.Context, options Options) (*Inspector, error) {
	client, err := connect(options)
	if err != nil {
		return nil, err
	}
	c := newConn(client, options)
	if c.instance, err = c.text(ctx, instanceKey); err == nil {
		err = c.checkLayout(ctx)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open the Redis gate: %w", err)
	}
	return &Inspector{c}, nil
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
func (c *conn) check(ctx context.Context) error {
	for address, node := range c.client.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			return classify(err)
		}
		warnings, err := checkInfo(parseInfo(info), c.options.AnyEviction)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		c.warnings = append(c.warnings, warnings...)
	}
	if err := c.name(ctx); err != nil {
		return err
	}
	if err := c.checkRights(ctx); err != nil {
		return err
	}
	if c.instance == "" {
		return c.checkLayout(ctx)
	}
	return c.openLayout(ctx)
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

// atLeast reports whether a version like 7.0.15 is major.minor or later.
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
func (c *conn) checkRights(ctx context.Context) error {
	keys := []string{instanceKey, "firstcome:{" + instanceKey + "}:rights:" + rand.Text()}
	missing, err := rightsScript.Exec(ctx, c.client, keys, []string{"firstcome:wake:rights"}).AsStrSlice()
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
func (c *conn) name(ctx context.Context) (err error) {
	if c.options.KeepUnnamed {
		c.instance, err = c.text(ctx, instanceKey)
		return err
	}
	name := strings.TrimPrefix(c.options.KnownAs, kind)
	if name == "" {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return err
		}
		name = hex.EncodeToString(random[:])
	}
	c.instance, err = c.once(ctx, instanceKey, name)
	return err
}

// CheckURL returns an error that says what is wrong with the URL of a gate, or with the
// files that it names. It never repeats a password.
func CheckURL(text string) error {
	_, err := readURL(text)
	return err
}

// urlOptions are the options of a URL, without those of package trust.
var urlOptions = []string{"addr", "db", "master_set", "protocol", sentinelFile, sentinelPassword, sentinelUser, "skip_verify"}

// The options of the Sentinels' log-in.
const sentinelUser, sentinelPassword, sentinelFile = "sentinel_user", "sentinel_password", "sentinel_passwordfile"

// readURL reads a URL. Other packages' errors about an unreadable URL may contain part
// of the password, so they are not shown.
func readURL(text string) (rueidis.ClientOption, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Host == "" {
		return rueidis.ClientOption{}, errors.New("the Redis URL cannot be read: it is like redis://USER:PASSWORD@HOST:6379/0, or rediss:// for TLS; write special characters of the password as %XX")
	}
	options := u.Query()
	files := trust.Take(options)
	for name := range options {
		if !slices.Contains(urlOptions, name) {
			return rueidis.ClientOption{}, fmt.Errorf("the Redis URL has the option %q, and there are only %s, %s, %s and %s", name,
				strings.Join(urlOptions, ", "), trust.RootOption, trust.CertOption, trust.KeyOption)
		}
	}
	o, err := rueidis.ParseURL(text)
	if err == nil {
		if err := logIn(&o.Sentinel, options); err != nil {
			return o, fmt.Errorf("the Redis URL: %w", err)
		}
	}
	switch {
	case err != nil:
		return o, errors.New("the Redis URL has a bad database number, or a bad value of skip_verify")
	case files.Root != "" && options.Has("skip_verify"):
		return o, fmt.Errorf("the Redis URL: with %s there is no skip_verify", trust.RootOption)
	case o.TLSConfig != nil:
		if err := files.Apply(o.TLSConfig); err != nil {
			return o, fmt.Errorf("the Redis URL: %w", err)
		}
		o.Sentinel.TLSConfig = o.TLSConfig
	case files != trust.Files{}:
		return o, fmt.Errorf("the Redis URL: %s, %s and %s are of rediss://, which is TLS", trust.RootOption, trust.CertOption, trust.KeyOption)
	}
	return o, nil
}

// logIn takes the log-in of the Sentinels from a URL's options.
func logIn(o *rueidis.SentinelOption, options url.Values) error {
	file := options.Get(sentinelFile)
	o.Username, o.Password = options.Get(sentinelUser), options.Get(sentinelPassword)
	switch {
	case file != "" && o.Password != "":
		return fmt.Errorf("the password of the Sentinels is in the URL and in %s: name it once", sentinelFile)
	case file != "":
		read, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", sentinelFile, err)
		}
		o.Password = strings.TrimRight(string(read), "\r\n")
	}
	switch {
	case o.Password == "" && (o.Username != "" || file != ""):
		return fmt.Errorf("the user of the Sentinels has no password: name it with %s, or its file with %s", sentinelPassword, sentinelFile)
	case o.Password != "" && o.MasterSet == "":
		return fmt.Errorf("%s and %s are about Sentinels: name the primary with master_set", sentinelUser, sentinelPassword)
	}
	return nil
}
