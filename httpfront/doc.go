// Package httpfront is what HTTP clients meet: a reverse proxy to a site's origins,
// with a waiting room in front of it.
//
// A request is looked at strictly, copied into a value of our own, routed to a
// room, and decided by that room; then it is proxied, or answered with the
// waiting page or JSON. The package decides nothing about queues itself: rooms
// are given to it through the interfaces Rooms and Room.
//
// A [Front] is built by its constructor, does nothing until Run, and ends when the context
// of Run ends. Its methods may be called from several goroutines at once.
package httpfront
