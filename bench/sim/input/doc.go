// Package input says who comes when: recorded traffic and made-up shapes, as
// arrivals for the simulator.
//
// All of it becomes a list of spans of time with a number of visitors each, so a
// crowd of millions costs no more memory than the minutes in which it comes. Each
// visitor's moment inside a span is drawn when it is asked for. The same input and
// source of chance give the same moments on every machine: only whole numbers
// are drawn.
//
// A [Traffic] may be read by several goroutines once it is made.
package input
