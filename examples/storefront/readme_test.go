//go:build !check && (!race || soak)

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/firstcome/firstcome/test/browser"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestInTheBrowserTheCommandsOfTheReadmeShowADrop runs both in a fresh copy of the repository, with no settings but free ports. A guest of the
// page then gets a coupon of the campaign that the sample makes.
func TestInTheBrowserTheCommandsOfTheReadmeShowADrop(t *testing.T) {
	t.Parallel()
	serve, shop := readmeCommands(t)
	dir := freshCopy(t)
	compiled := exec.Command("go", "build", "./cmd/firstcome", "./examples/storefront") // beforehand, since the waits below have limits
	compiled.Dir, compiled.Env = dir, append(services.Environ(), "CGO_ENABLED=0")
	if out, err := compiled.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", compiled, err, out)
	}
	server := start(t, dir, serve+" --listen 127.0.0.1:0", `msg=serving .*address=(127\.0\.0\.1:\d+)`)
	page := start(t, dir, shop+" --listen 127.0.0.1:0 --server http://"+server, `open (http://\S+)`)
	look := browser.Look{Language: "ko", Width: 360}
	g := &guest{browser.Open(t).Page(t, look), t, look}
	g.Go(page)
	g.Until(`(act => !act.hidden && act.getAttribute("aria-disabled") === "false")(document.querySelector("#act"))`)
	g.Press("#act")
	g.sees("쿠폰을 받았어요!", "The coupon is yours!")
	g.keeps(1)
}

// readmeCommands returns the two commands that README.md starts the sample with, the first without its &.
func readmeCommands(t *testing.T) (serve, shop string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	stage.Must(t, err)
	block := regexp.MustCompile("(?s)```sh\n(.*?) &\n([^\n]*)\n```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("README.md does not start the sample with two commands")
	}
	return block[1], block[2]
}

// freshCopy returns a directory with the repository's files as they are now, and with no other file.
func freshCopy(t *testing.T) string {
	t.Helper()
	const root = "../.."
	names, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	stage.Must(t, err)
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed since the last commit
		}
		stage.Must(t, err)
		to := filepath.Join(dir, name)
		stage.Must(t, os.MkdirAll(filepath.Dir(to), 0o700))
		stage.Must(t, os.WriteFile(to, text, 0o600))
	}
	return dir
}

// start runs a command until the test ends, and returns what a pattern finds in its output.
func start(t *testing.T, dir, command, pattern string) string {
	t.Helper()
	out, c := newLines(), exec.Command("sh", "-c", command)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(services.Environ(), "CGO_ENABLED=0"), out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches go run and the program that it runs
	stage.Must(t, c.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGINT)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", command, out.end())
		}
	})
	return out.await(t, regexp.MustCompile(pattern))
}
