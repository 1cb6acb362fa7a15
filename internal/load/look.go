package load

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// A looker sends a crowd's requests to the nodes of a fleet in turn.
type looker struct {
	Options
	fleet *fleet
	next  atomic.Int64
	asked atomic.Int64 // requests for the line that were sent to a node

	mu   sync.Mutex // guards what follows; held during the look that stands for all
	kept client.Line
	at   time.Time
}

// maxAge is how long a cache may keep a line.
const maxAge = time.Second

// line returns the campaign's line, or what went wrong. fresh bypasses the CDN.
func (l *looker) line(fresh bool) (client.Line, sight) {
	if !l.CDN || fresh {
		return l.readLine()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < maxAge {
		return l.kept, sight{}
	}
	line, failed := l.readLine()
	if failed.trouble == "" {
		l.kept, l.at = line, time.Now()
	}
	return line, failed
}

func (l *looker) readLine() (line client.Line, failed sight) {
	l.asked.Add(1)
	status, failed := l.do(http.MethodGet, "line", func(_ int, body []byte) error { return json.Unmarshal(body, &line) })
	if failed.trouble == "" && status != http.StatusOK {
		failed.trouble = httpTrouble(status)
	}
	return line, failed
}

// claim asks for a follower's own claim. The status 404 means that they are not in line.
func (l *looker) claim(f *follower) (status int, seen sight) {
	var answer Answer
	status, seen = l.do(http.MethodGet, l.claimPath(f), func(status int, body []byte) error {
		if answer = ParseAnswer(status, body); answer.Outcome == 0 && status == http.StatusOK {
			answer = ParseAnswer(firstcome.Waiting.Status(), body) // a place: the status differs from that of the answer to a claim
		}
		return nil
	})
	switch {
	case seen.trouble != "" || status == http.StatusNotFound:
	case answer.Outcome.HasCoupon():
		seen = sight{end: audit.Served, answer: answer}
	case answer.Outcome == firstcome.Waiting:
		seen = sight{place: *answer.Place}
	default:
		seen.trouble = httpTrouble(status)
	}
	return status, seen
}

// leave takes a follower out of the line, and reports whether they left. Otherwise they were served, or the generation ended.
func (l *looker) leave(f *follower) (seen sight, left bool) {
	status, seen := l.do(http.MethodDelete, l.claimPath(f), nil)
	switch {
	case seen.trouble != "" || status == http.StatusConflict || status == http.StatusNotFound:
		return seen, false
	case status == http.StatusOK:
		return sight{end: audit.Left}, true
	}
	seen.trouble = httpTrouble(status)
	return seen, false
}

// claimPath returns the path of a follower's claim.
func (l *looker) claimPath(f *follower) string {
	return "claims/" + url.PathEscape(userID(l.Prefix, int(f.user)))
}

func httpTrouble(status int) string { return "HTTP " + strconv.Itoa(status) }

// do sends a request to the next node, and calls read with the answer, if the server could give one.
func (l *looker) do(method, path string, read func(status int, body []byte) error) (status int, failed sight) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	to := &l.fleet.nodes[int(l.next.Add(1)-1)%len(l.fleet.nodes)]
	request.Header.SetMethod(method)
	request.SetRequestURI(to.campaign + path)
	if l.Key != "" && path != "line" {
		request.Header.Set("Authorization", "Bearer "+l.Key)
	}
	if err := to.client.Do(request, response); err != nil {
		return 0, sight{trouble: trouble(err)}
	}
	status = response.StatusCode()
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		after, _ := strconv.Atoi(string(response.Header.Peek(fasthttp.HeaderRetryAfter)))
		return status, sight{trouble: httpTrouble(status), after: time.Duration(after) * time.Second}
	}
	if read != nil && read(status, response.Body()) != nil {
		return status, sight{trouble: httpTrouble(status) + " without JSON"}
	}
	return status, sight{}
}
