package stage

import (
	"fmt"
	"math"
	"os"
	"strconv"
)

// Soak returns how much of a soak this run is, by the variable SOAK: 0, none; 1, a whole one; what is between, that part of it.
func Soak() float64 {
	text := os.Getenv("SOAK")
	if text == "" {
		return 0
	}
	part, err := strconv.ParseFloat(text, 64)
	if err != nil || part < 0 || part > 1 {
		panic(fmt.Sprintf("SOAK=%q is no number of 0 to 1", text))
	}
	return part
}

// Rounds returns how often a test does what it does: few times, many times in a soak, and in a part of one so much of the way.
func Rounds(few, many int) int {
	return few + int(math.Round(Soak()*float64(many-few)))
}
