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
	// firstEvent is how long a stream may take until its first event, and silence the longest time between two, because the server sends something
	// every 15 s. If it takes longer, a proxy holds the stream back, or the server is gone.
	firstEvent, silence = 10 * time.Second, 40 * time.Second
	// A stream that broke or was refused is tried again after firstStream or longer, and then after twice as long each time, up to longestStream.
	// Until then the line is polled.
	firstStream, longestStream = 2 * time.Second, time.Minute
	// maxEvent is the most bytes of a line of a stream: enough for a coupon with its benefit.
	maxEvent = 256 << 10
)

// An event is an event of a stream.
type event struct{ kind, id, data string }

// stream follows the place on a stream until that ends, and reports whether the user's place has ended. After an error Follow continues by polling
// the line.
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

// nextEvent reads the next event, and calls alive for each line. io.EOF means that the stream has ended.
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

// errLeft means that the stream reports that the user left the line. The user's own claim reports that too, with a Problem.
var errLeft = errors.New("the user left the line")

// take handles an event.
func (f *follower) take(e event) (answer Answer, done bool, err error) {
	if e.kind != "place" && e.kind != "outcome" { // of a newer firstcome
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

// left is the outcome in the stream of a user who left the line.
const left = "left"

// tryStream follows on a stream if one may be tried now. It reports whether the user's place has ended.
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
