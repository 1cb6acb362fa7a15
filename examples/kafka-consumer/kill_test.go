//go:build !check

package main

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"modernc.org/sqlite"

	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// killedAt is the variable that makes the test's program the sample, which kills itself where the variable says.
const killedAt = "KAFKA_CONSUMER_KILLED_AT"

// The points at which a process is killed, and nowhere.
const (
	polled    = "polled"    // it has records, and nothing is written
	writing   = "writing"   // all is written, and the transaction is not committed
	halfway   = "halfway"   // the same of the second transaction: there should be one for all that belongs together
	written   = "written"   // the transaction is committed, and Kafka does not know
	told      = "told"      // Kafka knows, and the next records are there
	wherever  = "wherever"  // the test kills it at any moment
	nowhere   = "nowhere"   // it goes on
	isRunning = "running\n" // what a process prints when it has its first records
)

// beKilled runs the program, which kills itself at a point.
func beKilled(point string) {
	if point == nowhere {
		main()
		os.Exit(0)
	}
	log.SetOutput(io.Discard)
	arm := dieOnCommit()
	g := group{brokers: os.Args[1], topic: os.Args[2], name: os.Args[2], instance: "shop-0"}
	s, err := open(context.Background(), os.Args[3])
	if err != nil {
		log.Panic(err)
	}
	client, err := g.join(context.Background(), s)
	if err != nil {
		log.Panic(err)
	}
	batch := 0
	err = consume(context.Background(), client, func(ctx context.Context, records []*kgo.Record) error {
		if batch++; batch == 1 {
			_, _ = os.Stdout.WriteString(isRunning)
		}
		if point == polled || point == told && batch == 2 {
			die()
		}
		if batch == 1 && (point == writing || point == halfway) {
			arm(map[string]int{writing: 1, halfway: 2}[point])
		}
		err := s.take(ctx, records)
		if point == written {
			die()
		}
		return err
	})
	log.Panic("it ends: ", err)
}

// die kills this process at once.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		log.Panic(err)
	}
	_ = self.Kill()
	select {}
}

// dieOnCommit returns what makes the process kill itself as it commits the nth transaction from then on.
func dieOnCommit() (arm func(n int)) {
	left := 0
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		conn.(interface{ RegisterCommitHook(sqlite.CommitHookFn) }).RegisterCommitHook(func() int32 {
			if left--; left == 0 {
				die()
			}
			return 0
		})
		return nil
	})
	return func(n int) { left = n }
}

// life starts the program, which is killed at a point, and returns what waits for its end.
func (p *publisher) life(t *testing.T, point, file string) (c *exec.Cmd, begun <-chan struct{}, ended <-chan error) {
	t.Helper()
	arguments := []string{p.brokers, p.topic, file}
	if point == nowhere {
		arguments = []string{"--brokers", p.brokers, "--topic", p.topic, "--group", p.name, "--instance", "shop-0", "--db", file}
	}
	c = exec.Command(os.Args[0], arguments...)
	c.Env = append(os.Environ(), killedAt+"="+point)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	stage.Must(t, err)
	stage.Must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	begin, end := make(chan struct{}), make(chan error, 1)
	go func() {
		if line := make([]byte, len(isRunning)); stage.Err(io.ReadFull(out, line)) == nil {
			close(begin)
		}
		_, _ = io.Copy(io.Discard, out)
		end <- c.Wait()
	}()
	return c, begin, end
}

// longestLife is longer than a process takes to pass its point, on a busy machine, too.
const longestLife = 2 * time.Minute

// dies runs the program until it is killed at a point, while more is published.
func (p *publisher) dies(t *testing.T, point, file string, random *rand.Rand, more func()) {
	t.Helper()
	c, begun, ended := p.life(t, point, file)
	tick, late := time.NewTicker(100*time.Millisecond), time.After(longestLife)
	defer tick.Stop()
	for {
		more()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("%s: it ends with %v", point, err)
			}
			return
		case <-begun:
			begun = nil
			if point == wherever {
				<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond)
				stage.Must(t, c.Process.Kill())
			}
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: it is not killed: it seems to read nothing", point)
		}
	}
}

// TestWhereverItIsKilledItGoesOn kills the program at each of its points and wherever it is, again and again, while facts are published, many of
// them twice. After each kill the table is what the facts up to its cursors say, it would read on behind no fact that it does not have, and
// Kafka knows of no more than that. In the end the table has all facts.
func TestWhereverItIsKilledItGoesOn(t *testing.T) {
	said(t)
	p, l, random := newPublisher(t), newLedger(t), seed.Rand(t)
	file := filepath.Join(t.TempDir(), "shop.db")
	facts, kills := 0, 0
	more := func() {
		campaign := "c" + strconv.Itoa(random.IntN(4))
		from := len(l.changes[campaign]) + 1
		for range 1 + random.IntN(60) {
			l.happens(random, campaign)
			facts++
		}
		p.publish(t, l.records(campaign, 1+random.IntN(from), len(l.changes[campaign]))...)
	}
	for range stage.Rounds(1, 3) {
		for _, point := range []string{polled, writing, halfway, written, told, wherever} {
			p.dies(t, point, file, random, more)
			kills++
			s := opened(t, file)
			l.holds(t, s)
			p.nothingIsPassedOver(t, s)
			p.isBehindTheTable(t, s, false)
			s.close()
		}
	}
	t.Logf("killed %d times while %d facts came", kills, facts)
	c, _, ended := p.life(t, nowhere, file)
	s := opened(t, file)
	comes(t, "all facts are in the table", func() bool { return l.holds(t, s) == 0 })
	stage.Must(t, c.Process.Signal(os.Interrupt))
	if err := <-ended; err != nil {
		t.Errorf("at a stop it ends with %v", err)
	}
}
