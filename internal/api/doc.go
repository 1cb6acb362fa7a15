// Package api is the HTTP API.
//
// # Where things are
//
// routes.go lists every operation, the callers permitted, and its handler. Each
// resource is a type in a file of its name: campaigns, claims, lines, streams
// (of places in line), coupons, facts, deadLetters, auditLog. All share a core.
// problem.go maps errors to HTTP statuses and codes; firstcome.Outcome has the
// statuses of outcomes. openapi.yaml is the reference for callers. A test checks
// that it lists the same operations and describes every answer.
//
// # Non-obvious
//
// An unexpected error becomes a 503 that asks the caller to repeat the request
// (P8), because the claim may have been decided.
//
// ServeMux would redirect paths that contain . or .., and a client that follows
// would ask about another resource. The API refuses such paths before ServeMux.
//
// A coupon's benefit and expiry come from the terms under which it was issued.
// The terms of a version never change, so they are rendered once and cached.
package api
