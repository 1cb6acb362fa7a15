package main

import "context"

// A row is a group of figures. What is wanted of them stands beside the figure in
// the measuring function; this list is the whole of what is measured.
type row struct {
	name    string
	measure func(context.Context, *bench) error
	long    bool // it takes minutes: measured only if -only names it
}

var rows = []row{
	{name: "winners", measure: winners},
	{name: "refused", measure: refused},
	{name: "latency", measure: latency},
	{name: "campaigns", measure: campaigns},
	{name: "growth", measure: growth},
	{name: "fleet", measure: fleet, long: true},
}

// References: a bare net/http handler that reads the same body and returns the
// same bytes under the same load (winners, refused); one campaign (campaigns); the
// same campaign when it was new (growth).
const (
	wantWinners   = "≥ 0.50"
	wantCPU       = "≤ 2.5"
	wantRefused   = "≥ 0.80"
	wantCalls     = "≤ 5"
	wantLatency   = "≤ 10 ms"
	wantCampaigns = "≥ 0.70"
	wantGrowth    = "≥ 0.80"
	wantMemory    = "≤ 64"
	wantStart     = "≤ 3 s"
)
