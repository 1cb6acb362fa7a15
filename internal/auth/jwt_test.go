package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/test/stage"
)

var (
	secret = []byte(strings.Repeat("s", 64))
	other  = []byte(strings.Repeat("o", 64))
)

// good returns the claims of a good token, with changes. The value nil removes a claim.
func good(changes jwt.MapClaims) jwt.MapClaims {
	claims := jwt.MapClaims{
		"sub": "alice", "iss": "shop", "aud": "coupons",
		"exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
	}
	return claims
}

func sign(t testing.TB, method jwt.SigningMethod, key any, claims jwt.Claims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for name, value := range header {
		token.Header[name] = value
	}
	text, err := token.SignedString(key)
	stage.Must(t, err)
	return text
}

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	stage.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func authenticator(t testing.TB, c auth.JWTConfig) *auth.Authenticator {
	t.Helper()
	j, err := auth.NewJWT(c)
	stage.Must(t, err)
	return auth.New(auth.Options{JWT: j})
}

func TestATokenMakesItsUserTheCaller(t *testing.T) {
	rsaKey, ecKey := keys(t)
	strict := auth.JWTConfig{Secret: secret, Issuer: "shop", Audience: "coupons"}
	for name, c := range map[string]struct {
		config auth.JWTConfig
		token  string
		user   string
	}{
		"HS256":            {strict, sign(t, jwt.SigningMethodHS256, secret, good(nil), nil), "alice"},
		"HS384":            {strict, sign(t, jwt.SigningMethodHS384, secret, good(nil), nil), "alice"},
		"HS512":            {strict, sign(t, jwt.SigningMethodHS512, secret, good(nil), nil), "alice"},
		"RS256":            {auth.JWTConfig{PublicKey: publicPEM(t, &rsaKey.PublicKey)}, sign(t, jwt.SigningMethodRS256, rsaKey, good(nil), nil), "alice"},
		"ES256":            {auth.JWTConfig{PublicKey: publicPEM(t, &ecKey.PublicKey)}, sign(t, jwt.SigningMethodES256, ecKey, good(nil), nil), "alice"},
		"another claim":    {auth.JWTConfig{Secret: secret, UserClaim: "uid"}, sign(t, jwt.SigningMethodHS256, secret, good(jwt.MapClaims{"uid": "bob"}), nil), "bob"},
		"a number":         {auth.JWTConfig{Secret: secret, UserClaim: "uid"}, sign(t, jwt.SigningMethodHS256, secret, good(jwt.MapClaims{"uid": 9007199254740993}), nil), "9007199254740993"},
		"within the grace": {strict, sign(t, jwt.SigningMethodHS256, secret, good(jwt.MapClaims{"exp": time.Now().Add(-30 * time.Second).Unix()}), nil), "alice"},
		"ignored headers":  {strict, sign(t, jwt.SigningMethodHS256, secret, good(nil), map[string]any{"kid": "../../etc/passwd", "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x"}), "alice"},
	} {
		caller, err := authenticator(t, c.config).Authenticate(request("Bearer " + c.token))
		want := auth.Caller{User: caller.User, Until: caller.Until, Name: "user:" + c.user}
		if err != nil || caller != want || string(caller.User) != c.user || caller.Until.Before(time.Now()) {
			t.Errorf("%s: got %+v, %v; want the user %s, with no role", name, caller, err, c.user)
		}
	}
}

