package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// A crossOrigin lets pages of other origins ask. A browser sends their request and then checks
// whether they may read the answer. Before it sends what a plain form cannot, such as a token, it
// asks for permission (a preflight). Neither keeps other clients from asking.
type crossOrigin struct {
	origins map[string][]string // as header values
	methods []string            // all methods, as one header value
	next    http.Handler
}

// Header values of crossOrigin. A page may set the headers that the API reads, and all that it asks to set: scripts that trace
// requests add their own. It may read those that say when to come again and which version it saw.
var (
	varyOrigin     = []string{"Origin"}
	allowedHeaders = []string{"Authorization, Content-Type, If-Match, Last-Event-ID"}
	exposedHeaders = []string{"Retry-After, ETag, WWW-Authenticate"}
	preflightAge   = []string{"600"} // seconds: an origin that is removed is refused soon
)

// letAsk returns a handler that lets pages of origins ask next, which serves the methods.
func letAsk(origins, methods []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	c := &crossOrigin{map[string][]string{}, []string{strings.Join(methods, ", ")}, next}
	for _, origin := range origins {
		c.origins[origin] = []string{origin}
	}
	return c
}

func (c *crossOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Vary"] = varyOrigin
	origin := c.origins[r.Header.Get("Origin")]
	if origin != nil {
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = exposedHeaders
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		c.next.ServeHTTP(w, r)
		return
	}
	setCommonHeaders(w)
	if origin == nil {
		writeProblem(w, newProblem(crossSite, "pages of this origin may not ask: --cors-origin names those that may"))
		return
	}
	h["Access-Control-Allow-Methods"] = c.methods
	h["Access-Control-Allow-Headers"] = allowedHeaders
	if asked := r.Header["Access-Control-Request-Headers"]; len(asked) > 0 && asked[0] != "" {
		h["Access-Control-Allow-Headers"] = asked
	}
	h["Access-Control-Max-Age"] = preflightAge
	w.WriteHeader(http.StatusNoContent)
}

// ParseOrigin reads an origin as browsers send it, like https://app.shop.example. It
// refuses patterns for all origins or for a domain.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Contains(u.Host, "*") ||
		text != u.Scheme+"://"+strings.ToLower(u.Host) || u.Port() == defaultPort[u.Scheme] || strings.HasSuffix(u.Host, ":") {
		return "", fmt.Errorf("%q is no origin as browsers send it: scheme, host in lower case, and a port only if it is not the scheme's own, like https://app.shop.example", text)
	}
	return text, nil
}

var defaultPort = map[string]string{"http": "80", "https": "443"}
