package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A terminal is a command's input, output and environment.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	env      []string // NAME=value
}

// confirm returns nil once the user has typed the word. It returns an error if the user typed anything other than that, if there is no input, or if ctx
// ended first.
func (t terminal) confirm(ctx context.Context, what, word string) error {
	fmt.Fprintf(t.err, "%s Type %s to continue: ", what, word)
	answered := make(chan error, 1)
	go func() { answered <- t.typed(word) }() // only the end of the process ends a read of a keyboard
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		fmt.Fprintln(t.err)
		return errors.New("stopped: nothing was done")
	}
}

// typed reads a line, and returns nil if it is the word.
func (t terminal) typed(word string) error {
	typed, err := bufio.NewReader(io.LimitReader(t.in, 1024)).ReadString('\n')
	switch typed = strings.TrimSpace(typed); {
	case typed == word:
		return nil
	case typed == "" && err != nil:
		fmt.Fprintln(t.err)
		return usageError{errors.New("there is no input for a confirmation, so nothing was done: use --yes")}
	}
	return fmt.Errorf("%q is not %s: nothing was done", typed, word)
}

// raw returns the writer for bytes that must not change, such as those of an export.
func (t terminal) raw() io.Writer {
	if v, ok := t.out.(visible); ok {
		return v.to
	}
	return t.out
}

// A visible writes text, and escapes control characters, with which a name could control the terminal. It escapes them as JSON does, so JSON stays the
// same.
type visible struct{ to io.Writer }

// Write implements io.Writer. Each call must have whole characters, like the calls of fmt and of encoders.
func (v visible) Write(text []byte) (int, error) {
	if _, err := io.WriteString(v.to, spelled(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// spelled returns a text with its control characters escaped, except line ends and tabs.
func spelled(text string) string {
	if strings.IndexFunc(text, controls) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if controls(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cell returns a text as a cell of a table: it cannot end the line.
func cell(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text)
}

// controls reports whether a character controls a terminal: the control characters of ASCII and Latin-1, and the characters that change the direction
// of text.
func controls(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
