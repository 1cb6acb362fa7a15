// Package designs holds designs of a first-come-first-served coupon, as engineers publish them and as everybody knows them: one file each, with
// their flaws. Command designs runs all of them under one load and one verdict, beside firstcome.
//
// Each design is the service of a shop, of which two processes run at once. All have the same database, Redis, drivers and HTTP server, so that
// the designs are compared and nothing else. Where a description leaves something open, the reading favours the design, and its comment says so.
//
// # Tables and words
//
// Winners are rows of user_coupons (id, coupon, user_id, issued_at), unique by coupon and user. The table coupons has the quantity, how many were
// issued (only atomic-update keeps that), and when the coupon expires. {c} is the coupon and {u} the user. In a drawing, "|" is an instant at which
// a process that dies or hangs does harm; the name beside it is that of a fault point.
package designs

import (
	"context"

	"github.com/firstcome/firstcome/internal/point"
)

// A Design is one process of a service that issues one coupon. Any goroutine may call its methods.
type Design interface {
	// Apply handles the request of a user. An error means that the user is told nothing (HTTP 503).
	Apply(ctx context.Context, user string) (Answer, error)
	// Result tells a user what became of a request that was answered Queued.
	Result(ctx context.Context, user string) (Answer, error)
	// Work runs what the design does outside of requests, until ctx ends.
	Work(ctx context.Context) error
}

// An Outcome is what a design tells a user.
type Outcome string

// The outcomes.
const (
	Issued    Outcome = "issued"
	Duplicate Outcome = "duplicate" // the user has asked before, or has a coupon
	SoldOut   Outcome = "sold_out"
	Queued    Outcome = "queued"   // the result comes later
	Conflict  Outcome = "conflict" // nothing was decided: the design gave up
)

// An Answer is an outcome, with the number that the design gives.
type Answer struct {
	Outcome Outcome `json:"outcome"`
	Place   int64   `json:"place,omitempty"` // the winner's number or rank, from 1, if the design gives one
	// Waiting is the user's rank in a queue when they asked, from 1. It moves, so the verdict does not compare it.
	Waiting int64 `json:"waiting,omitempty"`
}

// A Contestant is a design that can be run.
type Contestant struct {
	Name   string
	About  string        // one line
	Points []point.Point // where a process does harm if it dies or hangs there
	Last   []point.Point // those of them at which it does so only if few coupons are left
	Kafka  bool          // it needs a broker
	// NoRedis is whether it does without Redis.
	NoRedis bool
	// Pipelined has all requests of a process share one connection to Redis.
	Pipelined bool
	// Open makes what is in Redis before anybody asks. It is called once for all processes. Nil: there is nothing.
	Open func(context.Context, *Shop) error
	New  func(*Shop) Design
}

// Contestants are all designs, as published first.
var Contestants = []Contestant{
	zsetQueueContestant,
	zaddDecrListContestant,
	listLockKafkaContestant,
	listKafkaLuaContestant,
	applyIssueContestant,
	zsetRankContestant,
	zsetRankWatchContestant,
	zsetRankLuaContestant,

	rowLockContestant,
	distributedLockContestant,
	atomicUpdateContestant,
	zsetQueueFastContestant,
	luaListContestant,
	luaStreamContestant,
}

// inRequest is the part of a Design that has no workers and tells everything in its answer.
type inRequest struct{ shop *Shop }

func (r inRequest) Result(ctx context.Context, user string) (Answer, error) {
	return r.shop.result(ctx, user)
}

func (inRequest) Work(ctx context.Context) error { <-ctx.Done(); return nil }
