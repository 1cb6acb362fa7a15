package main

import (
	"encoding/json"
	"io"
	"text/tabwriter"
)

// cli is the whole command line on one screen.
type cli struct {
	Demo       demoCmd       `cmd:"" help:"A server on a temporary ledger, 10,000 users over HTTP for 5,000 coupons, and the audit's verdict."`
	Serve      serveCmd      `cmd:"" help:"Serve the HTTP API on a ledger."`
	Campaign   campaignCmd   `cmd:"" help:"Create, show and change campaigns of a server."`
	Coupon     couponCmd     `cmd:"" help:"List, show, void, issue and export coupons of a server."`
	Wallet     walletCmd     `cmd:"" help:"List the coupons that a user holds, of all campaigns."`
	Claim      claimCmd      `cmd:"" help:"Claim a coupon for a user."`
	Place      placeCmd      `cmd:"" help:"Show where a user stands in a waiting line, or the coupon that they hold."`
	Leave      leaveCmd      `cmd:"" help:"Take a user out of a waiting line."`
	Load       loadCmd       `cmd:"" help:"Load a server with claims and hold every answer against its coupons."`
	Audit      auditCmd      `cmd:"" help:"Check the promises in a ledger, or at a server: exit 1 on any breach."`
	DeadLetter deadLetterCmd `cmd:"" help:"List, replay and void what the ledger of a server would not take."`
	Facts      factsCmd      `cmd:"" help:"Have facts published to Kafka once more."`
	Gate       gateCmd       `cmd:"" help:"Make Redis whole again as a gate, from what the ledger has."`
	Key        keyCmd        `cmd:"" help:"Create, list and revoke API keys in a ledger, also while it is served."`
	Doctor     doctorCmd     `cmd:"" help:"Check this machine and the configuration of serve."`
	Ready      readyCmd      `cmd:"" help:"Ask a server whether it is ready, for health checks: exit 0 if it is, else 1."`
	Migrate    migrateCmd    `cmd:"" help:"Bring a ledger's schema up to this binary's."`
	Backup     backupCmd     `cmd:"" help:"Copy a ledger, as it is at one instant, into a new file, also while it is served."`
	Version    versionCmd    `cmd:"" help:"Print version and commit."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands and flags in a shell."`
}

const description = `Coupons, first come, first served.

Every flag --answer-wait is also the environment variable FIRSTCOME_ANSWER_WAIT; a flag stands over
the environment, and the environment over the default. Secrets are never flags: FIRSTCOME_SECRET
(coupon codes), FIRSTCOME_KEY (API key of client commands), FIRSTCOME_JWT_SECRET (users' tokens).

Exit status: 0 done; 1 a breach, a refusal, or a failure; 2 a mistake in flags, environment or
configuration, and nothing was done; 3 (of load alone) every promise was kept and a threshold was not.`

// ledgerFlag names the ledger of a command that reads or writes one itself.
type ledgerFlag struct {
	Ledger ledgerName `default:"${ledger}" placeholder:"sqlite:FILE" help:"The ledger: sqlite:FILE, or a database on a server: mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE (default: ${ledger}). With a password, put it into FIRSTCOME_LEDGER."`
}

// defaultServer is where serve is by default.
const defaultServer = "http://127.0.0.1:8080"

// serverFlags name the server of a command that is a client.
type serverFlags struct {
	Server serverURL `default:"${server}" placeholder:"URL" help:"The server (default: ${server}). Its API key is read from FIRSTCOME_KEY."`
	TZ     zoneName  `name:"tz" placeholder:"ZONE" help:"The zone of times that say none, and of those shown beside UTC, like Asia/Seoul (default: times have to say theirs, and this machine's is shown)."`
	outputFlag
}

// outputFlag chooses between text for people and JSON for programs.
type outputFlag struct {
	Output string `short:"o" enum:"text,json" default:"text" help:"Print text or json (default: text)."`
}

func (f outputFlag) json() bool { return f.Output == "json" }

// print prints a value as JSON, or else what text writes: a tab ends a column, and columns are aligned.
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
