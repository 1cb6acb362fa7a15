package api

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aClaim = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: shop.example:8080\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"user_id\":\"u\"}"

// with returns aClaim with another header line.
func with(line string) string {
	return strings.Replace(aClaim, "\r\n", "\r\n"+line+"\r\n", 1)
}

var findings = []struct {
	what, text string
	found      finding
}{
	{"a claim", aClaim, whole},
	{"a claim with a token", with("Authorization: Bearer abc.def"), whole},
	{"a header twice", with("X-Forwarded-For: 10.0.0.1\r\nx-forwarded-for: 10.0.0.2"), whole},
	{"a header without a value", with("Accept:"), whole},
	{"a value between blanks", with("Accept: \t a b\t "), whole},
	{"many lines", with(strings.Repeat("X: y\r\n", maxLines-4) + "X: z"), whole},
	{"keep-alive", with("Connection: Keep-Alive"), whole},
	{"a request without a body", "GET /v1/facts?from=1 HTTP/1.1\r\nHost: h\r\n\r\n", whole},
	{"an escape", "GET /v1/users/a%2Fb%ea/coupons HTTP/1.1\r\nHost: h\r\n\r\n", whole},
	{"a length of nothing", "DELETE /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", whole},

	{"nothing", "", part},
	{"half a line", "POST /v1/cam", part},
	{"a line", "POST /v1/campaigns/c/claims HTTP/1.1\r\n", part},
	{"half a line's end", "POST /v1/campaigns/c/claims HTTP/1.1\r", part},
	{"half a head", aClaim[:70], part},
	{"a body without its end", aClaim[:len(aClaim)-1], headed},

	{"two claims", aClaim + aClaim, other},
	{"a byte behind it", aClaim + "\n", other},
	{"a body without a length", strings.Replace(aClaim, "Content-Length: 15\r\n", "", 1), other},
	{"two lengths", with("Content-Length: 15"), other},
	{"two lengths in one", strings.Replace(aClaim, ": 15", ": 15, 15", 1), other},
	{"a length with a sign", strings.Replace(aClaim, ": 15", ": +15", 1), other},
	{"a length with another sign", strings.Replace(aClaim, ": 15", ": 1:", 1), other},
	{"a length that is long", strings.Replace(aClaim, ": 15", ": 0000015", 1), other},
	{"a length that is empty", strings.Replace(aClaim, ": 15", ":", 1), other},
	{"chunks", with("Transfer-Encoding: chunked"), other},
	{"chunks in other letters", with("transfer-encoding: Chunked"), other},
	{"chunks behind a space", with("Transfer-Encoding : chunked"), other},
	{"chunks on a second line", with("X: y\r\n Transfer-Encoding: chunked"), other},
	{"the connection's end", with("Connection: close"), other},
	{"another protocol", with("Connection: Upgrade\r\nUpgrade: h2c"), other},
	{"who waits to be told to go on", with("Expect: 100-continue"), other},
	{"who waits, without the end of the head", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nHost:", other},
	{"no host", strings.Replace(aClaim, "Host: shop.example:8080\r\n", "", 1), other},
	{"two hosts", with("Host: other.example"), other},
	{"a host that is none", strings.Replace(aClaim, "shop.example", "a b", 1), other},
	{"HTTP/1.0", strings.Replace(aClaim, "HTTP/1.1", "HTTP/1.0", 1), other},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", other},
	{"another method", "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"a URL with a host", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"a space in the path", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"half an escape", "GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"an escape that is none", "GET /a%2x HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"lines that end without a return", "GET / HTTP/1.1\nHost: h\n\n", other},
	{"one line that does", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", other},
	{"a line that is no header", "GET / HTTP/1.1\r\nHost h\r\n", other},
	{"a line's end before it", "\r\n" + aClaim, other},
	{"a zero", with("X: a\x00b"), other},
	{"too many lines", with(strings.Repeat("X: y\r\n", maxLines-3) + "X: z"), other},
}

func TestWhatCanBeReadInOneWayOnlyIsPlain(t *testing.T) {
	for _, c := range findings {
		if found := new(plain).read([]byte(c.text)); found != c.found {
			t.Errorf("%s is found to be %d, not %d: %q", c.what, found, c.found, c.text)
		}
	}
}

func TestWhatNetHTTPMayActOnIsNotPlain(t *testing.T) {
	for _, name := range []string{"Transfer-Encoding", "Trailer", "TE", "Expect", "Upgrade", "Keep-Alive", "Proxy-Connection", "HTTP2-Settings", "Pragma"} {
		for _, name := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if found := new(plain).read([]byte(with(name + ": x"))); found != other {
				t.Errorf("with %s it is found to be %d", name, found)
			}
		}
	}
}

func TestOnlyAClaimIsAClaim(t *testing.T) {
	for line, want := range map[string]bool{
		"POST /v1/campaigns/c/claims":      true,
		"POST /v1/campaigns/-._~9Z/claims": true,
		"POST /v1/campaigns/../claims":     true, // as little a campaign as others: the handler says so
		"GET /v1/campaigns/c/claims":       false,
		"POST /v1/campaigns//claims":       false,
		"POST /v1/campaigns/claims":        false,
		"POST /v1/campaigns/c/d/claims":    false,
		"POST /v1/campaigns/%63/claims":    false,
		"POST /v1/campaigns/c/claims?x=y":  false,
		"POST /v1/campaigns/c/claims/u":    false,
		"POST /v1/campaigns/c/coupons":     false,
	} {
		var p plain
		if p.read([]byte(line+" HTTP/1.1\r\nHost: h\r\n\r\n")) != whole || p.isClaim() != want {
			t.Errorf("%s is a claim: %t", line, !want)
		}
	}
}

// TestWhoKeepsACampaignsIDKeepsNothingElse: the id of a request's path is a key of maps, and its head may
// be long and hold a token.
func TestWhoKeepsACampaignsIDKeepsNothingElse(t *testing.T) {
	const heads = 1000
	text := []byte(with("Authorization: Bearer " + strings.Repeat("x", 3000)))
	inUse := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	var kept [heads]string
	before := inUse()
	for n := range heads {
		var p plain
		if p.read(text) != whole {
			t.Fatal("it is not whole")
		}
		kept[n] = p.target
	}
	if each := (inUse() - before) / heads; each > 1000 {
		t.Errorf("who keeps the path of a request keeps %d bytes", each)
	}
	runtime.KeepAlive(&kept)
}

// A watchedReader knows whether it was asked for more than there is.
type watchedReader struct {
	from  *bytes.Reader
	ended bool
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.ended = w.ended || err != nil
	return n, err
}

// FuzzPlain: what is plain is the same to net/http, with nothing left over; and for what may become
// plain net/http would wait, too. A lane finds the same where net/http has its first byte already.
func FuzzPlain(f *testing.F) {
	for _, c := range findings {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p plain
		found := p.read(b)
		if n := len(b); 1 < n && n <= 4096 {
			l := &lane{lanes: newLanes(nil, laneLimits), early: b[:1]}
			if _, err := l.read(&conn{Conn: textConn{Reader: bytes.NewReader(b[1:])}}, make([]byte, 4095)); err != nil {
				t.Fatal(err)
			}
			if goesOn := l.stage == during && len(l.early) == 0; goesOn != (found == whole) {
				t.Errorf("behind %q with its first byte early a lane's stage is %d", b, l.stage)
			}
		}
		if n := len(b); 0 < n && n <= 4096 {
			l := &lane{lanes: &lanes{limits: laneLimits, handsOver: true}}
			l.turns.New = func() any { return &turn{} }
			if _, err := l.read(&conn{Conn: textConn{Reader: bytes.NewReader(b)}}, make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			if goesOn := l.stage == during; goesOn != (found == whole || found == headed) || goesOn && l.rest != p.rest {
				t.Errorf("behind %q the stage of a lane without bodies is %d, and %d bytes are to come", b, l.stage, l.rest)
			}
		}
		if found == other {
			return
		}
		came := &watchedReader{from: bytes.NewReader(b)}
		rest := bufio.NewReader(came)
		r, err := http.ReadRequest(rest)
		var sent []byte
		if err == nil {
			sent, err = io.ReadAll(r.Body)
		}
		if found == part || found == headed {
			if !came.ended {
				t.Fatalf("net/http does not wait for the rest of %q: %v", b, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("net/http does not read %q: %v", b, err)
		}
		delete(r.Header, "Host")
		if left, _ := io.ReadAll(rest); len(left) > 0 {
			t.Errorf("net/http leaves %q of %q", left, b)
		}
		if r.Method != p.method || r.RequestURI != p.target || r.Host != p.host || !bytes.Equal(sent, p.body) || r.Close {
			t.Errorf("net/http reads %s %s of %s with %q", r.Method, r.RequestURI, r.Host, sent)
		}
		if p.isClaim() && r.URL.Path != p.target {
			t.Errorf("net/http reads the path %s", r.URL.Path)
		}
		if difference := cmp.Diff(r.Header, p.header); difference != "" {
			t.Error(difference)
		}
	})
}
