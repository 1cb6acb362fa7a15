// Package docs holds the documents against the program: the README's commands are
// run, tables are compared with the code that they describe, and links lead
// somewhere. It has tests only.
package docs
