package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

// member returns an integer in the form of a JWK member.
func member(n *big.Int, size int) string {
	return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, size)))
}

// inSet returns a key as a JWK, with more members. The value "" removes a member.
func inSet(t testing.TB, key any, more map[string]any) map[string]any {
	t.Helper()
	var k map[string]any
	switch key := key.(type) {
	case *rsa.PrivateKey:
		k = map[string]any{"kty": "RSA", "n": member(key.N, key.Size()), "e": "AQAB"}
	case *ecdsa.PrivateKey:
		point, err := key.PublicKey.Bytes()
		stage.Must(t, err)
		size := (len(point) - 1) / 2
		k = map[string]any{
			"kty": "EC", "crv": key.Curve.Params().Name,
			"x": base64.RawURLEncoding.EncodeToString(point[1 : 1+size]), "y": base64.RawURLEncoding.EncodeToString(point[1+size:]),
		}
	}
	maps.Copy(k, more)
	for name, value := range more {
		if value == "" {
			delete(k, name)
		}
	}
	return k
}

// named returns the member of a key's id, and the header of a token that names it.
func named(id string) map[string]any { return map[string]any{"kid": id} }

func setOf(t testing.TB, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"keys": keys}, "", " ")
	stage.Must(t, err)
	return text
}

// TestF31OfASetATokensKidChoosesAndNothingElse has the keys of a shop that is changing them.
func TestF31OfASetATokensKidChoosesAndNothingElse(t *testing.T) {
	before, ec := keys(t)
	after, unknown := attacker(t), attacker(t)
	set := setOf(t, inSet(t, before, named("2026-11")), inSet(t, after, named("2026-12")), inSet(t, ec, map[string]any{"kid": "mobile", "use": "sig", "alg": "ES256"}))
	rs := func(key *rsa.PrivateKey, header map[string]any) string {
		return sign(t, jwt.SigningMethodRS256, key, good(nil), header)
	}
	config := auth.JWTConfig{PublicKey: set, Secret: secret}
	for name, c := range map[string]struct {
		token string
		good  bool
	}{
		"the key before":          {rs(before, named("2026-11")), true},
		"the key after":           {rs(after, named("2026-12")), true},
		"the other algorithm":     {sign(t, jwt.SigningMethodES256, ec, good(nil), named("mobile")), true},
		"none named, the first":   {rs(before, nil), true},
		"none named, the second":  {rs(after, nil), true},
		"a secret beside":         {sign(t, jwt.SigningMethodHS256, secret, good(nil), named("2026-11")), true},
		"another key's name":      {rs(before, named("2026-12")), false},
		"another algorithm's":     {rs(before, named("mobile")), false},
		"no key's name":           {rs(before, named("2026-10")), false},
		"an empty name":           {rs(before, named("")), false},
		"a path":                  {rs(before, named("../../dev/null")), false},
		"a name that is a number": {rs(before, map[string]any{"kid": 1}), false},
		"an unknown key":          {rs(unknown, named("2026-11")), false},
		"an unknown key unnamed":  {rs(unknown, nil), false},
		"RS→HS with the set":      {sign(t, jwt.SigningMethodHS256, set, good(nil), named("2026-11")), false},
		"RS→HS with n":            {sign(t, jwt.SigningMethodHS256, before.N.Bytes(), good(nil), named("2026-11")), false},
		"a jwk of its own":        {rs(unknown, map[string]any{"kid": "2026-11", "jwk": inSet(t, unknown, nil)}), false},
		"a jku":                   {rs(unknown, map[string]any{"kid": "2026-11", "jku": "http://127.0.0.1:1/keys"}), false},
	} {
		caller, err := authenticator(t, config).Authenticate(request("Bearer " + c.token))
		if (err == nil) != c.good || c.good && caller.User != "alice" {
			t.Errorf("%s: got %+v, %v", name, caller, err)
		}
		var refused *auth.Refusal
		if errors.As(err, &refused) && refused.Why != auth.BadSignature {
			t.Errorf("%s: it is told %d", name, refused.Why)
		}
	}
}

