// Package listfile reads lists that people bring from spreadsheets and databases: users' ids, and codes of other systems.
package listfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// byteOrderMark is written before UTF-8 text by Excel and some editors on Windows. It is not part of the text.
const byteOrderMark = "\ufeff"

// isUTF16 reports whether a file begins with the byte order mark of UTF-16.
func isUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
}

// A row is a line of cells. If cells contain line ends, line is the number of the row's first line.
type row struct {
	line  int
	cells []string
}

// split splits a text into rows of cells, and returns the numbers of the empty lines. The first line determines the separator. A *csv.ParseError means
// that the cells after its line are unknown.
func split(text []byte) (all []row, empty []int, err error) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.ContainsRune(first, '\t') { // mysql --batch quotes nothing, so quotation marks are part of the text
		for n, line := range strings.Split(string(text), "\n") {
			if line = strings.TrimSuffix(line, "\r"); line != "" {
				all = append(all, row{n + 1, strings.Split(line, "\t")})
			} else {
				empty = append(empty, n+1)
			}
		}
		return all, empty, nil
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord = -1
	if !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, ';') { // Excel, in countries with a decimal comma
		reader.Comma = ';'
	}
	next, read := 1, int64(0) // the line after the last row, and how many bytes are before it
	for {
		cells, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all, empty, nil
		case err != nil:
			return all, empty, err
		}
		line, _ := reader.FieldPos(0)
		for n := next; n < line; n++ {
			empty = append(empty, n)
		}
		end := reader.InputOffset()
		next, read = next+bytes.Count(text[read:end], []byte("\n")), end
		all = append(all, row{line, cells})
	}
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
