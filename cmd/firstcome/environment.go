package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

const variablePrefix = "FIRSTCOME_"

// Secrets have variables, and no flags.
const (
	secretVariable    = "FIRSTCOME_SECRET"
	keyVariable       = "FIRSTCOME_KEY"
	jwtSecretVariable = "FIRSTCOME_JWT_SECRET"
)

func secretVariables() []string {
	return []string{secretVariable, keyVariable, jwtSecretVariable}
}

// variables returns firstcome's variables in an environment. An empty variable counts as not set, because compose files and systemd units often set
// variables to nothing.
func variables(environ []string) map[string]string {
	found := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, variablePrefix) && value != "" {
			found[name] = value
		}
	}
	return found
}

// variable returns the value of one of an environment's variables, "" if it is not set.
func (t terminal) variable(name string) string { return variables(t.env)[name] }

// environment notes unknown variables, and variables with bad values for the command's flags.
func (r *reader) environment(traced *kong.Context) {
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		isOf := func(f *kong.Flag) bool { return hasVariable(f) && variableOf(f.Name) == name }
		if !slices.ContainsFunc(allFlags(traced.Model.Node), isOf) && !slices.Contains(secretVariables(), name) && !isKubernetes(name) {
			r.mistakes = append(r.mistakes, fmt.Errorf("%s: no flag has this variable: unset it, or see firstcome serve --help for the names", name))
		}
	}
	for _, f := range flagsOf(commandOf(traced)) {
		if value, _ := r.resolve(nil, nil, f); value != nil {
			one := kong.DecodeContext{Value: f.Value, Scan: kong.Scan().PushTyped(value, kong.FlagValueToken)}
			if err := f.Mapper.Decode(&one, reflect.New(f.Target.Type()).Elem()); err != nil {
				r.mistakes = append(r.mistakes, fmt.Errorf("%s: %w", variableOf(f.Name), err))
				delete(r.env, variableOf(f.Name))
			}
		}
	}
}

// isKubernetes reports whether a variable is one that Kubernetes sets in every pod in the namespace of a Service called firstcome.
func isKubernetes(name string) bool {
	rest := strings.TrimPrefix(name, variablePrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
}

func allFlags(node *kong.Node) []*kong.Flag {
	flags := slices.Clone(node.Flags)
	for _, child := range node.Children {
		flags = append(flags, allFlags(child)...)
	}
	return flags
}

// flagsOf returns the flags of a command and of its parent commands.
func flagsOf(node *kong.Node) []*kong.Flag {
	return slices.Concat(node.AllFlags(false)...)
}

// variableOf returns the variable of a flag: FIRSTCOME_ANSWER_WAIT of answer-wait.
func variableOf(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasVariable reports whether a flag has a variable. A flag has none if another command has a flag of the same name with another meaning.
func hasVariable(f *kong.Flag) bool { return f.Name != "help" && f.Tag.Get("variable") != "none" }

// resolve gives kong the value of a flag that is not on the command line.
func (r *reader) resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	if value, ok := r.env[variableOf(f.Name)]; ok && hasVariable(f) {
		return value, nil
	}
	return nil, nil
}

// helpWithVariable returns a flag's help with the name of its variable.
func helpWithVariable(v *kong.Value) string {
	if v.Flag == nil || !hasVariable(v.Flag) {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " ($" + variableOf(v.Name) + ")."
}

// secretsIn returns the secrets in an environment, which no output may show.
func secretsIn(environ []string) []string {
	all := variables(environ)
	var secrets []string
	for _, name := range secretVariables() {
		if value := all[name]; value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// mask returns a text without secrets and without the passwords of URLs in it.
func mask(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = regexp.MustCompile(`(://[^/?#\s:@]*):[^/?#\s@]*@`).ReplaceAllString(text, "$1:***@")
	return regexp.MustCompile(`([?&]\w*password=)[^&#\s"]*`).ReplaceAllString(text, "$1***")
}
