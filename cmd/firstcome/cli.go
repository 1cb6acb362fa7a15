package main

import (
	"encoding/json"
	"io"
	"text/tabwriter"
)

// cli is the whole command line on one screen.
type cli struct {
	Demo       demoCmd       `cmd:"" help:"Start a server on a temporary ledger, let 10,000 users claim 5,000 coupons over HTTP, and audit the result."`
	Serve      serveCmd      `cmd:"" help:"Serve the HTTP API on a ledger."`
	Campaign   campaignCmd   `cmd:"" help:"Create, show and change campaigns of a server."`
	Coupon     couponCmd     `cmd:"" help:"List, show, void, issue and export coupons of a server."`
	Codes      codesCmd      `cmd:"" help:"Import codes of other systems into a campaign of a server."`
	Wallet     walletCmd     `cmd:"" help:"List the coupons that a user holds in all campaigns."`
	Claim      claimCmd      `cmd:"" help:"Claim a coupon for a user."`
	Place      placeCmd      `cmd:"" help:"Show a user's place in a waiting line, or the user's coupon."`
	Leave      leaveCmd      `cmd:"" help:"Take a user out of a waiting line."`
	Load       loadCmd       `cmd:"" help:"Load a server with claims, and check every answer against the server's coupons."`
	Audit      auditCmd      `cmd:"" help:"Check the promises in a ledger, or at a server: exit 1 on any breach."`
	DeadLetter deadLetterCmd `cmd:"" help:"List, replay and void dead letters: coupons that the ledger of a server refused."`
	Facts      factsCmd      `cmd:"" help:"Publish facts to Kafka again."`
	Gate       gateCmd       `cmd:"" help:"Rebuild a gate on Redis from the ledger, or reconcile a restored ledger with its gate."`
	Key        keyCmd        `cmd:"" help:"Create, list and revoke API keys in a ledger, also while it is served."`
	Doctor     doctorCmd     `cmd:"" help:"Check this machine and the configuration of serve."`
	Ready      readyCmd      `cmd:"" help:"Ask a server whether it is ready, for health checks: exit 0 if it is, otherwise 1."`
	Migrate    migrateCmd    `cmd:"" help:"Migrate a ledger's schema to the version of this binary."`
	Backup     backupCmd     `cmd:"" help:"Copy a snapshot of a ledger into a new file, also while the ledger is served."`
	Version    versionCmd    `cmd:"" help:"Print version and commit."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands and flags in a shell."`
}

const description = `Coupons, first come, first served.

Most flags have an environment variable, like FIRSTCOME_ANSWER_WAIT for --answer-wait: a flag's help
names it. A flag takes precedence over the environment, and the environment over the default. Secrets
are never flags: FIRSTCOME_SECRET (coupon codes), FIRSTCOME_KEY (API key of client commands),
FIRSTCOME_JWT_SECRET (users' tokens).

Exit status: 0 success; 1 a breach, a refusal, or a failure; 2 a mistake in flags, environment or
configuration, and nothing was done; 3 (load only) every promise was kept, but a threshold was not.`

// ledgerFlag names the ledger of a command that reads or writes one itself.
type ledgerFlag struct {
	Ledger ledgerName `default:"${ledger}" placeholder:"sqlite:FILE" help:"The ledger: sqlite:FILE, or a database on a server: mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE (default: ${ledger}). If the URL has a password, set FIRSTCOME_LEDGER instead."`
}

// defaultServer is the URL of serve by default.
const defaultServer = "http://127.0.0.1:8080"

// serverFlags name the server of a command that is a client.
type serverFlags struct {
	Server serverURL `default:"${server}" placeholder:"URL" help:"The server (default: ${server}). Its API key is read from FIRSTCOME_KEY."`
	TZ     zoneName  `name:"tz" placeholder:"ZONE" help:"Time zone of times in flags without a zone, and of times shown beside UTC, like Asia/Seoul (default: times in flags need a zone, and this machine's zone is shown)."`
	outputFlag
}

// outputFlag chooses between text for people and JSON for programs.
type outputFlag struct {
	Output string `short:"o" enum:"text,json" default:"text" help:"Print text or json (default: text)."`
}

func (f outputFlag) json() bool { return f.Output == "json" }

// print prints v as JSON, or the text that text writes: a tab in it ends a column, and columns are aligned.
func (f outputFlag) print(t terminal, v any, text func(w io.Writer)) error {
	if f.json() {
		e := json.NewEncoder(t.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}
