//go:build !check && (!race || soak)

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// The runbooks and operate.md have commands for operators in the text, and alone in a line of a fenced block.
var (
	inText  = regexp.MustCompile("`(firstcome [a-z][^`]*)`")
	inBlock = regexp.MustCompile(`(?m)^(firstcome [a-z].*)$`)
)

func commandsOfTheRunbooks(t *testing.T) (commands []string) {
	t.Helper()
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no runbooks: %v", err)
	}
	for _, file := range append(files, "../../docs/operate.md") {
		text, err := os.ReadFile(file)
		stage.Must(t, err)
		for n, part := range strings.Split(string(text), "```") {
			for _, found := range []*regexp.Regexp{inText, inBlock}[n%2].FindAllStringSubmatch(part, -1) {
				command, _, _ := strings.Cut(found[1], " #")
				commands = append(commands, strings.TrimSpace(command))
			}
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// words splits a command as a shell does that knows quotes and nothing else.
func words(command string) (all []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(command, -1) {
		all = append(all, strings.Trim(w, `'"`))
	}
	return all[1:] // without firstcome
}

// factsOfTheRunbooks is the topic for the commands of the runbooks, which name no topic because its URL may have a password.
const factsOfTheRunbooks = "FIRSTCOME_FACTS=kafka://kafka.internal:9092/coupons"

func TestEveryCommandOfTheRunbooksIsOne(t *testing.T) {
	commands := commandsOfTheRunbooks(t)
	if len(commands) < 20 {
		t.Fatalf("only %d commands are told: %q", len(commands), commands)
	}
	gate := regexp.MustCompile(`--gate( URL)?$`)
	for _, command := range commands {
		command = gate.ReplaceAllString(command, "--gate redis://gate.internal:6379")
		command = strings.NewReplacer("--ledger URL", "--ledger mysql://ledger.internal/firstcome", "--facts URL", "--facts kafka://kafka.internal:9092/coupons", " ROLE", " admin", "replay ID", "replay 1", "void ID", "void 1", "LETTER", "1",
			" ID", " spring", " C", " spring").Replace(command)
		switch command { // which need an argument that the text leaves out
		case "firstcome load":
			command += " --campaign spring --users 1"
		case "firstcome serve --role recorder", "firstcome serve --journal redis":
			command += " --gate redis://gate.internal:6379"
		case "firstcome backup":
			command += " copy.db"
		}
		var out bytes.Buffer
		if _, err := parse(&cli{}, words(command), terminal{out: &out, err: &out, env: []string{factsOfTheRunbooks}}); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestTheCommandsOfTheRunbooksDoWhatTheseSay runs the commands of the runbooks while a node serves the campaigns spring, which its gate has lost, and autumn,
// which has a dead letter.
func TestTheCommandsOfTheRunbooksDoWhatTheseSay(t *testing.T) {
	d := newDisaster(t)
	rest := commandsOfTheRunbooks(t)
	for _, c := range []struct {
		command string
		exit    int
		says    string // a pattern in what it prints
	}{
		{"firstcome version", exitOK, `firstcome`},
		{"firstcome ready", exitOK, ``},
		{"firstcome campaign list", exitOK, `spring +unknown \(the gate has lost it`},
		{"firstcome campaign show ID", exitOK, `state +unknown \(the gate has lost it`},
		{"firstcome audit ID --ledger URL --gate URL", exitFailed, `this Redis has no name`},
		{"firstcome doctor", exitFailed, `FAIL +the gate.s campaigns +2 campaigns are decided by another gate than this Redis .*\n.*fix: `},
		{"firstcome audit --ledger sqlite:firstcome.db", exitOK, `verdict: 0 breaches in 2 campaigns`},
		{"firstcome campaign pause ID", exitFailed, `the change is in the ledger`},
		{"firstcome dead-letter list", exitOK, `autumn`},
		{"firstcome dead-letter replay ID", exitFailed, `ledger`},
		{"firstcome dead-letter void ID --reason TEXT", exitOK, ``},
		{"firstcome gate rebuild --all", exitOK, `spring is decided again, in epoch 2`},
		{"firstcome gate rebuild ID", exitOK, `spring is decided again, in epoch 3`},
		{"firstcome gate rebuild ID --without-line-log", exitOK, `spring is decided again, in epoch 4`},
		{"firstcome gate reconcile --all --dry-run", exitOK, `No such campaign has a ledger older`},
		{"firstcome gate reconcile --all", exitOK, `No such campaign has a ledger older`},
		{"firstcome facts replay --all", exitFailed, `no node has published facts to this topic yet`},
		{"firstcome facts replay ID --from 1", exitFailed, `no node has published facts to this topic yet`},
		{"firstcome key create --name NAME --role ROLE", exitOK, `fc`},
	} {
		if !slices.Contains(rest, c.command) {
			t.Errorf("%q is no longer in the runbooks: delete it here", c.command)
		}
		status, out := d.run(c.command)
		if status != c.exit || !regexp.MustCompile(c.says).MatchString(out) {
			t.Errorf("%s ends with %d instead of %d, or does not say %q:\n%s", c.command, status, c.exit, c.says, out)
		}
	}
}

// A disaster is a node with trouble.
type disaster struct {
	t   *testing.T
	env []string
	url map[string]string // by flag
}

func newDisaster(t *testing.T) *disaster {
	t.Helper()
	redis, dir := services.Redis.Server(t).URL(), t.TempDir()
	d := &disaster{t: t, url: map[string]string{"--ledger": "sqlite:" + filepath.Join(dir, "firstcome.db"), "--gate": redis}}
	secret := "FIRSTCOME_SECRET=" + strings.Repeat("5", 64)
	p, err := launch(dir, append(services.Environ(), secret), "serve", "--listen", "127.0.0.1:0", "--ops", "off", "--ledger", d.url["--ledger"], "--gate", redis)
	stage.Must(t, err)
	t.Cleanup(p.kill)
	d.env = []string{secret, "FIRSTCOME_SERVER=http://" + p.address, "FIRSTCOME_LEDGER=" + d.url["--ledger"], "FIRSTCOME_GATE=" + redis, "FIRSTCOME_MAX_CONNECTIONS=100"}
	for _, command := range []string{"campaign create spring --quantity 3", "campaign create autumn --quantity 3", "claim spring alice", "claim autumn alice"} {
		if status, out := d.run("firstcome " + command); status != exitOK {
			t.Fatalf("%s: %s", command, out)
		}
	}
	const deleteAll = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end return 1`
	d.redis("DEL", "firstcome:instance")                          // otherwise nodes would rebuild the campaign by themselves
	d.redis("EVAL", deleteAll, "0", "firstcome:{spring:*}:[ch]*") // the campaign and its holders
	const appendTo = `return redis.call('XADD', redis.call('KEYS', ARGV[1])[1], '*', 'format', '1', 'users', 'nobody can read this')`
	d.redis("EVAL", appendTo, "0", "firstcome:{autumn:*}:journal")
	stage.Await(t, "the dead letter", true, func() bool {
		_, out := d.run("firstcome dead-letter list")
		return strings.Contains(out, "autumn")
	})
	return d
}

func (d *disaster) redis(command ...string) {
	d.t.Helper()
	stage.Must(d.t, stage.Err(askRedis(d.url["--gate"], command...)))
}

// run runs a command, with the names of this disaster in place of the text's placeholders.
func (d *disaster) run(command string) (status int, out string) {
	d.t.Helper()
	args := words(command)
	for n, arg := range args {
		letter := len(args) > 1 && args[0] == "dead-letter"
		switch {
		case arg == "URL", arg == "sqlite:firstcome.db":
			args[n] = d.url[args[n-1]]
		case letter && (arg == "ID" || arg == "LETTER"):
			args[n] = "1"
		case arg == "ID":
			args[n] = "spring"
		case arg == "ROLE":
			args[n] = "viewer"
		}
	}
	env := d.env
	switch {
	case args[0] == "audit" && args[len(args)-1] == "--gate":
		args = append(args, d.url["--gate"])
		fallthrough
	case args[0] == "facts":
		env = []string{env[0], env[2], factsOfTheRunbooks}
	case args[0] == "audit" || args[0] == "key":
		env = []string{env[0], env[2]} // like on a machine with the ledger, and without a node
	case args[0] == "doctor":
		env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "FIRSTCOME_SERVER=") })
	}
	var both bytes.Buffer
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	status = run(ctx, args, terminal{in: strings.NewReader(""), out: &both, err: &both, env: env})
	return status, both.String()
}
