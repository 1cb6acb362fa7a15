//go:build soak

package seed

// checks is how often a property is checked.
const checks = 100
