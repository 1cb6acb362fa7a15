package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Put the line of your shell into its start-up file:

    bash:  source <(firstcome completion bash)
    zsh:   source <(firstcome completion zsh)
    fish:  firstcome completion fish | source`
}

func (c *completionCmd) Run(k *kong.Kong, t terminal) error {
	lines := completions("", k.Model.Node)
	script := map[string]func([]completion) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := fmt.Fprint(t.out, script(lines))
	return err
}

// A completion is what may follow a chain of commands.
type completion struct {
	path  string // "campaign create"
	words []word
}

// A word is a command, or a flag with its dashes.
type word struct {
	text, help string
	short      string   // "-o", or nothing
	takes      bool     // a value comes behind it
	values     []string // those that may; nil: not known
}

// completions returns what may follow the node and every command under it.
func completions(path string, node *kong.Node) []completion {
	here := completion{path: path}
	var under []completion
	for _, child := range node.Children {
		here.words = append(here.words, word{text: child.Name, help: plainHelp(child.Help)})
		under = append(under, completions(strings.TrimSpace(path+" "+child.Name), child)...)
	}
	for _, f := range flagsOf(node) {
		here.words = append(here.words, word{"--" + f.Name, plainHelp(f.Help), short(f), !f.IsBool(), valuesOf(f.Value)})
	}
	for _, argument := range node.Positional {
		for _, value := range valuesOf(argument) {
			here.words = append(here.words, word{text: value, help: plainHelp(argument.Help)})
		}
	}
	return append([]completion{here}, under...)
}

func short(f *kong.Flag) string {
	if f.Short == 0 {
		return ""
	}
	return "-" + string(f.Short)
}

// valuesOf returns the values that a flag or an argument may have, if these are a few words.
func valuesOf(v *kong.Value) []string {
	if few, ok := v.Target.Addr().Interface().(interface{ words() []string }); ok {
		return few.words()
	}
	return strings.FieldsFunc(v.Enum, func(r rune) bool { return r == ',' })
}

// plainHelp returns the first sentence of a help text without what shells read specially.
func plainHelp(help string) string {
	help, _, _ = strings.Cut(help, ". ")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("'\"`$\\:[]", r) {
			return ' '
		}
		return r
	}, strings.TrimSuffix(help, "."))
}

// cases returns the shell case lines that give each path's words.
func cases(all []completion) string {
	var b strings.Builder
	for _, c := range all {
		texts := make([]string, 0, len(c.words))
		for _, w := range c.words {
			texts = append(texts, w.text)
		}
		fmt.Fprintf(&b, "    '%s') words='%s' ;;\n", c.path, strings.Join(texts, " "))
	}
	return b.String()
}

// values returns the shell case lines that give what may follow each flag that takes a value.
func values(all []completion) string {
	var b strings.Builder
	for _, c := range all {
		for _, w := range c.words {
			if !w.takes {
				continue
			}
			flag := fmt.Sprintf("'%s %s'", c.path, w.text)
			if w.short != "" {
				flag += fmt.Sprintf("|'%s %s'", c.path, w.short)
			}
			fmt.Fprintf(&b, "    %s) words='%s' ;;\n", flag, strings.Join(w.values, " "))
		}
	}
	return b.String()
}

// chain finds the chain of commands that stands before the cursor.
const chain = `    case "$path $word" in
%s      path="${path:+$path }$word" ;;
    esac
`

// knownChains returns a case pattern of every chain of commands.
func knownChains(all []completion) string {
	patterns := make([]string, 0, len(all))
	for _, c := range all[1:] {
		parent, name := "", c.path
		if at := strings.LastIndex(c.path, " "); at >= 0 {
			parent, name = c.path[:at], c.path[at+1:]
		}
		patterns = append(patterns, fmt.Sprintf("'%s %s'", parent, name))
	}
	return "      " + strings.Join(patterns, "|") + ")\n"
}

// bashScript returns bash's script. To bash the = of --output=json is a word of its own.
func bashScript(all []completion) string {
	return `_firstcome() {
  local path='' word words='' before="${COMP_WORDS[COMP_CWORD-1]}" here="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  if [ "$here" = = ]; then
    here=''
  elif [ "$before" = = ]; then
    before="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
` + fmt.Sprintf(chain, knownChains(all)) + `  done
  case "$path" in
` + cases(all) + `  esac
  case "$path $before" in
` + values(all) + `  esac
  COMPREPLY=($(compgen -W "$words" -- "$here"))
}
complete -o default -F _firstcome firstcome
`
}

func zshScript(all []completion) string {
	return `#compdef firstcome
_firstcome() {
  local path_='' word words_=''
  for word in "${words[@]:1:$((CURRENT-2))}"; do
` + strings.ReplaceAll(fmt.Sprintf(chain, knownChains(all)), "path", "path_") + `  done
  case "$path_" in
` + strings.ReplaceAll(cases(all), "words=", "words_=") + `  esac
  case "$path_ ${words[CURRENT-1]}" in
` + strings.ReplaceAll(values(all), "words=", "words_=") + `  esac
  compadd -- ${=words_} || _files
}
compdef _firstcome firstcome
`
}

func fishScript(all []completion) string {
	var b strings.Builder
	b.WriteString("complete -c firstcome -f\n")
	for _, c := range all {
		condition := "__fish_use_subcommand"
		if c.path != "" {
			var seen []string
			for _, name := range strings.Fields(c.path) {
				seen = append(seen, "__fish_seen_subcommand_from "+name)
			}
			condition = strings.Join(seen, "; and ")
		}
		for _, w := range c.words {
			option := "-a " + w.text
			if long, ok := strings.CutPrefix(w.text, "--"); ok {
				option = "-l " + long
				if w.short != "" {
					option += " -s " + w.short[1:]
				}
			}
			switch {
			case len(w.values) > 0:
				option += " -x -a '" + strings.Join(w.values, " ") + "'"
			case w.takes:
				option += " -r -F" // many values are files
			}
			fmt.Fprintf(&b, "complete -c firstcome -n '%s' %s -d '%s'\n", condition, option, w.help)
		}
	}
	return b.String()
}
