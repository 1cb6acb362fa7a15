//go:build linux && !check

package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// varnishVCL has Varnish say how long it keeps what a node answers, and gives it away after that while it asks again.
const varnishVCL = `vcl 4.1;
backend node { .host = "%s"; .port = "%s"; }
sub vcl_backend_response {
	set beresp.http.Kept = beresp.ttl;
	set beresp.http.Late = beresp.grace;
}
`

// varnished starts Varnish as it comes, before the node at an address, and returns its URL.
func varnished(t *testing.T, node string) string {
	t.Helper()
	binary, err := exec.LookPath("varnishd")
	if err != nil {
		binary = "/usr/sbin/varnishd" // where the path of most users does not lead
	}
	// Nobody else listens at this address, so the port stays free.
	free, err := net.Listen("tcp", "127.7.7.10:0")
	stage.Must(t, err)
	_ = free.Close()
	host, port, err := net.SplitHostPort(node)
	stage.Must(t, err)
	dir := t.TempDir()
	vcl := filepath.Join(dir, "node.vcl")
	stage.Must(t, os.WriteFile(vcl, fmt.Appendf(nil, varnishVCL, host, port), 0o600))
	cmd := exec.Command(binary, "-F", "-j", "none", "-n", filepath.Join(dir, "work"), "-a", free.Addr().String(), "-f", vcl)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var says strings.Builder
	cmd.Stdout, cmd.Stderr = &says, &says
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: .ci/install installs varnish", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Varnish said:\n%s", &says)
		}
	})
	waitFor(t, "Varnish to listen", func() bool {
		c, err := net.Dial("tcp", free.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + free.Addr().String()
}

// TestACacheBeforeTheNodesTellsOfALineNoLaterThanTheNodesSay: Varnish by itself gives an answer away for ten seconds after its time.
func TestACacheBeforeTheNodesTellsOfALineNoLaterThanTheNodesSay(t *testing.T) {
	p := serve(t, launch{args: patient})
	admin := client.New(p.url, "")
	t.Cleanup(admin.CloseIdle)
	none, pace := int64(0), int64(1)
	stage.Must(t, stage.Err(admin.CreateCampaign(t.Context(), client.NewCampaign{ID: "lined", Name: "Lined", Quantity: &none, Pace: &client.Pace{PerSecond: &pace}, Standby: true})))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, varnished(t, p.address())+"/v1/campaigns/lined/line", http.NoBody)
	stage.Must(t, err)
	answer, err := http.DefaultClient.Do(r)
	stage.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	stage.Must(t, err)
	kept, err1 := strconv.ParseFloat(answer.Header.Get("Kept"), 64)
	late, err2 := strconv.ParseFloat(answer.Header.Get("Late"), 64)
	if err := errors.Join(err1, err2); err != nil || answer.StatusCode != http.StatusOK || kept <= 0 || kept+late > 2 {
		t.Errorf("the line is answered %d %s, kept for %v s, and given away for %v s after that: %v", answer.StatusCode, body, kept, late, err)
	}
}