func TestF31ABadTokenIsRefusedAndOnlyAWellSignedOneIsToldOfItself(t *testing.T) {
	rsaKey, ecKey := keys(t)
	fetched := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched++ }))
	defer server.Close()
	strict := auth.JWTConfig{Secret: secret, Issuer: "shop", Audience: "coupons"}
	public := auth.JWTConfig{PublicKey: publicPEM(t, &rsaKey.PublicKey)}
	both := auth.JWTConfig{Secret: secret, PublicKey: publicPEM(t, &rsaKey.PublicKey)}
	plain := auth.JWTConfig{Secret: secret}
	hs := func(changes jwt.MapClaims) string { return sign(t, jwt.SigningMethodHS256, secret, good(changes), nil) }
	none := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(nil), nil)
	told := map[string]auth.Why{
		"expired": auth.Expired, "not before": auth.Early, "expired, another secret": auth.BadSignature, "not before, another secret": auth.BadSignature,
		"another secret": auth.BadSignature, "HS256 not in the list": auth.BadSignature, "no exp": auth.BadToken, "wrong aud": auth.BadToken, "no sub": auth.BadToken,
	}
	stranger := func(changes jwt.MapClaims) string { return sign(t, jwt.SigningMethodHS256, other, good(changes), nil) }
	for name, c := range map[string]struct {
		config auth.JWTConfig
		token  string
	}{
		"expired, another secret":    {strict, stranger(jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()})},
		"not before, another secret": {strict, stranger(jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()})},
		"alg none":                   {strict, none},
		"alg none, other case":       {strict, strings.Replace(none, header(t, none), encode(`{"alg":"nOnE","typ":"JWT"}`), 1)},
		"alg absent":                 {strict, encode(`{"typ":"JWT"}`) + hs(nil)[strings.Index(hs(nil), "."):]},
		"no signature":               {strict, strings.Join(strings.Split(hs(nil), ".")[:2], ".") + "."},
		"RS→HS with the PEM":         {public, sign(t, jwt.SigningMethodHS256, publicPEM(t, &rsaKey.PublicKey), good(nil), nil)},
		"RS→HS where both are":       {both, sign(t, jwt.SigningMethodHS256, publicPEM(t, &rsaKey.PublicKey), good(nil), nil)},
		"HS256 not in the list":      {auth.JWTConfig{Secret: secret, Algorithms: []string{"HS512"}}, hs(nil)},
		"ES256 for an RSA key":       {public, sign(t, jwt.SigningMethodES256, ecKey, good(nil), nil)},
		"PS256 for an RSA key":       {public, sign(t, jwt.SigningMethodPS256, rsaKey, good(nil), nil)},
		"another secret":             {strict, sign(t, jwt.SigningMethodHS256, other, good(nil), nil)},
		"expired":                    {strict, hs(jwt.MapClaims{"exp": time.Now().Add(-62 * time.Second).Unix()})},
		"no exp":                     {strict, hs(jwt.MapClaims{"exp": nil})},
		"exp is text":                {strict, hs(jwt.MapClaims{"exp": "tomorrow"})},
		"not before":                 {strict, hs(jwt.MapClaims{"nbf": time.Now().Add(2 * time.Minute).Unix()})},
		"not before 1e300":           {plain, resign(t, `{"sub":"alice","exp":99999999999,"nbf":1e300}`)},
		"not before 1e400":           {plain, resign(t, `{"sub":"alice","exp":99999999999,"nbf":1e400}`)},
		"not before a wrapped time":  {plain, resign(t, `{"sub":"alice","exp":99999999999,"nbf":9223372036854775807}`)},
		"issued at 1e300":            {plain, resign(t, `{"sub":"alice","exp":99999999999,"iat":1e300}`)},
		"wrong iss":                  {strict, hs(jwt.MapClaims{"iss": "shop2"})},
		"no iss":                     {strict, hs(jwt.MapClaims{"iss": nil})},
		"wrong aud":                  {strict, hs(jwt.MapClaims{"aud": []string{"carts"}})},
		"no aud":                     {strict, hs(jwt.MapClaims{"aud": nil})},
		"no sub":                     {strict, hs(jwt.MapClaims{"sub": nil})},
		"sub empty":                  {strict, hs(jwt.MapClaims{"sub": ""})},
		"sub with a control":         {strict, hs(jwt.MapClaims{"sub": "a\nb"})},
		"sub a list":                 {strict, hs(jwt.MapClaims{"sub": []string{"alice"}})},
		"user a fraction":            {auth.JWTConfig{Secret: secret, UserClaim: "uid"}, hs(jwt.MapClaims{"uid": 1.5})},
		"user a lone surrogate":      {plain, resign(t, `{"sub":"a\ud800","exp":99999999999}`)},
		"user is broken UTF-8":       {plain, resign(t, `{"sub":"a`+"\xff"+`","exp":99999999999}`)},
		"kid path, wrong key":        {strict, sign(t, jwt.SigningMethodHS256, []byte{0}, good(nil), map[string]any{"kid": "/dev/null"})},
		"jku of the attacker":        {public, sign(t, jwt.SigningMethodRS256, attacker(t), good(nil), map[string]any{"jku": server.URL})},
		"x5u of the attacker":        {public, sign(t, jwt.SigningMethodRS256, attacker(t), good(nil), map[string]any{"x5u": server.URL})},
		"jwk of the attacker":        {public, sign(t, jwt.SigningMethodRS256, attacker(t), good(nil), map[string]any{"jwk": map[string]string{"kty": "RSA", "n": "AQAB", "e": "AQAB"}})},
		"critical header":            {strict, sign(t, jwt.SigningMethodHS256, secret, good(nil), map[string]any{"crit": []string{"b64"}, "b64": false})},
		"64 KB":                      {strict, hs(jwt.MapClaims{"padding": strings.Repeat("x", 64*1024)})},
		"no dots":                    {strict, "abc"},
		"five parts":                 {strict, hs(nil) + ".a.b"},
		"padding":                    {strict, hs(nil) + "="},
		"signature over other bytes": {strict, swapClaims(hs(nil), hs(jwt.MapClaims{"sub": "mallory"}))},
	} {
		caller, err := authenticator(t, c.config).Authenticate(request("Bearer " + c.token))
		if !errors.Is(err, auth.ErrUnauthorized) || caller != (auth.Caller{}) {
			t.Errorf("%s: got %+v and the error %v, want ErrUnauthorized", name, caller, err)
		}
		// An answer reveals content only of a token with a good signature.
		want, ok := told[name]
		var refused *auth.Refusal
		if errors.As(err, &refused) && refused.Why != auth.BadSignature && refused.Why != auth.BadToken && (!ok || refused.Why != want) {
			t.Errorf("%s: it is told %d", name, refused.Why)
		}
		if ok && (refused == nil || refused.Why != want) {
			t.Errorf("%s: it is told %v, want %d", name, refused, want)
		}
	}
	if fetched > 0 {
		t.Errorf("%d keys were fetched from a URL in a token", fetched)
	}
}

