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
