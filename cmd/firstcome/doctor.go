package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/firstcome/firstcome/internal/ledger"
)

// Help is the long help of doctor.
func (c *doctorCmd) Help() string {
	return `It reads the flags and the environment of serve, and takes nothing that a running server has. It looks at
this machine, at the database of the ledger and at Redis, and needs no more rights there than serve does.
A FAIL says that serve would not start or would not keep a promise; the exit status is then 1.`
}

type doctorCmd struct {
	serveCmd
	outputFlag
}

// check leaves what does not fit together to the findings.
func (c *doctorCmd) check(terminal) []error { return nil }

// Grades of findings.
const (
	ok   = "OK"
	warn = "WARN"
	fail = "FAIL"
)

// A finding is what doctor has to say of one thing.
type finding struct {
	Grade string `json:"grade"` // OK, WARN or FAIL
	What  string `json:"what"`
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"`
}

// Run examines the machine.
func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	findings := c.examine(ctx, t)
	if c.json() {
		if err := printJSON(t, findings); err != nil {
			return err
		}
	} else if err := printFindings(t, findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Grade == fail {
			return errors.New("serve would not work here: see FAIL above")
		}
	}
	return nil
}

func (c *doctorCmd) examine(ctx context.Context, t terminal) []finding {
	path := c.Ledger.path()
	findings := c.configuration(t)
	findings = append(findings, finding{ok, "version", thisBuild().String(), ""})
	if ledger.OnServer(path) {
		findings = append(findings, ledgerOnServer(ctx, path)...)
	} else {
		findings = append(findings, directoryRights(path)...)
		findings = append(findings, freeSpace(path), fsyncTime(path))
		findings = append(findings, ledgerFile(ctx, path)...)
		findings = append(findings, lockHolder(path))
	}
	findings = append(findings, c.gateOnServer(ctx)...)
	if c.SecretFile != "" || !ledger.OnServer(path) {
		findings = append(findings, secretMode(path, c.SecretFile, t))
	}
	return append(findings, clockSanity(ctx, path), openFiles(int(c.MaxConnections)))
}

// configuration says whether the flags of serve fit together.
func (c *doctorCmd) configuration(t terminal) []finding {
	errs := c.serveCmd.check(t)
	if len(errs) == 0 {
		return []finding{{ok, "configuration", "the flags and variables of serve fit together", ""}}
	}
	var findings []finding
	for _, err := range errs {
		findings = append(findings, finding{fail, "configuration", mask(err.Error(), secretsIn(t.env)), "see firstcome serve --help"})
	}
	return findings
}

func printFindings(t terminal, findings []finding) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Grade, f.What, f.Found)
		if f.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", f.Fix)
		}
	}
	return w.Flush()
}

// secretMode says whether others can read the secret of the coupon codes.
func secretMode(path, file string, t terminal) finding {
	const what = "secret"
	if t.variable(secretVariable) != "" {
		return finding{ok, what, "in FIRSTCOME_SECRET", ""}
	}
	if file == "" {
		file = secretBeside(path)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{ok, what, "there is none yet: the first start of serve makes " + file, ""}
	case err != nil:
		return finding{fail, what, err.Error(), "let the user who runs serve read it"}
	case info.Mode().Perm()&0o077 != 0:
		return finding{warn, what, fmt.Sprintf("others can read %s (mode %04o): who has it can make coupon codes", file, info.Mode().Perm()), "chmod 600 " + file}
	}
	return finding{ok, what, fmt.Sprintf("%s, mode %04o", file, info.Mode().Perm()), ""}
}