func TestAWeakOrImpossibleTokenConfigurationIsRefused(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	stage.Must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	stage.Must(t, err)
	rsaKey, _ := keys(t)
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})
	for name, c := range map[string]struct {
		config auth.JWTConfig
		says   string
	}{
		"nothing":                {auth.JWTConfig{}, "secret or a public key"},
		"31 bytes":               {auth.JWTConfig{Secret: secret[:31]}, "at least 32"},
		"HS512 with 32 bytes":    {auth.JWTConfig{Secret: secret[:32], Algorithms: []string{"HS512"}}, "at least 64"},
		"HS256 without a secret": {auth.JWTConfig{PublicKey: publicPEM(t, &rsaKey.PublicKey), Algorithms: []string{"HS256"}}, "needs a token secret"},
		"ES256 with an RSA key":  {auth.JWTConfig{PublicKey: publicPEM(t, &rsaKey.PublicKey), Algorithms: []string{"ES256"}}, "of its kind"},
		"none":                   {auth.JWTConfig{Secret: secret, Algorithms: []string{"none"}}, "no token algorithm"},
		"not PEM":                {auth.JWTConfig{PublicKey: []byte("hello")}, "not PEM"},
		"a private key":          {auth.JWTConfig{PublicKey: private}, "RSA PRIVATE KEY"},
		"1024 bits":              {auth.JWTConfig{PublicKey: publicPEM(t, &weak.PublicKey)}, "needs 2048"},
		"P-384":                  {auth.JWTConfig{PublicKey: publicPEM(t, &p384.PublicKey)}, "P-256"},
	} {
		_, err := auth.NewJWT(c.config)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want it to say %q", name, err, c.says)
		}
	}
	_, err = auth.NewJWT(auth.JWTConfig{Secret: secret[:8], PublicKey: []byte("x")})
	if err == nil || !strings.Contains(err.Error(), "8 bytes") || !strings.Contains(err.Error(), "not PEM") {
		t.Errorf("two mistakes, but the error is %v", err)
	}
}

func FuzzTokens(f *testing.F) {
	rsaKey, ecKey := keys(f)
	f.Add(sign(f, jwt.SigningMethodHS256, other, good(nil), nil))
	f.Add(sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good(nil), nil))
	f.Add(sign(f, jwt.SigningMethodRS256, rsaKey, good(nil), map[string]any{"kid": "../x"}))
	f.Add(sign(f, jwt.SigningMethodES256, ecKey, good(nil), nil))
	f.Add("..")
	f.Add("fc_000000000000_" + strings.Repeat("0", 64))
	f.Add(encode(`{"alg":"HS256"}`) + "." + encode(`{"sub":1e400,"exp":1e400}`) + ".AAAA")
	a := authenticator(f, auth.JWTConfig{Secret: secret, PublicKey: publicPEM(f, &attacker(f).PublicKey)})
	f.Fuzz(func(t *testing.T, token string) {
		// None of the seeds is signed with a key of the server, and the fuzzer has no such key.
		if caller, err := a.Authenticate(request("Bearer " + token)); err == nil {
			t.Fatalf("a token that nobody signed made its bearer %+v", caller)
		}
	})
}

