// Package uplot holds uPlot 1.6, which draws plots in a browser, as its npm package has it: MIT licensed, see uPlot.LICENSE; and the
// colours of outcomes in plots.
package uplot

import _ "embed"

// Script defines the global uPlot. Style is its style sheet. Outcomes is the style sheet with the colour of each outcome.
var (
	//go:embed uPlot.iife.min.js
	Script string
	//go:embed uPlot.min.css
	Style string
	//go:embed outcomes.css
	Outcomes string
)
