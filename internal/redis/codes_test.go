//go:build !check

package redis_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/stage"
)

// An actor plays a healthy Redis, until a test says what it must answer to scripts.
type actor struct {
	listener net.Listener
	version  string
	info     string // more lines of INFO

	mu     sync.Mutex // guards what follows
	answer string     // to scripts; if empty, that a right is missing
	conns  []net.Conn
}

// hangUp as the answer makes the actor close the connection.
const hangUp = "hang up"

func newActor(t *testing.T) *actor {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	stage.Must(t, err)
	a := &actor{listener: listener, version: "7.0.15"}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.conns = append(a.conns, conn)
			a.mu.Unlock()
			all.Go(func() { a.play(conn) })
		}
	})
	t.Cleanup(func() {
		a.end()
		all.Wait()
	})
	return a
}

// end closes the listener and every connection.
func (a *actor) end() {
	_ = a.listener.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		_ = conn.Close()
	}
}

func (a *actor) say(answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *actor) play(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		line := a.line(words)
		if line == hangUp {
			return
		}
		if _, err := io.WriteString(conn, line); err != nil {
			return
		}
	}
}

// line returns the answer to a command.
func (a *actor) line(words []string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	switch strings.ToUpper(words[0]) {
	case "HELLO":
		return "%2\r\n" + bulk("version") + bulk("7.0.15") + bulk("proto") + ":3\r\n"
	case "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	case "INFO":
		return bulk("redis_version:" + a.version + "\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n" + a.info)
	case "ACL": // GETUSER default
		return "%3\r\n" + bulk("flags") + "*1\r\n" + bulk("off") + bulk("commands") + bulk("-@all") + bulk("keys") + bulk("")
	case "GET":
		if words[1] == "firstcome:layout" {
			return bulk("1")
		}
		return bulk("0123456789abcdef")
	case "EVALSHA", "EVAL":
		switch a.answer {
		case "":
			return "*0\r\n"
		case hangUp:
			return hangUp
		}
		return "-" + a.answer + "\r\n"
	}
	return "+OK\r\n"
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) (words []string, err error) {
	number := func(sign byte) int {
		line, err2 := in.ReadString('\n')
		if err2 != nil || line[0] != sign {
			err = errors.Join(err2, io.ErrUnexpectedEOF)
			return 0
		}
		n, err2 := strconv.Atoi(strings.TrimSpace(line[1:]))
		err = errors.Join(err, err2)
		return n
	}
	for n := number('*'); n > 0 && err == nil; n-- {
		text := make([]byte, number('$')+len("\r\n"))
		if _, err2 := io.ReadFull(in, text); err2 != nil {
			return nil, err2
		}
		words = append(words, string(text[:len(text)-2]))
	}
	return words, err
}

func TestF13OneTableClassifiesWhatRedisAnswers(t *testing.T) {
	a := newActor(t)
	g := open(t, "redis://"+a.listener.Addr().String())
	for answer, want := range map[string]redis.Class{
		"READONLY You can't write against a read only replica.":   redis.Safe,
		"MOVED 3999 127.0.0.1:6381":                               redis.Safe,
		"ASK 3999 127.0.0.1:6381":                                 redis.Safe,
		"TRYAGAIN Multiple keys request during rehashing of slot": redis.Safe,
		"CLUSTERDOWN The cluster is down":                         redis.Safe,
		"MASTERDOWN Link with MASTER is down":                     redis.Safe,
		"LOADING Redis is loading the dataset in memory":          redis.Safe,
		"NOREPLICAS Not enough good replicas to write.":           redis.Safe,
		"OOM command not allowed when used memory > 'maxmemory'.": redis.Safe,
		"BUSY Redis is busy running a script.":                    redis.Safe,
		"NOSCRIPT No matching script.":                            redis.Safe,
		"ERR max number of clients reached":                       redis.Safe,

		// Before version 7, an error of a command in a script says where in the script it happened.
		"ERR Error running script (call to f_12): @user_script:7: @user_script: 7: -OOM command not allowed": redis.Safe,
		"ERR Error running script (call to f_12): @user_script:39: WRONGTYPE Operation against a key - hm":   redis.Fatal,
		"ERR Error running script (call to f_12): @user_script:39: attempt to compare nil with number":       redis.Unknown,
		"@user_script: 151: -READONLY You can't write against a read only replica.":                          redis.Safe,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                   redis.Fatal,

		"NOAUTH Authentication required.":                                                redis.Fatal,
		"WRONGTYPE Operation against a key holding the wrong kind of value":              redis.Fatal,
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to persist.": redis.Fatal,
		"CROSSSLOT Keys in request don't hash to the same slot":                          redis.Fatal,

		"ERR something else":         redis.Unknown,
		"NEWCODE of a later release": redis.Unknown,
		hangUp:                       redis.Unknown,
	} {
		a.say(answer)
		_, err := g.Claim(t.Context(), "c", crowd(0, 2))
		if got := classOf(t, err); got != want || errors.Is(err, firstcome.ErrBusy) != (want == redis.Safe) {
			t.Errorf("%q is of class %d, instead of %d: %v", answer, got, want, err)
		}
		if cause := firstcome.CauseOf(err); (cause == "") != (want == redis.Unknown) {
			t.Errorf("%q, of class %d, has the cause %q: %v", answer, want, cause, err)
		}
	}
	a.end()
	for {
		_, err := g.Claim(t.Context(), "c", crowd(0, 2))
		if errors.Is(err, firstcome.ErrBusy) {
			return // no connection is left, so nothing was sent
		}
		if classOf(t, err) != redis.Unknown {
			t.Fatalf("a connection that ends is %v", err)
		}
	}
}

func TestF65AnOldRedisIsRefusedWithAdvice(t *testing.T) {
	for version, good := range map[string]bool{"6.0.16": false, "5": false, "": false, "6.2.0": true, "7.2.4": true, "10.0.0": true} {
		a := newActor(t)
		a.version = version
		g, err := redis.Open(t.Context(), redis.Options{URL: "redis://" + a.listener.Addr().String(), Secret: secret(t)})
		if err == nil {
			g.Close()
		}
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "6.2") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// TestAValkeyIsKnownByWhatItSays answers INFO with the fields that differ from those of Redis, as a replica in a cluster of Valkey 8 does.
func TestAValkeyIsKnownByWhatItSays(t *testing.T) {
	a := newActor(t)
	a.version = "7.2.4"
	a.info = "server_name:valkey\r\nvalkey_version:8.1.3\r\nserver_mode:cluster\r\nrole:slave\r\n"
	found := examine(t, "redis://"+a.listener.Addr().String())
	if f := found["the gate's server"]; f.Grade != doctor.OK || !strings.HasPrefix(f.Found, "Valkey 8.1.3 at ") || !strings.Contains(f.Found, "cluster, slave") {
		t.Errorf("the server is %+v", f)
	}
	if f, ok := found["role"]; ok {
		t.Errorf("a replica is none of ours in a cluster, and it is told: %+v", f)
	}
	g, err := redis.Open(t.Context(), redis.Options{URL: "redis://" + a.listener.Addr().String(), Secret: secret(t)})
	stage.Must(t, err)
	g.Close()
}