func keys(t testing.TB) (*rsa.PrivateKey, *ecdsa.PrivateKey) {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	stage.Must(t, err)
	return attacker(t), ec
}

// attacker returns a new RSA key, which no server has.
func attacker(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	stage.Must(t, err)
	return key
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func header(t *testing.T, token string) string {
	t.Helper()
	h, _, ok := strings.Cut(token, ".")
	if !ok {
		t.Fatalf("not a token: %s", token)
	}
	return h
}

// resign returns a token with claims as written, which the secret signs.
func resign(t *testing.T, claims string) string {
	t.Helper()
	text := encode(`{"alg":"HS256","typ":"JWT"}`) + "." + encode(claims)
	signature, err := jwt.SigningMethodHS256.Sign(text, secret)
	stage.Must(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// swapClaims returns the first token with the claims of the second.
func swapClaims(a, b string) string {
	parts := strings.Split(a, ".")
	parts[1] = strings.Split(b, ".")[1]
	return strings.Join(parts, ".")
}

// TestASecretOfEachKindChecksTheTokensOfALibraryThatHasTheSame covers a text, a text with a line end, bytes, and encoded bytes.
func TestASecretOfEachKindChecksTheTokensOfALibraryThatHasTheSame(t *testing.T) {
	raw := append(bytes.Repeat([]byte{0xf0, 0x9f, 0}, 12), "\r\n\n"...) // no text, and it ends like one
	text := strings.Repeat("비밀", 8)
	for name, c := range map[string]struct {
		file   string
		secret []byte
	}{
		"a text":                    {text, []byte(text)},
		"a line":                    {text + "\n", []byte(text)},
		"a line of Windows":         {text + "\r\n", []byte(text)},
		"a line and an empty one":   {text + "\n\n", []byte(text + "\n")},
		"bytes":                     {string(raw), raw},
		"base64":                    {"base64:" + base64.StdEncoding.EncodeToString(raw) + "\n", raw},
		"base64 for URLs, unpadded": {"base64:" + base64.RawURLEncoding.EncodeToString(raw), raw},
		"hex":                       {"hex:" + hex.EncodeToString(raw) + "\n", raw},
		"digits that are a text":    {hex.EncodeToString(raw), []byte(hex.EncodeToString(raw))},
	} {
		t.Run(name, func(t *testing.T) {
			secret, err := auth.ParseSecret([]byte(c.file))
			stage.Must(t, err)
			caller, err := authenticator(t, auth.JWTConfig{Secret: secret}).Authenticate(request("Bearer " + sign(t, jwt.SigningMethodHS256, c.secret, good(nil), nil)))
			if err != nil || caller.User != "alice" {
				t.Errorf("it is of %+v, %v", caller, err)
			}
		})
	}
	for _, bad := range []string{"base64:%%%", "hex:0"} {
		if _, err := auth.ParseSecret([]byte(bad)); err == nil || strings.Contains(err.Error(), "%%%") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAnEncodedSecretThatIsTakenForATextIsLogged checks that it is logged once.
func TestAnEncodedSecretThatIsTakenForATextIsLogged(t *testing.T) {
	for form, text := range map[string]string{"base64:": base64.StdEncoding.EncodeToString(secret), "hex:": hex.EncodeToString(secret)} {
		j, err := auth.NewJWT(auth.JWTConfig{Secret: []byte(text)})
		stage.Must(t, err)
		var log bytes.Buffer
		a := auth.New(auth.Options{JWT: j, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for _, key := range [][]byte{other, secret, secret} {
			if _, err := a.Authenticate(request("Bearer " + sign(t, jwt.SigningMethodHS256, key, good(nil), nil))); err == nil {
				t.Error("it is good")
			}
		}
		if strings.Count(log.String(), "write "+form) != 1 || strings.Contains(log.String(), text) {
			t.Errorf("%s: the log says %s", form, &log)
		}
	}
}
