package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker: -X main.version=v1.2.3 -X main.commit=abc.
var version, commit string

// A build identifies this binary.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // the sources had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild returns the values that the linker set, or otherwise those that the Go toolchain recorded.
func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Commit = cmp.Or(b.Commit, s.Value)
			case s.Key == "vcs.modified" && commit == "":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, "devel"), cmp.Or(b.Commit, "unknown")
	return b
}

// String returns the build on one line.
func (b build) String() string {
	modified := ""
	if b.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("firstcome %s (commit %s%s, %s, %s)", b.Version, b.Commit, modified, b.Go, b.Platform)
}

type versionCmd struct{ outputFlag }

func (c *versionCmd) Run(t terminal) error {
	if c.json() {
		return json.NewEncoder(t.out).Encode(thisBuild())
	}
	_, err := fmt.Fprintln(t.out, thisBuild())
	return err
}
