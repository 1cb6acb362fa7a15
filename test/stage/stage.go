// Package stage has what the tests of several rooms stand on: a fake gate, journal and ledger, which do what
// test/conform wants of the real ones.
package stage
