// Package auth authenticates callers: an API key with a role, a user with a token of their own, or, on a development machine, anyone.
//
// # Non-obvious
//
// Every refusal is an ErrUnauthorized, and tells the sender of a token what they can correct. It does not reveal whether a key exists or was revoked,
// and of a token with a bad signature nothing more. The reason is logged at debug level, without the credential.
//
// Nothing in a token chooses how it is checked: the algorithms and the keys are configured, and jku, jwk and x5u are not read. Only if a set of keys
// is configured, kid chooses among them.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
)

// ErrUnauthorized is the answer to every request without good credentials.
var ErrUnauthorized = errors.New("credentials are missing or not good")

// A new key must be effective within a second: reloadEvery leaves half of that for a slow read.
const reloadEvery = 500 * time.Millisecond

// lookEvery is how often the file of the tokens' public keys is checked. The keys change a few times a year, but a token that is signed with a new
// key may come soon after.
const lookEvery = time.Second

// reloadTimeout is the time-out of one read of the keys.
const reloadTimeout = 5 * time.Second

// A Caller is the sender of a request.
type Caller struct {
	// Role is what an API key may do. It is empty for a user's own token.
	Role firstcome.Role
	// User, if set, means that the caller is this user, who may claim and read only for themself.
	User firstcome.UserID
	// Until is when the token expires; the zero time if the request's credentials do not expire.
	Until time.Time
	// Key is the id of the caller's API key. It is empty for all others.
	Key string
	// Name is for the audit log: "key:ID", "user:SUB", or "local" in development mode.
	Name string
}

// A KeySource has every API key, also revoked ones. *ledger.Deployment implements it.
type KeySource interface {
	Keys(ctx context.Context) ([]firstcome.Key, error)
}

// A Options configures which credentials are good.
type Options struct {
	Keys KeySource // nil if there are no keys
	JWT  *JWT      // nil if there are no tokens
	// Open is development mode: every caller is admin, and Authorization is ignored.
	Open bool
	Log  *slog.Logger // nil means slog.Default()
}

// An Authenticator authenticates callers. Its methods may be called from many goroutines.
type Authenticator struct {
	config Options
	keys   atomic.Pointer[map[string]firstcome.Key] // keys that are not revoked, by id
	// misread reports whether it was logged that the tokens' secret is encoded.
	misread atomic.Bool
}

// New returns an Authenticator. It has no keys until Reload or Run has read them.
func New(c Options) *Authenticator {
	c.Log = cmp.Or(c.Log, slog.Default())
	a := &Authenticator{config: c}
	a.keys.Store(&map[string]firstcome.Key{})
	return a
}

// Open reports whether every caller is admin.
func (a *Authenticator) Open() bool { return a.config.Open }

// Run reads the API keys every reloadEvery, so that a new or revoked key is effective within a second, and the tokens' keys every lookEvery, until
// ctx ends. If they cannot be read, the last ones stay in use. Neither waits for the other, because a file may hang like a ledger.
func (a *Authenticator) Run(ctx context.Context) error {
	var looks sync.WaitGroup
	refused, failing := "", false
	looks.Go(func() { each(ctx, lookEvery, func() { refused = a.lookAndLog(refused) }) })
	each(ctx, reloadEvery, func() { failing = a.reloadAndLog(ctx, failing) })
	looks.Wait()
	return nil
}

