package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const (
	// firstEvent is how long a stream may take to tell something, and silence how long it may be silent then: the server says
	// something every 15 s. Else a proxy on the way holds it back, or the server is gone.
	firstEvent, silence = 10 * time.Second, 40 * time.Second
	// A stream that broke or was refused is tried again after firstStream at least, and then twice as long each time, up to
	// longestStream. Meanwhile the line is read.
	firstStream, longestStream = 2 * time.Second, time.Minute
	// maxEvent is the longest line of a stream, in bytes: a coupon with its benefit, and room for more.
	maxEvent = 256 << 10
)

// An event is one of a stream.
type event struct{ kind, id, data string }

// stream follows the place by a stream until that ends, and tells whether it is over for the user. An error is not the end:
// the line says as much.
func (f *follower) stream(ctx context.Context) (answer Answer, done bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	silent := time.AfterFunc(firstEvent, stop)
	defer silent.Stop()
	asked := request{method: http.MethodGet, path: campaignPath(f.id, "claims", f.user, "events"), header: http.Header{"Accept": {"text/event-stream"}}}
	if f.heard != "" {
		asked.header["Last-Event-Id"] = []string{f.heard}
	}
	response, err := f.client.send(ctx, asked)
	if err != nil {
		return answer, false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return answer, false, problem(response)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	for {
		e, err := nextEvent(lines, func() { silent.Reset(silence) })
		if err != nil {
			return answer, false, err
		}
		if answer, done, err = f.take(e); done || err != nil {
			return answer, done, err
		}
	}
}

// nextEvent reads the next event; each line that comes is told. io.EOF: the stream has ended.
func nextEvent(lines *bufio.Scanner, alive func()) (e event, err error) {
	for lines.Scan() {
		alive()
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			e.data += value
		case "":
			if lines.Text() == "" && e.kind != "" {
				return e, nil
			}
		}
	}
	if err := lines.Err(); err != nil {
		return e, fmt.Errorf("read the stream of a place: %w", err)
	}
	return e, io.EOF
}

// errLeft says that the user left the line, as the stream has it. Their claim says so, too, with the words of any Problem.
var errLeft = errors.New("the user left the line")

// take goes by an event.
func (f *follower) take(e event) (answer Answer, done bool, err error) {
	if e.kind != "place" && e.kind != "outcome" { // of a later firstcome
		return answer, false, nil
	}
	if err := json.Unmarshal([]byte(e.data), &answer); err != nil {
		return answer, false, fmt.Errorf("read an event of a place: %w", err)
	}
	f.heard, f.streams = e.id, firstStream
	switch {
	case e.kind == "outcome" && answer.Outcome == left:
		f.heard = ""
		return Answer{}, false, errLeft
	case e.kind == "outcome":
		return answer, true, nil
	case answer.Place != nil:
		f.place = *answer.Place
		f.tell()
	}
	return answer, false, nil
}

// left is the outcome that a stream tells who left the line.
const left = "left"

// tryStream follows by a stream if it is time for one. It tells whether it is over for the user.
func (f *follower) tryStream(ctx context.Context) (answer Answer, done bool) {
	if time.Now().Before(f.next) {
		return answer, false
	}
	answer, done, err := f.stream(ctx)
	var p *Problem
	pause := f.streams/2 + rand.N(f.streams)
	if errors.As(err, &p) {
		pause += p.RetryAfter
	}
	f.next, f.streams = time.Now().Add(pause), min(2*f.streams, longestStream)
	return answer, done
}
