package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firstcome/firstcome/test/stage"
)

var setting = regexp.MustCompile(`\bFIRSTCOME_[A-Z_]+`)

// TestEverySettingThatPackagesNameIsOneOfServe holds the shipped configurations and the
// manual against the table of flags, which another test holds against serve.
func TestEverySettingThatPackagesNameIsOneOfServe(t *testing.T) {
	known := map[string]bool{"FIRSTCOME_SECRET": true, "FIRSTCOME_JWT_SECRET": true, "FIRSTCOME_KEY": true, "FIRSTCOME_SERVER": true, "FIRSTCOME_": true}
	for _, row := range table(t, read(t, "docs/limits.md"), "flag") {
		name := strings.ReplaceAll(strings.TrimPrefix(row["flag"], "--"), "-", "_")
		known["FIRSTCOME_"+strings.ToUpper(name)] = true
	}
	for _, file := range []string{"packaging/nodes.compose.yaml", "packaging/firstcome.service", "Dockerfile", "docs/operate.md", "docs/limits.md"} {
		found := setting.FindAllString(read(t, file), -1)
		if len(found) == 0 {
			t.Errorf("%s sets nothing", file)
		}
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s names %s, which is no setting", file, name)
			}
		}
	}
}

func TestTheExampleFleetHasThreeNodesThatAnswerAndTwoThatRecord(t *testing.T) {
	var fleet struct {
		Services map[string]struct {
			Environment     map[string]string
			Image           string
			StopGracePeriod string `yaml:"stop_grace_period"`
			Healthcheck     struct{ Test []string }
		}
	}
	stage.Must(t, yaml.Unmarshal([]byte(read(t, "packaging/nodes.compose.yaml")), &fleet))
	roles := map[string]int{}
	for name, service := range fleet.Services {
		if service.Image != "firstcome" {
			continue
		}
		roles[service.Environment["FIRSTCOME_ROLE"]]++
		if got := strings.Join(service.Healthcheck.Test, " "); got != "CMD /usr/bin/firstcome ready" {
			t.Errorf("%s is asked by %q whether it is ready", name, got)
		}
		wantTimeToStop(t, name, service.StopGracePeriod, service.Environment["FIRSTCOME_DRAIN_DELAY"])
		for _, one := range []string{"FIRSTCOME_LEDGER", "FIRSTCOME_GATE", "FIRSTCOME_SECRET"} {
			if got, want := service.Environment[one], fleet.Services["answer-1"].Environment[one]; got != want || got == "" {
				t.Errorf("%s has another %s than answer-1", name, one)
			}
		}
	}
	if roles["api"] != 3 || roles["recorder"] != 2 {
		t.Errorf("the nodes have the roles %v", roles)
	}
}

// wantTimeToStop wants what kills a node to wait longer than the node takes to stop at worst: the delay,
// and twice the grace, whose default docs/limits.md has.
func wantTimeToStop(t *testing.T, name, has, delay string) {
	t.Helper()
	var needs time.Duration
	for _, row := range table(t, read(t, "docs/limits.md"), "flag") {
		if row["flag"] == "--shutdown-grace" {
			needs = 2 * duration(t, row["default"])
		}
	}
	if delay != "" {
		needs += duration(t, delay)
	}
	if needs == 0 || duration(t, has) <= needs {
		t.Errorf("%s is killed after %s, and needs %v", name, has, needs)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Errorf("%q is no duration", text)
	}
	return d
}

// unit returns the settings of the systemd unit.
func unit(t *testing.T) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^([A-Za-z]+)=(.*)$`).FindAllStringSubmatch(read(t, "packaging/firstcome.service"), -1) {
		settings[found[1]] = found[2]
	}
	return settings
}

// TestTheUnitHidesNothingThatAServerReads holds that Go finds net.core.somaxconn, by which it lets so
// many connections wait to be accepted: where /proc/sys is hidden it takes 128, and a crowd is refused.
func TestTheUnitHidesNothingThatAServerReads(t *testing.T) {
	settings := unit(t)
	if subset := settings["ProcSubset"]; subset != "" && subset != "all" {
		t.Errorf("ProcSubset=%s hides /proc/sys", subset)
	}
	for _, name := range []string{"InaccessiblePaths", "TemporaryFileSystem", "BindReadOnlyPaths", "ReadOnlyPaths"} {
		if strings.Contains(settings[name], "/proc") {
			t.Errorf("%s=%s may hide /proc/sys", name, settings[name])
		}
	}
	if limit, err := strconv.Atoi(settings["LimitNOFILE"]); err != nil || limit < 8192+100 {
		t.Errorf("LimitNOFILE=%s is too few for --max-connections", settings["LimitNOFILE"])
	}
	wantTimeToStop(t, "the unit", settings["TimeoutStopSec"]+"s", "")
}

func TestTheImageSaysWhetherItIsReady(t *testing.T) {
	if !strings.Contains(read(t, "Dockerfile"), `CMD ["/usr/bin/firstcome", "ready"]`) {
		t.Error("the Dockerfile has no health check that runs firstcome ready")
	}
}

// TestTheTestsServersComeInContainersToo holds compose.yaml against what names it: the
// documents, and the variables by which package services knows a server.
func TestTheTestsServersComeInContainersToo(t *testing.T) {
	for _, file := range []string{"README.md", "README.ko.md", "CONTRIBUTING.md"} {
		if text := read(t, file); !strings.Contains(text, "Docker Compose") || !strings.Contains(text, "(compose.yaml)") {
			t.Errorf("%s does not name compose.yaml, for Docker Compose", file)
		}
	}
	text := read(t, "compose.yaml")
	var servers struct {
		Services map[string]struct {
			Ports       []string
			Healthcheck struct{ Test []string }
		}
	}
	stage.Must(t, yaml.Unmarshal([]byte(text), &servers))
	known := read(t, "test/services/kind.go")
	for name, server := range servers.Services {
		variable := "FIRSTCOME_TEST_" + strings.ToUpper(name) + "_URL"
		if !strings.Contains(known, `"`+variable+`"`) || len(server.Ports) != 1 || len(server.Healthcheck.Test) == 0 {
			t.Errorf("%s is %+v, and the tests know no %s", name, server, variable)
			continue
		}
		at, _, _ := strings.Cut(strings.TrimPrefix(server.Ports[0], "127.0.0.1:"), ":")
		if !regexp.MustCompile(variable + `=.*127\.0\.0\.1:` + at + `/`).MatchString(text) {
			t.Errorf("no comment of compose.yaml exports %s at port %s", variable, at)
		}
	}
	if len(servers.Services) != 4 {
		t.Errorf("compose.yaml has %d servers", len(servers.Services))
	}
}
