package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// A checker is a command whose flags have to fit each other.
type checker interface{ check(t terminal) []error }

// parse reads a command line and the environment into the grammar. It goes over
// all flags and variables before kong does, which would stop at the first
// mistake: the error joins every mistake there is. A nil context says that help
// was asked for and printed.
func parse(grammar any, args []string, t terminal) (*kong.Context, error) {
	helped := false
	r := &reader{env: variables(t.env)}
	k, err := kong.New(grammar, kong.Name("firstcome"), kong.Description(description), vars(),
		kong.Writers(t.out, t.err), kong.Exit(func(int) { helped = true }),
		kong.Resolvers(kong.ResolverFunc(r.resolve)), kong.ValueFormatter(helpWithVariable),
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true, Compact: true, WrapUpperBound: 120, NoExpandSubcommands: true}))
	if err != nil {
		return nil, fmt.Errorf("the grammar of the command line: %w", err)
	}
	parsed, err := k.Parse(r.flags(k.Model.Node, asMeant(args)))
	switch {
	case helped:
		return nil, nil
	case err != nil && !r.unknown:
		// Behind an unknown flag its value looks like an argument: kong's complaint
		// about that is no mistake of its own.
		r.mistakes = append(r.mistakes, kongMistake(err))
	case err == nil:
		r.check(parsed, t)
	}
	if len(r.mistakes) > 0 {
		return nil, usageError{errors.Join(r.mistakes...)}
	}
	return parsed, nil
}

// asMeant returns the arguments for those that other programs have for the same:
// nothing, help and --version.
func asMeant(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}

// A reader gathers the mistakes of one command line.
type reader struct {
	env      map[string]string // FIRSTCOME_ variables that are set; bad ones are taken out
	mistakes []error
	unknown  bool // a flag is unknown
}

func (r *reader) mistake(format string, args ...any) {
	r.mistakes = append(r.mistakes, fmt.Errorf(format, args...))
}

// check has the selected command check whether its flags fit each other.
func (r *reader) check(parsed *kong.Context, t terminal) {
	if c, ok := parsed.Selected().Target.Addr().Interface().(checker); ok {
		for _, err := range c.check(t) {
			if !r.has(err) {
				r.mistakes = append(r.mistakes, err)
			}
		}
	}
}

// has tells whether there is a mistake already about the flag that err begins with:
// a bad value looks like an absent one afterwards.
func (r *reader) has(err error) bool {
	flag, _, ok := strings.Cut(err.Error(), ": ")
	return ok && slices.ContainsFunc(r.mistakes, func(m error) bool { return strings.HasPrefix(m.Error(), flag+": ") })
}

// flags goes over the arguments and the environment, and returns the arguments
// without those that are mistakes.
func (r *reader) flags(node *kong.Node, args []string) (good []string) {
	root := node
	for n := 0; n < len(args); n++ {
		arg := args[n]
		switch {
		case arg == "--":
			good = append(good, args[n:]...)
			n = len(args)
		case len(arg) > 1 && arg[0] == '-':
			kept, more := r.flag(node, arg, args[n+1:])
			good = append(good, kept...)
			n += more
		default:
			if child := childNamed(node, arg); child != nil {
				node = child
			}
			good = append(good, arg)
		}
	}
	r.environment(root, node)
	return good
}

func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flag reads one flag. It returns what to keep of it, and how many of the
// arguments behind it were its value.
func (r *reader) flag(node *kong.Node, arg string, behind []string) (kept []string, more int) {
	f, value, has := findFlag(node, arg)
	if f == nil {
		r.unknown = true
		r.mistake("%s", unknownFlag(node, arg))
		if takesNoArguments(node) && !has && len(behind) > 0 && !strings.HasPrefix(behind[0], "-") {
			return nil, 1 // its value
		}
		return nil, 0
	}
	name := "--" + f.Name
	if !has && f.IsBool() {
		return []string{name}, 0
	}
	if !has {
		if len(behind) == 0 || len(behind[0]) > 1 && strings.HasPrefix(behind[0], "--") {
			r.mistake("%s: needs a value", name)
			return nil, 0
		}
		value, more = behind[0], 1
	}
	if err := try(f, value); err != nil {
		r.mistake("%s: %w", name, err)
		return nil, more
	}
	return []string{name + "=" + value}, more
}

