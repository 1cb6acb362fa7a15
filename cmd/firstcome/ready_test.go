package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheOpsAddressIsBesideTheListenAddress(t *testing.T) {
	for args, want := range map[string]string{
		"":                                       "127.0.0.1:8081",
		"--listen :9000":                         "127.0.0.1:9001",
		"--listen 127.0.0.1:0":                   "127.0.0.1:0",
		"--listen 127.0.0.1:65534":               "127.0.0.1:65535",
		"--listen 127.0.0.1:65535":               "127.0.0.1:65534",
		"--listen [::1]:1":                       "127.0.0.1:2",
		"--ops off":                              "",
		"--ops 10.0.0.1:7":                       "10.0.0.1:7",
		"--ops 127.0.0.1:0 --listen 127.0.0.1:5": "127.0.0.1:0",
	} {
		var grammar cli
		t.Chdir(t.TempDir())
		_, err := parse(&grammar, append([]string{"serve", "--create-key"}, strings.Fields(args)...), terminal{})
		if got := grammar.Serve.Ops.beside(grammar.Serve.Listen); err != nil || got != want {
			t.Errorf("%q: it is %q, %v; want %q", args, got, err, want)
		}
	}
}

// asked runs firstcome ready, and returns its exit status and output.
func asked(t *testing.T, env []string, args ...string) (status int, said string) {
	t.Helper()
	var both bytes.Buffer
	status = run(t.Context(), append([]string{"ready"}, args...), terminal{out: &both, err: &both, env: env})
	return status, both.String()
}

func TestReadyExitsAsTheServerAnswers(t *testing.T) {
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("it asks %s", r.URL)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for url, want := range map[string]struct {
		status int
		said   string
	}{
		answer(200, `{"status":"ready"}`):    {exitOK, "ready\n"},
		answer(503, `{"status":"draining"}`): {exitFailed, "503 Service Unavailable, draining"},
		answer(200, `<html>`):                {exitFailed, "the answer is not from firstcome"},
		gone.URL:                             {exitFailed, "refused"},
		"nowhere":                            {exitUsage, "--server"},
	} {
		if status, said := asked(t, nil, "--server", url); status != want.status || !strings.Contains(said, want.said) {
			t.Errorf("it exits with %d and says %q, want %d and %q", status, said, want.status, want.said)
		}
		port := url[strings.LastIndex(url, ":")+1:]
		if want.status == exitUsage {
			continue
		}
		for _, env := range [][]string{{"FIRSTCOME_LISTEN=:" + port}, {"FIRSTCOME_ROLE=recorder", "FIRSTCOME_OPS=0.0.0.0:" + port}, {"FIRSTCOME_TLS_CERT=x", "FIRSTCOME_OPS=127.0.0.1:" + port}} {
			if status, said := asked(t, env); status != want.status || !strings.Contains(said, want.said) {
				t.Errorf("with %v it exits with %d and says %q", env, status, said)
			}
		}
	}
}

func TestReadyIsToldWhereItCannotKnow(t *testing.T) {
	for _, args := range [][]string{{"--listen", "127.0.0.1:0"}, {"--role", "recorder", "--ops", "off"}, {"--tls-cert", "x", "--ops", "off"}} {
		if status, said := asked(t, nil, args...); status != exitUsage || !strings.Contains(said, "--server") {
			t.Errorf("%v exits with %d and says %q", args, status, said)
		}
	}
}

func TestAServerOfEveryAddressIsAskedOnLoopback(t *testing.T) {
	got := map[string]string{}
	for _, address := range []string{":1", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::1]:1", "node.internal:1"} {
		got[address] = listenAddress(address).here()
	}
	want := map[string]string{
		":1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.0.0.1:1": "10.0.0.1:1", "[::1]:1": "[::1]:1", "node.internal:1": "node.internal:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := net.ResolveTCPAddr("tcp", got["[::]:1"]); err != nil {
		t.Error(err)
	}
}
