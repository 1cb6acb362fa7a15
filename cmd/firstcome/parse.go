package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// A checker is a command whose flags must fit together. check returns the mistakes.
type checker interface{ check(t terminal) []error }

// parse reads a command line and the environment into the grammar. The error joins all mistakes. If the context is nil without an error, parse has
// printed the help.
func parse(grammar any, args []string, t terminal) (*kong.Context, error) {
	helped := false
	r := &reader{env: variables(t.env)}
	k, err := kong.New(grammar, kong.Name("firstcome"), kong.Description(description), vars(),
		kong.Writers(t.out, t.err), kong.Exit(func(int) { helped = true }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)), kong.TypeMapper(reflect.TypeFor[netip.Prefix](), kong.MapperFunc(readNetwork)),
		kong.KindMapper(reflect.Uint32, kong.MapperFunc(readWhole)),
		kong.Resolvers(kong.ResolverFunc(r.resolve)), kong.ValueFormatter(helpWithVariable),
		kong.ConfigureHelp(kong.HelpOptions{NoAppDescFormat: true, Compact: true, WrapUpperBound: 120, NoExpandSubcommands: true}))
	if err != nil {
		return nil, fmt.Errorf("the grammar of the command line: %w", err)
	}
	traced := r.trace(k, asMeant(args))
	r.environment(traced)
	var parsed *kong.Context
	if !r.refused {
		parsed, err = k.Parse(traced.Args)
	}
	switch {
	case helped:
		return nil, nil
	case parsed != nil:
		r.check(parsed, t)
	case !r.refused && !r.unknown:
		r.mistakes = append(r.mistakes, kongMistake(traced, err))
	}
	if len(r.mistakes) > 0 {
		return nil, usageError{errors.Join(r.mistakes...)}
	}
	return parsed, nil
}

// asMeant accepts forms that other programs accept: no arguments, help and --version.
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

// A reader collects all mistakes of a command line. kong alone stops at the first.
type reader struct {
	env      map[string]string // FIRSTCOME_ variables that are set, without those with bad values
	mistakes []error
	left     int  // number of arguments after the flag that was read last and its value
	unknown  bool // a flag is unknown. Its value looks like an argument, so kong's errors about later arguments do not count
	refused  bool // kong has refused an argument
}

// trace lets kong read the arguments repeatedly, each time without those at which it stopped before.
func (r *reader) trace(k *kong.Kong, args []string) *kong.Context {
	for _, f := range allFlags(k.Model.Node) {
		f.Mapper = flagMapper{f.Mapper, r}
	}
	for {
		traced, _ := kong.Trace(k, args) // traced has the error
		if traced.Error == nil {
			return traced
		}
		at := len(args) - len(traced.Path[len(traced.Path)-1].Remainder())
		if args[at] == "--" {
			at++ // kong stopped at the next argument
		}
		args = slices.Concat(args[:at], r.skip(traced, args[at:]))
	}
}

// skip notes that the first argument is a mistake, and returns the arguments after it.
func (r *reader) skip(traced *kong.Context, args []string) []string {
	switch text := traced.Error.Error(); {
	case strings.HasPrefix(text, "--"): // the value of that flag
		r.mistakes = append(r.mistakes, traced.Error)
		return args[len(args)-r.left:]
	case strings.HasPrefix(text, "unknown flag "):
		r.mistakes = append(r.mistakes, unknownFlag(commandOf(traced), args[0]))
		r.unknown = true
	case !r.refused && !r.unknown:
		r.mistakes = append(r.mistakes, kongMistake(traced, traced.Error))
		r.refused = true
	}
	return args[1:]
}

// check lets the command check whether its flags fit together. It drops errors about a flag that already has a mistake, because a bad value looks like
// an absent one.
func (r *reader) check(parsed *kong.Context, t terminal) {
	if c, ok := parsed.Selected().Target.Addr().Interface().(checker); ok {
		for _, err := range c.check(t) {
			flag, _, _ := strings.Cut(err.Error(), ": ")
			if !slices.ContainsFunc(r.mistakes, func(m error) bool { return strings.HasPrefix(m.Error(), flag+": ") }) {
				r.mistakes = append(r.mistakes, err)
			}
		}
	}
}

// commandOf returns the command on the command line, or the root of all commands.
func commandOf(traced *kong.Context) *kong.Node {
	return cmp.Or(traced.Selected(), traced.Model.Node)
}

// A flagMapper reads the values of a flag. Each value is one argument, which may begin with one hyphen.
type flagMapper struct {
	kong.Mapper
	reader *reader
}

func (m flagMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	defer func() { m.reader.left = ctx.Scan.Len() }()
	switch token := ctx.Scan.Peek(); {
	case ctx.Value.IsBool():
	case token.InferredType().IsAny(kong.EOLToken, kong.FlagToken):
		return errors.New("needs a value")
	default:
		text := ctx.Scan.Pop().String()
		if token.Type == kong.ShortFlagTailToken {
			text = strings.TrimPrefix(text, "=") // -o=json
		}
		ctx.Scan.PushTyped(text, kong.FlagValueToken)
	}
	err, enum := m.Mapper.Decode(ctx, target), ctx.Value.EnumSlice()
	if err == nil && ctx.Value.Enum != "" && !slices.Contains(enum, target.String()) {
		err = fmt.Errorf("%q is none of %s", target, strings.Join(enum, ", "))
	}
	return err
}

// readWhole reads a uint32.
func readWhole(ctx *kong.DecodeContext, target reflect.Value) error {
	text := ctx.Scan.Pop().String()
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return fmt.Errorf("%q is not a whole number from 0 to %d", text, uint32(math.MaxUint32))
	}
	target.SetUint(n)
	return nil
}

// longestFlag is the longest duration that a flag accepts. Values computed from it, such as three times as much, fit in a Duration.
const longestFlag = 365 * 24 * time.Hour

// readDuration reads a duration.
func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	text := ctx.Scan.Pop().String()
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration: write it like 300ms, 5s or 1h30m", text)
	case d < 0:
		return fmt.Errorf("%v is negative", d)
	case d > longestFlag:
		return fmt.Errorf("%v is longer than a year", d)
	}
	target.SetInt(int64(d))
	return nil
}

func unknownFlag(node *kong.Node, arg string) error {
	// Do not repeat the value, which may be a secret.
	name, _, _ := strings.Cut(arg, "=")
	switch name {
	case "--secret":
		return errors.New("--secret: a secret is never on the command line, where every user of the machine can read it: set FIRSTCOME_SECRET, or name a file with --secret-file")
	case "--key":
		return errors.New("--key: a key is never on the command line, where every user of the machine can read it: set FIRSTCOME_KEY")
	case "--jwt-secret":
		return errors.New("--jwt-secret: a secret is never on the command line, where every user of the machine can read it: set FIRSTCOME_JWT_SECRET, or name a file with --jwt-secret-file")
	}
	return fmt.Errorf("%s: there is no such flag: %s --help lists them", name, node.FullPath())
}

// kongMistake adds to kong's error which help to read.
func kongMistake(traced *kong.Context, err error) error {
	return fmt.Errorf("%w: see %s --help", err, commandOf(traced).FullPath())
}