func takesNoArguments(node *kong.Node) bool {
	return len(node.Children) == 0 && len(node.Positional) == 0
}

// findFlag returns the flag that an argument names, and the value in the same argument.
func findFlag(node *kong.Node, arg string) (f *kong.Flag, value string, has bool) {
	long, isLong := strings.CutPrefix(arg, "--")
	long, value, has = strings.Cut(long, "=")
	has = has && isLong
	for _, f := range flagsOf(node) {
		if isLong && f.Name == long {
			return f, value, has
		}
		if !isLong && f.Short == rune(arg[1]) {
			rest := arg[2:]
			return f, strings.TrimPrefix(rest, "="), rest != ""
		}
	}
	return nil, "", has || !isLong && len(arg) > 2
}

// flagsOf returns the flags of a command and of those above it.
func flagsOf(node *kong.Node) []*kong.Flag {
	return slices.Concat(node.AllFlags(false)...)
}

func unknownFlag(node *kong.Node, arg string) string {
	// The value, which may be a secret, is not repeated.
	name, _, _ := strings.Cut(arg, "=")
	switch name {
	case "--secret":
		return "--secret: a secret is never on the command line, where every user of the machine can read it: set FIRSTCOME_SECRET, or name a file with --secret-file"
	case "--key":
		return "--key: a key is never on the command line, where every user of the machine can read it: set FIRSTCOME_KEY"
	case "--jwt-secret":
		return "--jwt-secret: a secret is never on the command line, where every user of the machine can read it: set FIRSTCOME_JWT_SECRET, or name a file with --jwt-secret-file"
	}
	return fmt.Sprintf("%s: there is no such flag: %s --help lists them", name, node.FullPath())
}

// longestFlag is the longest duration that a flag takes: what is made of one, like three times as
// long, has room in a Duration.
const longestFlag = 365 * 24 * time.Hour

// try reads a value as a flag would.
func try(f *kong.Flag, value string) error {
	trial := *f.Value // Parse marks the value as set
	target := reflect.New(f.Target.Type()).Elem()
	if err := trial.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), target); err != nil {
		if target.Type() == reflect.TypeFor[time.Duration]() {
			return fmt.Errorf("%q is not a duration: write it like 300ms, 5s or 1h30m", value)
		}
		if most, is := mostOf(target.Type()); is {
			return fmt.Errorf("%q is not a whole number of 0 to %d", value, most)
		}
		return withoutPrefix(err)
	}
	if f.Enum != "" && !slices.Contains(f.EnumSlice(), value) {
		return fmt.Errorf("%q is none of %s", value, strings.Join(f.EnumSlice(), ", "))
	}
	if d, ok := target.Interface().(time.Duration); ok && d < 0 {
		return fmt.Errorf("%v is negative", d)
	} else if ok && d > longestFlag {
		return fmt.Errorf("%v is longer than a year", d)
	}
	return nil
}

// mostOf returns the largest number of an unsigned type, or of what points to one.
func mostOf(t reflect.Type) (most uint64, is bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return math.MaxUint64 >> (64 - t.Bits()), true
	}
	return 0, false
}

// withoutPrefix returns what kong put the flag's name in front of.
func withoutPrefix(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// kongMistake returns kong's complaint with a way out.
func kongMistake(err error) error {
	var parseError *kong.ParseError
	if errors.As(err, &parseError) && parseError.Context != nil && parseError.Context.Selected() != nil {
		return fmt.Errorf("%w: see %s --help", err, parseError.Context.Selected().FullPath())
	}
	return fmt.Errorf("%w: see firstcome --help", err)
}
