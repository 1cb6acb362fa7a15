package load

import (
	"context"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
)

// A Server is the server of a run.
type Server struct {
	URL     string   `json:"url"`
	Nodes   []string `json:"nodes,omitempty"` // the URLs of other nodes of its fleet, which were used in turn
	Version string   `json:"version"`         // empty if unknown
	Local   bool     `json:"local"`           // on the generator's machine, sharing its processors
}

// A Machine is the machine of the generator.
type Machine struct {
	Version   string `json:"version"` // of firstcome load
	Platform  string `json:"platform"`
	CPUs      int    `json:"cpus"`
	Processor string `json:"processor"` // empty if unknown
}

// ThisMachine returns the machine of this process, and the version of its program.
func ThisMachine(version string) Machine {
	return Machine{Version: version, Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Processor: processor()}
}

// processor returns the processor's name from Linux.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, found, _ := strings.Cut(string(text), "\nmodel name")
	_, found, _ = strings.Cut(found, ":")
	name, _, _ := strings.Cut(found, "\n")
	return strings.Join(strings.Fields(name), " ")
}

// patience is how long a server may take to return its version.
const patience = 2 * time.Second

// serverFigures returns the server of a run. A server that does not return its version is no error.
func serverFigures(ctx context.Context, c Options, reader *client.Client) Server {
	s := Server{URL: c.Server, Nodes: c.Nodes, Local: isLocal(c.Server)}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if said, err := reader.Readiness(ctx); err == nil {
		s.Version = said.Version
	}
	return s
}

// isLocal reports whether a server's URL is on this machine's loopback.
func isLocal(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// String describes the server in a line.
func (s Server) String() string {
	text := s.URL
	if n := len(s.Nodes); n > 0 {
		text += " and " + counted(int64(n), "other node")
	}
	if s.Version != "" {
		text += ", firstcome " + s.Version
	}
	return text
}

// String describes the machine in a line.
func (m Machine) String() string {
	text := m.Platform + ", " + counted(int64(m.CPUs), "processor")
	if m.Processor != "" {
		text += ", " + m.Processor
	}
	return text
}