func TestOfASetTheKeysThatAreForTokensAreTaken(t *testing.T) {
	rsaKey, ec := keys(t)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	stage.Must(t, err)
	one := inSet(t, ec, nil)
	for name, k := range map[string]map[string]any{
		"for encryption":      inSet(t, rsaKey, map[string]any{"use": "enc"}),
		"another algorithm":   inSet(t, rsaKey, map[string]any{"alg": "RS512"}),
		"encrypts only":       inSet(t, rsaKey, map[string]any{"key_ops": []string{"encrypt"}}),
		"another curve":       inSet(t, p384, nil),
		"another kind of key": {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
	} {
		a := authenticator(t, auth.JWTConfig{PublicKey: setOf(t, k, one)})
		if _, err := a.Authenticate(request("Bearer " + sign(t, jwt.SigningMethodES256, ec, good(nil), nil))); err != nil {
			t.Errorf("beside one that is %s the good key is not taken: %v", name, err)
		}
		if _, err := a.Authenticate(request("Bearer " + sign(t, jwt.SigningMethodRS256, rsaKey, good(nil), nil))); err == nil {
			t.Errorf("one that is %s is taken", name)
		}
		if _, err := auth.NewJWT(auth.JWTConfig{PublicKey: setOf(t, k)}); err == nil || !strings.Contains(err.Error(), "no key for RS256 or ES256") {
			t.Errorf("of one that is %s alone: %v", name, err)
		}
	}
	verifies := inSet(t, rsaKey, map[string]any{"use": "sig", "alg": "RS256", "key_ops": []string{"verify"}, "x5t": "ignored"})
	if _, err := authenticator(t, auth.JWTConfig{PublicKey: setOf(t, verifies)}).Authenticate(request("Bearer " + sign(t, jwt.SigningMethodRS256, rsaKey, good(nil), nil))); err != nil {
		t.Error(err)
	}
}

func TestASetThatIsNotOneIsRefused(t *testing.T) {
	rsaKey, ec := keys(t)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	stage.Must(t, err)
	var many []map[string]any
	for n := range 33 {
		many = append(many, inSet(t, ec, named(fmt.Sprint(n))))
	}
	for name, c := range map[string]struct {
		set  []byte
		says string
	}{
		"no JSON":           {[]byte("{"), "not a JWK set"},
		"no keys":           {[]byte("{}"), "no key"},
		"keys is no list":   {[]byte(`{"keys":1}`), "not a JWK set"},
		"nothing":           {[]byte(" \n"), "empty"},
		"a private key":     {setOf(t, inSet(t, rsaKey, map[string]any{"d": "AQAB"})), "not public"},
		"a secret":          {setOf(t, map[string]any{"kty": "oct", "k": "AQAB"}), "not public"},
		"two of a name":     {setOf(t, inSet(t, rsaKey, named("a")), inSet(t, ec, named("a"))), "two keys"},
		"1024 bits":         {setOf(t, inSet(t, weak, nil)), "needs 2048"},
		"16384 bits":        {setOf(t, inSet(t, rsaKey, map[string]any{"n": member(new(big.Int).Lsh(big.NewInt(1), 16383), 2048)})), "may have 8192"},
		"an even exponent":  {setOf(t, inSet(t, rsaKey, map[string]any{"e": "AQAC"})), "exponent"},
		"exponent 1":        {setOf(t, inSet(t, rsaKey, map[string]any{"e": "AQ"})), "exponent"},
		"a huge exponent":   {setOf(t, inSet(t, rsaKey, map[string]any{"e": "AQAAAAAAAAAB"})), "exponent"},
		"no n":              {setOf(t, inSet(t, rsaKey, map[string]any{"n": ""})), "its n"},
		"padded":            {setOf(t, inSet(t, rsaKey, map[string]any{"e": "AQAB=="})), "its e"},
		"not on the curve":  {setOf(t, inSet(t, ec, map[string]any{"y": member(big.NewInt(7), 32)})), "key 1"},
		"a short x":         {setOf(t, inSet(t, ec, map[string]any{"x": "AQAB"})), "key 1"},
		"33 keys":           {setOf(t, many...), "may have 32"},
		"an algorithm less": {setOf(t, inSet(t, ec, nil)), "RS256 needs a public key of its kind"},
	} {
		config := auth.JWTConfig{PublicKey: c.set}
		if name == "an algorithm less" {
			config.Algorithms = []string{"RS256"}
		}
		if _, err := auth.NewJWT(config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want it to say %q", name, err, c.says)
		}
	}
}

// A shelf is a file whose text a test changes, and which counts its reads.
type shelf struct {
	mu    sync.Mutex // guards what follows
	text  []byte
	err   error
	reads int
}

func (s *shelf) put(text []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.err = text, err
}

func (s *shelf) read() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.text, s.err
}

