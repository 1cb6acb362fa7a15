// Package mutants plants bugs into copies of the sources and wants the tests that are for them to fail:
// so a test that no longer sees its bug fails here. The sources themselves stay as they are.
package mutants
