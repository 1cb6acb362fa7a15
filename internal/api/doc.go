// Package api is the HTTP API.
//
// # Where things are
//
// routes.go is the whole surface on one screen: every operation, who may call
// it, and what serves it. Each resource is a type in a file of its name: campaigns,
// claims, lines, streams (of places in line), coupons, facts, deadLetters, auditLog. All
// stand on a core. problem.go has the one table from errors to HTTP, with their
// codes; outcomes have theirs in firstcome.Outcome. openapi.yaml is the reference for callers; a test checks
// that it lists the same operations and that every answer fits it.
//
// # Non-obvious
//
// An error that is not certainly harmless becomes a 503 that says to ask again
// (P8): the claim may have been decided.
//
// ServeMux would redirect paths with . and .. in them, and a client that follows
// would ask about something else. They are refused before it sees them.
//
// A coupon's benefit and expiry come from the terms under which it was issued.
// Terms of a version never change, so they are rendered once and kept.
package api
