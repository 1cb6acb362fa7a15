package console

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
)

const (
	// cookieName is the cookie of the session. With TLS, its prefix makes browsers refuse it from any other host.
	cookieName       = "firstcome"
	secureCookieName = "__Host-firstcome"
	// idle ends an unused session. longest ends every session, except that of a viewer who follows a Live page.
	idle    = 12 * time.Hour
	longest = 7 * 24 * time.Hour
	// reseal is how long ago a session may have been seen before its cookie is written again.
	reseal = 5 * time.Minute
)

// A session says who is logged in. No node stores it, so every node accepts it until its key is revoked or logged out.
type session struct {
	Key          string // the API key's id
	Issued, Seen time.Time
}

// A seal makes cookies that only nodes with the same code secret can read or make.
type seal struct{ cipher.AEAD }

func newSeal(secret firstcome.Secret) *seal {
	block, err := aes.NewCipher(secret.Key("console session 2"))
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	sealed, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return &seal{sealed}
}

// write returns the session in sealed form.
func (s *seal) write(in session) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(in.Issued.UnixMicro()))
	plain = binary.BigEndian.AppendUint64(plain, uint64(in.Seen.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, append(plain, in.Key...), nil))
}

// A doneNote tells a page what was done.
type doneNote struct {
	Korean, English, Path string
	At                    time.Time
}

// noteLasts is how long a page says what was done, also when it is reloaded.
const noteLasts = 30 * time.Second

// ofNotes keeps a note from being accepted as a session.
var ofNotes = []byte("done")

// note returns a note in sealed form.
func (s *seal) note(n doneNote) string {
	text, _ := json.Marshal(n) // texts and an instant can always be encoded
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, text, ofNotes))
}

// noted opens a sealed note. It returns false if the text is none.
func (s *seal) noted(text string) (n doneNote, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return n, false
	}
	plain, err := s.Open(nil, nil, sealed, ofNotes)
	return n, err == nil && json.Unmarshal(plain, &n) == nil
}

var errNoSession = errors.New("there is no session")

// read opens a sealed session. It returns errNoSession if the text is none, or if the session is over at now.
func (s *seal) read(text string, now time.Time) (session, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return session{}, errNoSession
	}
	plain, err := s.Open(nil, nil, sealed, nil)
	if err != nil || len(plain) < 16 {
		return session{}, errNoSession
	}
	got := session{
		Issued: time.UnixMicro(int64(binary.BigEndian.Uint64(plain))), Seen: time.UnixMicro(int64(binary.BigEndian.Uint64(plain[8:]))),
		Key: string(plain[16:]),
	}
	if now.Sub(got.Seen) > idle || now.Sub(got.Issued) > longest {
		return session{}, errNoSession
	}
	return got, nil
}

// cookieName returns the name of the session's cookie.
func (c *core) cookieName() string {
	if c.Secure {
		return secureCookieName
	}
	return cookieName
}

// keep sets the session's cookie. An empty text removes it.
func (c *core) keep(w http.ResponseWriter, text string) {
	cookie := http.Cookie{
		Name: c.cookieName(), Value: text, Path: "/", MaxAge: int(idle / time.Second),
		HttpOnly: true, Secure: c.Secure, SameSite: http.SameSiteLaxMode,
	}
	if text == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, &cookie)
}

// person returns the person who sent a request.
func (c *core) person(w http.ResponseWriter, r *http.Request) (person, error) {
	if c.Auth.Open() {
		return person{Role: firstcome.Admin, Name: "local", Actor: "local"}, nil
	}
	now := c.Clock()
	s, key, err := c.session(r, now)
	if err != nil {
		return person{}, err
	}
	if now.Sub(s.Seen) > reseal && s.use(now, key.Role, strings.HasSuffix(r.Pattern, "/events")) {
		c.keep(w, c.seal.write(s))
	}
	return personOf(key), nil
}

// session returns a request's session, if it is good now, and its key.
func (c *core) session(r *http.Request, now time.Time) (s session, key firstcome.Key, err error) {
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return s, key, errNoSession
	}
	if s, err = c.seal.read(cookie.Value, now); err != nil {
		return s, key, err
	}
	key, ok := c.Auth.Key(s.Key)
	if !ok || !s.Issued.After(key.LoggedOutAt) {
		return s, key, errNoSession
	}
	return s, key, nil
}

// use renews a session, and reports whether it did. A stream that reconnects does not show that a person is there, so it renews only a viewer's
// session: a screen on the wall works for as long as its key is valid, and a viewer can only look.
func (s *session) use(now time.Time, role firstcome.Role, streams bool) bool {
	if streams && role != firstcome.Viewer {
		return false
	}
	if s.Seen = now; streams {
		s.Issued = now
	}
	return true
}

// A person is who is logged in.
type person struct {
	Role  firstcome.Role
	Name  string // the key's name
	Actor string // for the audit log, as the API writes it
}

func personOf(k firstcome.Key) person {
	return person{Role: k.Role, Name: k.Name, Actor: "key:" + k.ID}
}
