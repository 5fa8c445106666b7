// Package room holds the rules of a queue: from the counts of all nodes a Builder
// makes a View of one room, and a View says what to do with one visitor. Line
// keeps the visitors whom a node counts, History what outlives the counts of sites
// that fall silent.
//
// Everything here is a function of its arguments, the time included: no clock is
// read, no goroutine started, no lock taken, no random number drawn. A View is
// never changed once built, so any number of goroutines may use it at once. A
// Builder, a Line or a History belongs to one goroutine. See DESIGN.md for why the
// rules are as they are, and testdata for what they do.
package room
