// Package socket reads and writes TCP connections at less cost than package net. Each call of
// the system that may take long is told to Go's scheduler before and after, which hands the
// processor on if it does, and has a thread look every 20 microseconds whether it should. A
// socket that does not block never keeps a thread waiting, so here nobody is told. What is
// waited for is waited for as ever, by the poller of package net, with deadlines as they are
// set there.
//
// On systems other than Linux the calls are those of package syscall.
//
// What it brings, and how that was measured, stands in the DESIGN of package httpfront: a change to
// package net is held against that.
package socket
