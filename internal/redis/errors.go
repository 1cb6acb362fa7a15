package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/trust"
)

// A Class is what the error of a call means.
type Class uint8

// The classes.
const (
	// Unknown: the call may have been done, or may yet be.
	Unknown Class = iota
	// Safe: nothing was done, and the same call may succeed soon.
	Safe
	// Fatal: nothing was done, and nothing will be until an operator acts.
	Fatal
)

// An Error is what Redis or the connection to it returned instead of an answer.
// Unless its class is Unknown, it is firstcome.ErrGateFull if Redis has no memory left, otherwise firstcome.ErrGateUnavailable.
type Error struct {
	Class  Class
	Code   string // the first word of Redis's answer; empty for an error of the connection
	Advice string // what an operator may do, if anything
	err    error
}

func (e *Error) Error() string {
	if e.Advice == "" {
		return "Redis: " + e.err.Error()
	}
	return fmt.Sprintf("Redis: %v (%s)", e.err, e.Advice)
}

// Unwrap returns what the client reported.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether the error means for certain that nothing was done. If it is also an ErrBusy, the same call may succeed soon.
func (e *Error) Is(target error) bool {
	switch {
	case e.Class == Unknown:
		return false
	case target == firstcome.ErrBusy:
		return e.Class == Safe
	case e.Code == codeOOM:
		return target == firstcome.ErrGateFull
	}
	return target == firstcome.ErrGateUnavailable
}

// Fatal reports whether nothing was done, and nothing will be until an operator acts.
func (e *Error) Fatal() bool { return e.Class == Fatal }

// codeReadOnly is the code for a write on a replica.
const codeReadOnly = "READONLY"

// errReplica means that a server is a replica, whose keys may be older than those of its primary.
var errReplica = &Error{Class: Safe, Code: codeReadOnly, err: errors.New(codeReadOnly + " it is a replica")}

// codeOOM is the code if Redis has no memory left for a write.
const codeOOM = "OOM"

// codeNoGroup is the code if the recorders' group of a journal is gone.
const codeNoGroup = "NOGROUP"

// codeOf returns what a code of Redis means, and what an operator may do. It is the only
// table of codes. After any other code it is unknown what happened.
func codeOf(code string) (Class, string) {
	switch code {
	case codeReadOnly, "MASTERDOWN", "LOADING", "REDIRECT", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "NOSCRIPT", codeNoGroup:
		return Safe, ""
	case "NOREPLICAS":
		return Safe, "fewer replicas follow than min-replicas-to-write asks for"
	case "BUSY":
		return Safe, "somebody's script runs for long: SCRIPT KILL ends it"
	case codeOOM:
		return Safe, "Redis is full: raise maxmemory, or see why the recorders do not drain"
	case "MISCONF":
		return Fatal, "Redis refuses writes because it cannot save to its disk"
	case "NOAUTH", "WRONGPASS":
		return Fatal, "give a user and password that Redis knows, and for Sentinels that want them " + sentinelUser + " and " + sentinelPassword
	case "NOPERM":
		return Fatal, "the user lacks a right: ACL SETUSER NAME " + Rights
	case "WRONGTYPE":
		return Fatal, "something else than firstcome wrote a key that begins with firstcome:"
	case "CROSSSLOT", "NOPROTO", "DENIED":
		return Fatal, ""
	}
	return Unknown, ""
}

// greeting returns the Error of a connection that failed before its first answer. A
// client that speaks TLS to a port without TLS, or the reverse, is seldom told so.
func greeting(err error, secured bool) error {
	var e *Error
	err = classify(err)
	switch {
	case !errors.As(err, &e) || e.Advice != "" || e.Code != "" || e.Class == Safe:
	case hangs(err):
		e.Advice = "it takes connections and does not answer"
		if secured {
			e.Advice += "; if this port does not speak TLS, name the one that does"
		}
	case !secured:
		e.Advice = "if this port speaks TLS, the URL begins with rediss://"
	default:
		e.Advice = "if Redis asks for a certificate, name one with " + trust.CertOption + " and " + trust.KeyOption
	}
	return err
}

// hangs reports whether a server took a connection and did not answer in time.
func hangs(err error) bool {
	var e *Error
	var network net.Error
	return errors.As(err, &e) && e.Class == Unknown && e.Code == "" &&
		(errors.Is(e.err, context.DeadlineExceeded) || errors.As(e.err, &network) && network.Timeout())
}

// maxClients begins Redis's answer to a connection above its limit; the answer has no code.
const maxClients = "max number of clients reached"

// plain is Redis's code for errors that have no code of their own. The client leaves it out.
const plain = "ERR"

// classify returns the Error that an error of the client is; nil for nil.
func classify(err error) error {
	if err == nil {
		return nil
	}
	e := &Error{err: err}
	var refused *net.OpError
	var answer *rueidis.RedisError
	switch {
	case errors.As(err, &answer):
		text := inner(strings.TrimPrefix(answer.Error(), plain+" "))
		if e.Code, _, _ = strings.Cut(text, " "); e.Code != strings.ToUpper(e.Code) {
			e.Code = plain
		}
		e.Class, e.Advice = codeOf(e.Code)
		if strings.HasPrefix(text, maxClients) {
			e.Class, e.Advice = Safe, "raise maxclients of Redis"
		}
	case errors.As(err, &refused) && refused.Op == "dial":
		e.Class = Safe // there was no connection to send the call on
	default:
		e.Advice = trust.Advice(err)
	}
	return e
}

// inner returns the answer that a script's error is about: servers before 7 put
// where in the script it happened before it, once or twice, and leave the minus of some.
func inner(text string) string {
	const script = "@user_script:"
	if !strings.HasPrefix(text, "Error running script") && !strings.HasPrefix(text, script) {
		return text
	}
	for {
		_, behind, found := strings.Cut(text, script)
		if !found {
			return strings.TrimPrefix(text, "-")
		}
		_, text, _ = strings.Cut(behind, ": ") // the line
	}
}

// wrap adds to an error what was attempted. Nil stays nil.
func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// isFull reports whether Redis had no memory left for a call. It then did nothing.
func isFull(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == codeOOM
}

// errHolder means that the gate's entry of a holder, or its field of the campaign, cannot be read.
var errHolder = errors.New("what Redis has cannot be read")

// ofOne reports whether an error concerns one campaign. Only an Error concerns all campaigns, unless it is about spoiled keys.
func ofOne(err error) bool {
	var e *Error
	return Spoiled(err) || !errors.As(err, &e)
}

// Spoiled reports whether an error means that the keys of a campaign cannot be read, because something other than firstcome wrote them.
func Spoiled(err error) bool {
	var e *Error
	return errors.Is(err, errHolder) || errors.As(err, &e) && e.Code == "WRONGTYPE"
}
