//go:build linux && (!soak || race) && !check

package e2e_test

// soaking reports whether these tests run in a soak: then each of them runs on every setup, otherwise they share the setups among them.
const soaking = false
