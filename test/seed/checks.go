//go:build !soak

package seed

// checks is how often a property is checked. Most checks are walks of thirty steps on a server; thirty of them take a second.
const checks = 30
