package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var setting = regexp.MustCompile(`\bFIRSTCOME_[A-Z_]+`)

// TestEverySettingThatPackagesNameIsOneOfServe holds the shipped configurations and the
// manual against the table of flags, which another test holds against serve.
func TestEverySettingThatPackagesNameIsOneOfServe(t *testing.T) {
	known := map[string]bool{"FIRSTCOME_SECRET": true, "FIRSTCOME_JWT_SECRET": true, "FIRSTCOME_KEY": true, "FIRSTCOME_SERVER": true, "FIRSTCOME_": true}
	for _, row := range table(t, read(t, "docs/operate.md"), "flag") {
		name := strings.ReplaceAll(strings.TrimPrefix(row["flag"], "--"), "-", "_")
		known["FIRSTCOME_"+strings.ToUpper(name)] = true
	}
	for _, file := range []string{"packaging/nodes.compose.yaml", "packaging/firstcome.service", "Dockerfile", "docs/operate.md"} {
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
			Environment map[string]string
			Image       string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "packaging/nodes.compose.yaml")), &fleet); err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for name, service := range fleet.Services {
		if service.Image != "firstcome" {
			continue
		}
		roles[service.Environment["FIRSTCOME_ROLE"]]++
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
	if err := yaml.Unmarshal([]byte(text), &servers); err != nil {
		t.Fatal(err)
	}
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
	if len(servers.Services) != 3 {
		t.Errorf("compose.yaml has %d servers", len(servers.Services))
	}
}
