//go:build !check

package redis_test

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF01AServerThatStillReadsItsFileIsNotOneThatKeepsNone restarts a server that reads its file slowly, and asks it before it has finished. Until
// then INFO says that it appends to no file.
func TestF01AServerThatStillReadsItsFileIsNotOneThatKeepsNone(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always", "--key-load-delay", "500")
	g := open(t, server.URL())
	client, err := rueidis.NewClient(rueidis.MustParseURL(server.URL()))
	stage.Must(t, err)
	defer client.Close()
	fill := client.B().Eval().Script(`for i = 1, 20000 do redis.call('SET', 'filler:' .. i, i) end return 1`).Numkeys(0).Build()
	stage.Must(t, client.Do(t.Context(), fill).Error())
	stage.Must(t, server.Kill())
	back := make(chan error, 1)
	go func() { back <- server.Restart(t.Context()) }()
	var runs []recovery.Run
	reading := 0
	stage.Await(t, "an answer", 1, func() int {
		runs, err = g.Runs(t.Context())
		if err != nil && strings.Contains(err.Error(), "reads its file") {
			reading++
			_ = client.Do(t.Context(), client.B().ConfigSet().ParameterValue().ParameterValue("key-load-delay", "0").Build()).Error() // from here on it reads fast
		}
		return len(runs)
	})
	stage.Must(t, <-back)
	if reading == 0 || !runs[0].Durable {
		t.Errorf("it was asked %d times while it read its file; behind that it is %+v", reading, runs[0])
	}
}
