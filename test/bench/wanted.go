package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// oneNumber is a wanted figure that one number tells: ≥ 0.50, or p99 ≤ 10 ms.
var oneNumber = regexp.MustCompile(`^(?:(p99|max) )?([≥≤<]) ([\d.,]+)(?: (ms|bytes|MB|/s))?$`)

// judged returns what is wanted of a row, and that it was missed if it was. The figure is the ratio, or what was measured if there is none.
func judged(measured, ratio, want string) string {
	parts := oneNumber.FindStringSubmatch(want)
	if parts == nil {
		return want // not by one number
	}
	figure := regexp.MustCompile(parts[1] + `\D*?([\d.,]+)`).FindStringSubmatch(cmp.Or(ratio, measured))
	if figure == nil {
		return want
	}
	got, wanted := number(figure[1]), number(parts[3])
	if parts[2] == "≥" && got < wanted || parts[2] == "≤" && got > wanted || parts[2] == "<" && got >= wanted {
		return want + ", missed"
	}
	return want
}

func number(text string) float64 {
	return value(strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(text, "."), ",", ""), 64))
}

// busy returns a warning if other work keeps over a quarter of the processors busy before anything is measured: a machine at rest needs less. load is the load average of the last minute.
func busy(load float64, processors int) string {
	if load < float64(processors)/4 {
		return ""
	}
	return fmt.Sprintf("**The machine is busy**: before the first row its load average was %.1f, on %d processors. Only the ratios mean something, and they vary more.\n\n", load, processors)
}
