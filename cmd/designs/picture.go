package main

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

//go:embed report/picture.svg
var pictureText string

// writeMarkdown writes the table in Markdown, for a page of the docs.
func writeMarkdown(w io.Writer, rep *report, picked []contestant) error {
	lines := []string{"| design | " + strings.Join(columns, " | ") + " |", strings.Repeat("|---", len(columns)+1) + "|"}
	for _, c := range picked {
		lines = append(lines, "| `"+c.name+"` | "+strings.Join(rep.cells(c), " | ")+" |")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// A bar shows a contestant in the picture.
type bar struct {
	Name           string
	Product, Exact bool
	Winners        string
	Label, Top     int // vertical positions of the name and of the bar
	Width, End     float64
}

// exact reports whether every run of a contestant was exact and in order, and whether at least one run had a fault.
func (rep *report) exact(contestant string) (faulted bool) {
	for _, res := range rep.Results {
		if res.Contestant != contestant {
			continue
		}
		if res.wrong() > 0 || res.Unfinished != "" {
			return false
		}
		faulted = faulted || res.Fault != "" && res.Nothing == ""
	}
	return faulted
}

// writePicture draws how many winners a second each contestant stores with 64 connections, the fastest first.
func writePicture(w io.Writer, rep *report, picked []contestant) error {
	const head, row, longest, from = 34, 24, 400., 190.
	speed := func(c contestant) float64 {
		runs, _ := rep.fastest(c.name)
		return median(runs, (*result).winners)
	}
	picked = slices.Clone(picked)
	slices.SortStableFunc(picked, func(a, b contestant) int { return cmp.Compare(speed(b), speed(a)) })
	bars := make([]bar, len(picked))
	for n, c := range picked {
		width := max(2, longest*speed(c)/max(1, speed(picked[0])))
		bars[n] = bar{
			Name: c.name, Product: c.product, Exact: rep.exact(c.name), Winners: humanize.Comma(int64(math.Round(speed(c)))),
			Label: head + n*row + 15, Top: head + n*row + 3, Width: width, End: from + width + 6,
		}
	}
	t, err := template.New("picture").Parse(pictureText)
	if err != nil {
		return err
	}
	foot := head + len(bars)*row
	return t.Execute(w, map[string]any{"Bars": bars, "Height": foot + 20, "Key": foot + 10, "Box": foot + 1})
}