// TestTokensKeysChangeWhileTheNodeRuns adds a new key, breaks the file, and removes the old key.
func TestTokensKeysChangeWhileTheNodeRuns(t *testing.T) {
	old, ec := keys(t)
	both := setOf(t, inSet(t, old, named("old")), inSet(t, ec, named("new")))
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		file := &shelf{text: publicPEM(t, &old.PublicKey)}
		j, err := auth.NewJWT(auth.JWTConfig{PublicKey: file.text, Again: file.read})
		stage.Must(t, err)
		a := auth.New(auth.Options{JWT: j, Log: slog.New(slog.NewTextHandler(&logged, nil))})
		stop := stage.Run(t, a.Run)
		for _, step := range []struct {
			what     string
			text     []byte
			err      error
			old, new bool
			logs     string
		}{
			{"the old key", file.text, nil, true, false, ""},
			{"both", both, nil, true, true, `level=INFO msg="users' tokens have other public keys" keys="[RS256 old ES256 new]"`},
			{"half a file", both[:len(both)/2], nil, true, true, "the last ones stand"},
			{"an empty file", []byte{}, nil, true, true, "the last ones stand"},
			{"no file", nil, errors.New("no such file"), true, true, "no such file"},
			{"both again", both, nil, true, true, "as before"},
			{"the new key", setOf(t, inSet(t, ec, named("new"))), nil, false, true, `[ES256 new]`},
		} {
			logged.Reset()
			file.put(step.text, step.err)
			time.Sleep(3500 * time.Millisecond) // synctest's time
			synctest.Wait()
			_, errOld := a.Authenticate(request("Bearer " + sign(t, jwt.SigningMethodRS256, old, good(nil), named("old"))))
			_, errNew := a.Authenticate(request("Bearer " + sign(t, jwt.SigningMethodES256, ec, good(nil), named("new"))))
			if (errOld == nil) != step.old || (errNew == nil) != step.new {
				t.Errorf("with %s: the old key %v, the new one %v", step.what, errOld, errNew)
			}
			if lines := strings.Count(logged.String(), "\n"); !strings.Contains(logged.String(), step.logs) || lines > 1 || lines == 0 && step.logs != "" {
				t.Errorf("with %s the log says %q", step.what, logged.String())
			}
		}
		const most = 7*7/2 + 1
		if file.reads > most {
			t.Errorf("the file was read %d times in %d seconds", file.reads, most)
		}
		stop()
	})
}

// TestAFileThatHangsKeepsNoRevokedKeyGood matters because reading a file has no time-out.
func TestAFileThatHangsKeepsNoRevokedKeyGood(t *testing.T) {
	signer, _ := keys(t)
	synctest.Test(t, func(t *testing.T) {
		plain, key := newKey(t, firstcome.Admin)
		hangs, ledger := make(chan struct{}), &keyring{keys: []firstcome.Key{key}}
		text := publicPEM(t, &signer.PublicKey)
		j, err := auth.NewJWT(auth.JWTConfig{PublicKey: text, Again: func() ([]byte, error) {
			<-hangs
			return text, nil
		}})
		stage.Must(t, err)
		a := auth.New(auth.Options{JWT: j, Keys: ledger})
		stop := stage.Run(t, a.Run)
		time.Sleep(5 * time.Second) // synctest's time
		if _, err := a.Authenticate(request("Bearer " + plain)); err != nil {
			t.Error(err)
		}
		key.RevokedAt = time.Now()
		ledger.set(nil, key)
		time.Sleep(time.Second)
		if _, err := a.Authenticate(request("Bearer " + plain)); err == nil {
			t.Error("a second after it was revoked the key is good")
		}
		close(hangs)
		stop()
	})
}
