package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Put the line for your shell into the shell's start-up file:

    bash:  source <(firstcome completion bash)
    zsh:   source <(firstcome completion zsh)
    fish:  firstcome completion fish | source`
}

func (c *completionCmd) Run(t terminal) error {
	_, err := fmt.Fprint(t.out, completionScripts[c.Shell])
	return err
}

// completing is the word with which the scripts ask firstcome for completions. It is not a command of cli, so it answers even if an environment
// variable is wrong.
const completing = "__complete"

// completionScripts are the scripts that the shells source. bash treats the = of --output=json as a word of its own. If firstcome prints no
// completions, the shells complete file names.
var completionScripts = map[string]string{
	"bash": `_firstcome() {
  local here="${COMP_WORDS[COMP_CWORD]}"
  if [ "$here" = = ]; then
    here=''
  fi
  COMPREPLY=($(compgen -W "$(firstcome __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" | cut -f 1)" -- "$here"))
}
complete -o default -F _firstcome firstcome
`,
	"zsh": `#compdef firstcome
_firstcome() {
  compadd -- $(firstcome __complete "${(@)words[2,CURRENT-1]}" | cut -f 1) || _files
}
compdef _firstcome firstcome
`,
	"fish": `function __firstcome
  set -l words (commandline -opc)
  firstcome __complete $words[2..-1]
end
complete -c firstcome -f -a '(__firstcome)'
complete -c firstcome -n 'not count (__firstcome) >/dev/null' -F
`,
}

// complete prints the words that may come next on a command line, one a line, each with its help after a tab.
func complete(t terminal, words []string) error {
	k, err := kong.New(new(cli), vars())
	if err != nil {
		return err
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "=" })
	node := k.Model.Node
	for _, word := range words {
		if n := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word }); n >= 0 {
			node = node.Children[n]
		}
	}
	if f := flagBefore(node, words); f != nil {
		printWords(t, valuesOf(f.Value), "")
		return nil
	}
	for _, child := range node.Children {
		printWords(t, []string{child.Name}, child.Help)
	}
	for _, f := range flagsOf(node) {
		printWords(t, []string{"--" + f.Name}, f.Help)
	}
	for _, argument := range node.Positional {
		printWords(t, valuesOf(argument), argument.Help)
	}
	return nil
}

// flagBefore returns the flag that is the last of words, if it takes a value, or nil.
func flagBefore(node *kong.Node, words []string) *kong.Flag {
	for _, f := range flagsOf(node) {
		names := []string{"--" + f.Name, "-" + string(f.Short)}
		if len(words) > 0 && slices.Contains(names, words[len(words)-1]) && !f.IsBool() {
			return f
		}
	}
	return nil
}

// valuesOf returns the values that a flag or an argument may have, if they are an enumeration.
func valuesOf(v *kong.Value) []string {
	return strings.FieldsFunc(v.Enum, func(r rune) bool { return r == ',' })
}

// printWords prints words, each with the first sentence of help.
func printWords(t terminal, words []string, help string) {
	help, _, _ = strings.Cut(help, ". ")
	for _, word := range words {
		fmt.Fprintf(t.out, "%s\t%s\n", word, strings.TrimSuffix(help, "."))
	}
}
