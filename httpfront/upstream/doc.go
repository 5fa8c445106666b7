// Package upstream keeps connections to the origins behind a front, and chooses
// one of them for each request.
//
// What is decided — which origin is next, which are out and for how long, what
// an address may be — are functions of state, input and the time, in
// balance.go, health.go and address.go. A [Group] feeds them: it holds the
// state under a lock, dials, checks and logs.
//
// A Group is built by [New] and does nothing by itself until Run, which ends
// with its context. Its other methods may be called from several goroutines at
// once, also without Run: then nothing is checked, and unused connections stay
// open until they are met. Who gets a [Conn] from Acquire gives it back with
// Release or Discard, once.
package upstream