// each calls do at an interval until ctx ends.
func each(ctx context.Context, often time.Duration, do func()) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// lookAndLog logs that the tokens' keys have changed, or an error of reading them. It returns that error's text, and does not log it if it equals
// told.
func (a *Authenticator) lookAndLog(told string) (refused string) {
	if a.config.JWT == nil || a.config.JWT.config.Again == nil {
		return ""
	}
	changed, err := a.config.JWT.look()
	switch {
	case err != nil && err.Error() != told:
		a.config.Log.Error("the tokens' public keys cannot be taken: the last ones stand", "err", err)
	case len(changed) > 0:
		a.config.Log.Info("users' tokens have other public keys", "keys", changed)
	case err == nil && told != "":
		a.config.Log.Info("the tokens' public keys are as before")
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// reloadAndLog reads the keys, logs when reading begins or ceases to fail, and returns whether it failed.
func (a *Authenticator) reloadAndLog(ctx context.Context, failing bool) bool {
	timed, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	err := a.Reload(timed)
	switch {
	case ctx.Err() != nil:
	case err != nil && !failing:
		a.config.Log.Error("the API keys cannot be read: the last ones stand", "err", err)
	case err == nil && failing:
		a.config.Log.Info("the API keys can be read again")
	}
	return err != nil
}

// Reload reads the keys. If that fails, the last ones stay in use.
func (a *Authenticator) Reload(ctx context.Context) error {
	if a.config.Keys == nil {
		return nil
	}
	all, err := a.config.Keys.Keys(ctx)
	if err != nil {
		return err
	}
	good := make(map[string]firstcome.Key, len(all))
	for _, k := range all {
		if k.RevokedAt.IsZero() {
			good[k.ID] = k
		}
	}
	a.keys.Store(&good)
	return nil
}

// Authenticate returns the sender of a request, or a *Refusal, which is an ErrUnauthorized.
func (a *Authenticator) Authenticate(r *http.Request) (Caller, error) {
	if a.config.Open {
		return Caller{Role: firstcome.Admin, Name: "local"}, nil
	}
	caller, err := a.check(r.Header["Authorization"])
	if err != nil {
		a.config.Log.DebugContext(r.Context(), "credentials refused", "reason", err)
		return Caller{}, refusal(err)
	}
	return caller, nil
}

// check returns the caller of Authorization headers, or why they are not good.
func (a *Authenticator) check(headers []string) (Caller, error) {
	switch len(headers) {
	case 0:
		return Caller{}, Missing
	case 1:
	default:
		return Caller{}, Many
	}
	scheme, credential, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Caller{}, Missing
	}
	if strings.HasPrefix(credential, keyPrefix) {
		return a.checkKey(credential)
	}
	if a.config.JWT == nil {
		return Caller{}, NoTokens
	}
	user, until, err := a.config.JWT.user(credential)
	if err != nil {
		a.logMisread(credential, err)
		return Caller{}, err
	}
	return Caller{User: user, Until: until, Name: "user:" + string(user)}, nil
}

// logMisread logs once that the tokens' secret is written in an encoding that its text does not name.
func (a *Authenticator) logMisread(token string, err error) {
	if !errors.Is(err, jwt.ErrTokenSignatureInvalid) || a.misread.Load() {
		return
	}
	if form := a.config.JWT.misread(token); form != "" && !a.misread.Swap(true) {
		a.config.Log.Error("a token was refused that is signed with the decoded token secret: write "+form+" in front of the secret, and start again", "encoding", form)
	}
}

func (a *Authenticator) checkKey(plain string) (Caller, error) {
	key, err := a.Login(plain)
	if err != nil {
		return Caller{}, err
	}
	return Caller{Role: key.Role, Key: key.ID, Name: "key:" + key.ID}, nil
}

// Login returns the key with a plain text, or UnknownKey.
func (a *Authenticator) Login(plain string) (firstcome.Key, error) {
	id, ok := keyID(plain)
	if !ok {
		return firstcome.Key{}, UnknownKey
	}
	// The hash is compared even if there is no such key, so that both cases take the same time.
	known, ok := a.Key(id)
	hash := sha256.Sum256([]byte(plain))
	if subtle.ConstantTimeCompare(hash[:], known.Hash[:]) != 1 || !ok {
		return firstcome.Key{}, UnknownKey
	}
	return known, nil
}

// Key returns the key with an id, unless it is revoked. A revocation is effective within a second.
func (a *Authenticator) Key(id string) (key firstcome.Key, ok bool) {
	key, ok = (*a.keys.Load())[id]
	return key, ok
}
