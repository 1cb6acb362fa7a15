package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAFlagStandsOverTheEnvironmentAndThatOverTheDefault(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		args []string
		want time.Duration
	}{
		"default":           {nil, nil, 5 * time.Second},
		"environment":       {[]string{"FIRSTCOME_ANSWER_WAIT=7s"}, nil, 7 * time.Second},
		"empty environment": {[]string{"FIRSTCOME_ANSWER_WAIT="}, nil, 5 * time.Second},
		"flag":              {[]string{"FIRSTCOME_ANSWER_WAIT=7s"}, []string{"--answer-wait", "9s"}, 9 * time.Second},
		"flag=":             {nil, []string{"--answer-wait=9s"}, 9 * time.Second},
	} {
		var grammar cli
		_, err := parse(&grammar, append([]string{"serve"}, c.args...), terminal{env: c.env})
		if err != nil || grammar.Serve.AnswerWait != c.want {
			t.Errorf("%s: got %v, %v; want %v", name, grammar.Serve.AnswerWait, err, c.want)
		}
	}
}

func TestADurationHasBounds(t *testing.T) {
	for text, good := range map[string]bool{
		"0s": true, "8760h": true, "-1ns": false, "8760h0m1s": false, "2562047h": false, "2562048h": false,
	} {
		var grammar cli
		_, err := parse(&grammar, []string{"serve", "--answer-wait=" + text}, terminal{})
		if good != (err == nil) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEveryFlagHasAVariableAndNoVariableIsKubernetes(t *testing.T) {
	var grammar cli
	parsed, err := parse(&grammar, []string{"version"}, terminal{})
	stage.Must(t, err)
	for _, f := range allFlags(parsed.Model.Node) {
		name := variableOf(f.Name)
		if isKubernetes(name) {
			t.Errorf("--%s: Kubernetes sets %s in the pods beside a Service that is called firstcome", f.Name, name)
		}
		for _, secret := range secretVariables() {
			if name == secret {
				t.Errorf("--%s: a secret would be on the command line", f.Name)
			}
		}
	}
}

func TestTheSettingsOfServeReachTheNode(t *testing.T) {
	var grammar cli
	dir := t.TempDir()
	_, err := parse(&grammar, []string{
		"serve", "--ledger", "sqlite:" + dir + "/x.db", "--max-waiting=8", "--max-connections", "9",
		"--answer-wait", "6s", "--shutdown-grace", "2s", "--idle-timeout", "620s", "--drain-delay", "3s", "--trusted-proxy", "10.1.2.3,10.2.0.0/16",
		"--user-rate", "1.5", "--ops", "off", "--lanes", "off", "--cors-origin", "https://app.shop.example,http://localhost:5173",
	}, terminal{})
	stage.Must(t, err)
	s := grammar.Serve
	queue, limits := s.queue(), httpd.Options{}
	s.limit(&limits)
	got := []any{queue.Waiting, limits.MaxConnections, queue.Gate, limits.HandlerWait, limits.IdleTimeout, limits.ShutdownGrace, limiter(s.UserRate, userBurst) != nil, limiter(s.AddressRate, addressBurst) != nil}
	want := []any{8, 9, 6 * time.Second, 3 * time.Second, 620 * time.Second, 2 * time.Second, true, false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"https://app.shop.example", "http://localhost:5173"}, texts(s.CORSOrigin)); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if p := s.TrustedProxy; len(p) != 2 || p[0].String() != "10.1.2.3/32" || p[1].String() != "10.2.0.0/16" {
		t.Errorf("trusted proxies: %v", p)
	}
}

func TestADemosClaimsHaveTheirConnectionsForAsLongAsTheyMayWait(t *testing.T) {
	s := demoServe("x.db")
	var limits httpd.Options
	s.limit(&limits)
	if want := longerWait(s.queue().Gate); want == 0 || limits.HandlerWait != want {
		t.Errorf("they have their connections for %v longer, want %v", limits.HandlerWait, want)
	}
}

func TestLoopbackIsOnlyWhatOthersCannotReach(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example.org:1": false,
	} {
		if got := listenAddress(address).isLoopback(); got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}

func TestF64NoOutputShowsASecret(t *testing.T) {
	secrets := []string{"topsecret"}
	for text, want := range map[string]string{
		"x topsecret y":                      "x *** y",
		"dial mysql://root:pa55@db:1/x fail": "dial mysql://root:***@db:1/x fail",
		"redis://:pa55@host":                 "redis://:***@host",
		"redis://h?sentinel_password=pa55&x": "redis://h?sentinel_password=***&x",
		"redis://h?sentinel_passwordfile=/f": "redis://h?sentinel_passwordfile=/f",
		"http://host:80/a@b":                 "http://host:80/a@b",
	} {
		if got := mask(text, secrets); got != want {
			t.Errorf("mask(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestASecretIsHexOrText(t *testing.T) {
	hexed, err := parseSecret([]byte(strings.Repeat("4a", 32) + "\n"))
	stage.Must(t, err)
	plain, err := parseSecret([]byte(strings.Repeat("J", 32)))
	stage.Must(t, err)
	if hexed.Fingerprint() != plain.Fingerprint() {
		t.Error("the same bytes, as digits and as text, are two secrets")
	}
	for _, weak := range []string{"", strings.Repeat("4a", 31), strings.Repeat("J", 31), strings.Repeat(" ", 64)} {
		if _, err := parseSecret([]byte(weak)); err == nil {
			t.Errorf("the secret %q was taken", weak)
		}
	}
}

func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if status := run(ctx, []string{"demo", "--users", "10"}, terminal{out: &strings.Builder{}, err: &strings.Builder{}}); status != exitFailed {
		t.Errorf("the exit status is %d", status)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTermsBecomeWhatTheAPIReads(t *testing.T) {
	var grammar cli
	_, err := parse(&grammar, []string{
		"campaign", "create", "c", "--quantity", "unlimited", "--opens-at", "none", "--closes-at", "2026-12-24T10:00:00+09:00",
		"--answer", "recorded", "--benefit", `{"a":1}`, "--valid-for", "30d",
	}, terminal{})
	stage.Must(t, err)
	text, err := json.Marshal(grammar.Campaign.Create.changes())
	stage.Must(t, err)
	const want = `{"answer":"recorded","closes_at":"2026-12-24T10:00:00+09:00","coupon":{"benefit":{"a":1},"valid_for":"720h0m0s"},"opens_at":null,"quantity":null}`
	if string(text) != want {
		t.Errorf("it is %s, want %s", text, want)
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add("serve\n--listen\n127.0.0.1:0\n--answer-wait=5", "FIRSTCOME_OPS=off\nFIRSTCOME_NOPE=1")
	f.Add("serve\n--max-waiting\n-1\n--\n--x\n-o", "FIRSTCOME_TRUSTED_PROXY=1.2.3.4/99")
	f.Add("campaign\ncreate\nspring\n--quantity\n9999999999999999999\n--benefit\n{", "FIRSTCOME_OUTPUT=json")
	f.Add("claim\n-ojson\n-o\n-\n--output", "FIRSTCOME_HELP=true")
	f.Add("completion\nbash\n--ledger\nmysql://a:b@c", "FIRSTCOME_USER_RATE=NaN")
	f.Add("--help=x\n=\n--=\n-=", "FIRSTCOME_=\nFIRSTCOME_LOG_LEVEL=info+1")
	const secret = "fuzzers-do-not-find-this-secret-0123456789"
	f.Fuzz(func(t *testing.T, args, env string) {
		var grammar cli
		var out strings.Builder
		environ := append(strings.Split(env, "\n"), "FIRSTCOME_SECRET="+secret)
		parsed, err := parse(&grammar, strings.Split(args, "\n"), terminal{out: &out, err: &out, env: environ})
		if err != nil {
			report(&out, err, secretsIn(environ))
		}
		if _, usage := err.(usageError); err != nil && !usage {
			t.Errorf("a mistake that is not reported as one: %v", err)
		}
		if err == nil && parsed != nil && grammar.Serve.MaxWaiting < 0 {
			t.Errorf("a queue of %d", grammar.Serve.MaxWaiting)
		}
		if strings.Contains(out.String(), secret) && !strings.Contains(args+env, secret) {
			t.Error("the secret is shown")
		}
	})
}
