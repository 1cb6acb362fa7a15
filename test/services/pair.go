package services

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
)

// A Pair is two Redis servers: the Replica follows the Primary, until it is promoted. Then each has the other's part. One goroutine at a
// time may use its methods.
type Pair struct {
	Primary, Replica *Server

	joins    bool    // whoever starts again follows by itself
	sentinel *Server // which promotes the replica; nil: none
}

// promptly has a replica begin to follow at once.
var promptly = []string{"--repl-diskless-sync-delay", "0"}

// RedisPair starts a Pair for t, with more arguments for both servers, and returns when the replica follows. Nobody but a caller of Promote
// promotes it.
func RedisPair(t testing.TB, arguments ...string) *Pair {
	t.Helper()
	p := &Pair{}
	for _, s := range []**Server{&p.Primary, &p.Replica} {
		*s = Redis.Server(t, append(promptly, arguments...)...)
	}
	if err := p.Follow(t.Context()); err != nil {
		t.Fatalf("have a Redis follow another: %v", err)
	}
	return p
}

// Follow has the replica follow the primary, whatever it had, and returns when it has what the primary has.
func (p *Pair) Follow(ctx context.Context) error {
	host, port, err := net.SplitHostPort(p.Primary.Address())
	if err != nil {
		return err
	}
	if _, err := askRedis(ctx, p.Replica.URL(), []string{"REPLICAOF", host, port}); err != nil {
		return err
	}
	return p.Settle(ctx)
}

// Settle waits until one of the two follows the other and has what it has, and says which. On a busy machine another one may have been promoted
// than was meant.
func (p *Pair) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := until(ctx, func() bool {
		if !isPrimary(ctx, p.Primary) {
			p.Primary, p.Replica = p.Replica, p.Primary
		}
		return isPrimary(ctx, p.Primary) && says(ctx, p.Replica, "role:slave", "master_link_status:up") && p.named(ctx, "slave")
	}); err != nil {
		return err
	}
	return p.stream(ctx)
}

// stream waits until the replica hears what the primary does, and until its file has all that it heard. Its link is up a second sooner: Redis streams
// nothing before the replica's first acknowledgement, so a replica that is promoted within that second lacks all that came after its copy. The copy
// comes into the file later still, by a process of its own: a replica that is killed before the end of that process comes back empty.
func (p *Pair) stream(ctx context.Context) error {
	// It moves the primary's offset, which is 0 before the first write. In a Cluster the next ping to the replica does, within a second.
	if _, err := askRedis(ctx, p.Primary.URL(), []string{"PUBLISH", "firstcome:test:pair", "streams"}); err != nil {
		return err
	}
	sent := max(1, offset(ctx, p.Primary, "master_repl_offset:"))
	return until(ctx, func() bool {
		return acknowledged(ctx, p.Primary) >= sent && says(ctx, p.Replica, "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0")
	})
}

// Lag has the replica hear nothing more of what the primary does, until it is promoted, or follows again.
func (p *Pair) Lag(ctx context.Context) error {
	const nobody = "1" // no server is at this port
	_, err := askRedis(ctx, p.Replica.URL(), []string{"REPLICAOF", "127.0.0.1", nobody})
	return err
}

// Promote makes the replica a primary with what it has. The old primary goes on, for whoever still reaches it.
func (p *Pair) Promote(ctx context.Context) error {
	if _, err := askRedis(ctx, p.Replica.URL(), []string{"REPLICAOF", "NO", "ONE"}); err != nil {
		return err
	}
	p.Primary, p.Replica = p.Replica, p.Primary
	return nil
}

// TakeOver kills the primary, and returns when the replica was promoted, which the servers do by themselves in a Cluster or with a Sentinel.
func (p *Pair) TakeOver(ctx context.Context) error {
	if err := p.Primary.Kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := until(ctx, func() bool { return isPrimary(ctx, p.Replica) }); err != nil {
		return err
	}
	p.Primary, p.Replica = p.Replica, p.Primary
	return nil
}

// Rejoin starts a killed replica again, and returns when it follows. A Sentinel is not disturbed before it has told everybody.
func (p *Pair) Rejoin(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := until(short, func() bool { return p.named(short, "") }); err != nil {
		return err
	}
	if err := p.Replica.Restart(ctx); err != nil {
		return err
	}
	if p.joins {
		return p.Settle(ctx)
	}
	return p.Follow(ctx)
}

// named tells whether a Sentinel names the primary, and whether the replica has this flag and no other; any if there is none.
func (p *Pair) named(ctx context.Context, flag string) bool {
	if p.sentinel == nil {
		return true
	}
	var seen []string
	for _, what := range []string{"MASTERS", "REPLICAS " + primarySet} {
		answer, err := askRedis(ctx, p.sentinel.URL(), append([]string{"SENTINEL"}, strings.Fields(what)...))
		if err != nil {
			return false
		}
		all, err := answer.ToArray()
		if err != nil || len(all) != 1 {
			return false
		}
		about, err := all[0].AsStrMap()
		if err != nil {
			return false
		}
		seen = append(seen, net.JoinHostPort(about["ip"], about["port"]), about["flags"])
	}
	return seen[0] == p.Primary.Address() && seen[2] == p.Replica.Address() && (flag == "" || seen[1] == "master" && seen[3] == flag)
}

func isPrimary(ctx context.Context, s *Server) bool { return says(ctx, s, "role:master") }

// offset returns a number of what a Redis says of its replication, 0 if it says none.
func offset(ctx context.Context, s *Server, name string) (n int64) {
	_, after, _ := strings.Cut(replication(ctx, s), "\r\n"+name)
	line, _, _ := strings.Cut(after, "\r\n")
	n, _ = strconv.ParseInt(line, 10, 64)
	return n
}

// acknowledged returns up to which offset a primary's replica has said that it has all, 0 before it said anything.
func acknowledged(ctx context.Context, primary *Server) (n int64) {
	_, after, _ := strings.Cut(replication(ctx, primary), "\r\nslave0:")
	line, _, _ := strings.Cut(after, "\r\n")
	_, after, _ = strings.Cut(line, ",offset=")
	number, _, _ := strings.Cut(after, ",")
	n, _ = strconv.ParseInt(number, 10, 64)
	return n
}

// replication returns what a Redis says of its replication and of its file, nothing if it does not answer.
func replication(ctx context.Context, s *Server) string {
	answer, err := askRedis(ctx, s.URL(), []string{"INFO"})
	if err != nil {
		return ""
	}
	text, _ := answer.ToString()
	return text
}

// says reports whether a Redis says all of these lines of its replication and of its file.
func says(ctx context.Context, s *Server, lines ...string) bool {
	text := replication(ctx, s)
	if text == "" {
		return false
	}
	for _, line := range lines {
		if !strings.Contains(text, line+"\r\n") {
			return false
		}
	}
	return true
}
