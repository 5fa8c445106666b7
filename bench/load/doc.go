// Package load sends visitors to a web site that stands behind a waiting room
// and measures what becomes of them.
//
// The model is open: visitors arrive at the times that the plan gives them,
// however slowly the site answers, and every latency is measured from the time
// at which a request was due. A stalled site therefore shows up in full, and
// not only in the one request that happened to be under way.
//
// A visitor is what a browser is to the room: it keeps cookies, asks again at
// the interval that it is told while it waits, looks at a few pages once it is
// let in, and leaves. It stays with one target, and moves on to the next, with
// the same cookies, when that one cannot be reached or is not ready; so several
// targets look like one site behind a balancer.
//
// Visitors are either made up ([Crowd]) or taken from a recorded access log
// ([ReadLog]), one for each client address.
//
// A call of [Run] starts its own goroutines, one for each visitor who is
// present, and returns when all of them have ended. Several runs may go on at
// once. Memory grows by about 50 bytes for each visitor who ever came, so a run
// that never ends should have a modest rate.
package load
