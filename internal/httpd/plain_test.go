package httpd

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

// AClaim is a plain request.
const AClaim = "POST /v1/campaigns/c/claims HTTP/1.1\r\nHost: shop.example:8080\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"user_id\":\"u\"}"

// With returns AClaim with an additional header line.
func With(line string) string {
	return strings.Replace(AClaim, "\r\n", "\r\n"+line+"\r\n", 1)
}

var findings = []struct {
	what, text string
	found      finding
}{
	{"a claim", AClaim, complete},
	{"a claim with a token", With("Authorization: Bearer abc.def"), complete},
	{"a header twice", With("X-Forwarded-For: 10.0.0.1\r\nx-forwarded-for: 10.0.0.2"), complete},
	{"a header without a value", With("Accept:"), complete},
	{"a value between blanks", With("Accept: \t a b\t "), complete},
	{"many lines", With(strings.Repeat("X: y\r\n", maxLines-4) + "X: z"), complete},
	{"keep-alive", With("Connection: Keep-Alive"), complete},
	{"a request without a body", "GET /v1/facts?from=1 HTTP/1.1\r\nHost: h\r\n\r\n", complete},
	{"an escape", "GET /v1/users/a%2Fb%ea/coupons HTTP/1.1\r\nHost: h\r\n\r\n", complete},
	{"a length of nothing", "DELETE /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", complete},

	{"nothing", "", part},
	{"half a line", "POST /v1/cam", part},
	{"a line", "POST /v1/campaigns/c/claims HTTP/1.1\r\n", part},
	{"half a line's end", "POST /v1/campaigns/c/claims HTTP/1.1\r", part},
	{"half a head", AClaim[:70], part},
	{"a body without its end", AClaim[:len(AClaim)-1], headed},

	{"two claims", AClaim + AClaim, other},
	{"a byte behind it", AClaim + "\n", other},
	{"a body without a length", strings.Replace(AClaim, "Content-Length: 15\r\n", "", 1), other},
	{"two lengths", With("Content-Length: 15"), other},
	{"two lengths in one", strings.Replace(AClaim, ": 15", ": 15, 15", 1), other},
	{"a length with a sign", strings.Replace(AClaim, ": 15", ": +15", 1), other},
	{"a length with another sign", strings.Replace(AClaim, ": 15", ": 1:", 1), other},
	{"a length that is long", strings.Replace(AClaim, ": 15", ": 0000015", 1), other},
	{"a length that is empty", strings.Replace(AClaim, ": 15", ":", 1), other},
	{"chunks", With("Transfer-Encoding: chunked"), other},
	{"chunks in other letters", With("transfer-encoding: Chunked"), other},
	{"chunks behind a space", With("Transfer-Encoding : chunked"), other},
	{"chunks on a second line", With("X: y\r\n Transfer-Encoding: chunked"), other},
	{"the connection's end", With("Connection: close"), other},
	{"another protocol", With("Connection: Upgrade\r\nUpgrade: h2c"), other},
	{"who waits to be told to go on", With("Expect: 100-continue"), other},
	{"who waits, without the end of the head", "POST / HTTP/1.1\r\nExpect: 100-continue\r\nHost:", other},
	{"no host", strings.Replace(AClaim, "Host: shop.example:8080\r\n", "", 1), other},
	{"two hosts", With("Host: other.example"), other},
	{"a host that is none", strings.Replace(AClaim, "shop.example", "a b", 1), other},
	{"HTTP/1.0", strings.Replace(AClaim, "HTTP/1.1", "HTTP/1.0", 1), other},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", other},
	{"another method", "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"a URL with a host", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"a space in the path", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"half an escape", "GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"an escape that is none", "GET /a%2x HTTP/1.1\r\nHost: h\r\n\r\n", other},
	{"lines that end without a return", "GET / HTTP/1.1\nHost: h\n\n", other},
	{"one line that does", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", other},
	{"a line that is no header", "GET / HTTP/1.1\r\nHost h\r\n", other},
	{"a line's end before it", "\r\n" + AClaim, other},
	{"a zero", With("X: a\x00b"), other},
	{"too many lines", With(strings.Repeat("X: y\r\n", maxLines-3) + "X: z"), other},
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
			if found := new(plain).read([]byte(With(name + ": x"))); found != other {
				t.Errorf("with %s it is found to be %d", name, found)
			}
		}
	}
}

func TestALanesRoutesAreThoseThatAreShort(t *testing.T) {
	s := New(Options{Short: []Route{{"POST", "/v1/campaigns/{id}/claims"}, {"GET", "/v1/campaigns/{id}/claims/{user}"}, {"GET", "/"}}})
	for line, want := range map[string]bool{
		"POST /v1/campaigns/c/claims":          true,
		"POST /v1/campaigns/-._~9Z/claims":     true,
		"POST /v1/campaigns/../claims":         true, // as little a campaign as others: the handler says so
		"GET /v1/campaigns/c/claims/u":         true,
		"GET /":                                true,
		"GET /v1/campaigns/c/claims":           false,
		"PUT /v1/campaigns/c/claims":           false,
		"POST /v1/campaigns//claims":           false,
		"POST /v1/campaigns/claims":            false,
		"POST /v1/campaigns/c/d/claims":        false,
		"POST /v1/campaigns/%63/claims":        false,
		"POST /v1/campaigns/c/claims?x=y":      false,
		"POST /v1/campaigns/c/claims/":         false,
		"POST /v1/campaigns/c/claims/u":        false,
		"POST /v1/campaigns/c/coupons":         false,
		"POST /v1/campaigns/c/claim":           false,
		"GET /v1/campaigns/c/claims/u/":        false,
		"GET /v1/campaigns/c/claims/u?pretty":  false,
		"GET /v1/campaigns/c/claims/%75":       false,
		"GET //":                               false,
		"GET /v1/campaigns/c/claims/u/coupons": false,
	} {
		var p plain
		if p.read([]byte(line+" HTTP/1.1\r\nHost: h\r\n\r\n")) != complete || s.isShort(p.method, p.target) != want {
			t.Errorf("%s is short: %t", line, !want)
		}
	}
}

// TestAHandlerThatKeepsThePathKeepsNothingElse matters because a part of the path becomes a key of maps, and the head may be long and contain a
// token.
func TestAHandlerThatKeepsThePathKeepsNothingElse(t *testing.T) {
	const heads = 1000
	text := []byte(With("Authorization: Bearer " + strings.Repeat("x", 3000)))
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
		if p.read(text) != complete {
			t.Fatal("it is not whole")
		}
		kept[n] = p.target
	}
	if each := (inUse() - before) / heads; each > 1000 {
		t.Errorf("a handler that keeps the path of a request keeps %d bytes", each)
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

// FuzzPlain checks that net/http reads a plain request in the same way, with nothing left over, and that net/http also waits for the rest of a
// request that may become plain.
func FuzzPlain(f *testing.F) {
	for _, c := range findings {
		f.Add([]byte(c.text))
	}
	short := New(Options{Short: []Route{{"POST", "/v1/campaigns/{id}/claims"}, {"GET", "/{a}/{b}"}}})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p plain
		found := p.read(b)
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
		if short.isShort(p.method, p.target) && r.URL.Path != p.target {
			t.Errorf("net/http reads the path %s", r.URL.Path)
		}
		if difference := cmp.Diff(r.Header, p.header); difference != "" {
			t.Error(difference)
		}
	})
}
