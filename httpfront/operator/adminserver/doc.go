// Package adminserver is the listener for operators and their programs: it finds out who
// asks, what they may do, and how often, and hands each request on to whoever answers it.
//
// Without tokens it is open to everybody who reaches it, which only programs on the same
// machine may: it binds loopback addresses only then, answers to loopback names only, and
// takes no change that a page of another site brings about in a browser. With tokens it
// may bind any address. Away from loopback it wants TLS, since tokens would be read on
// the way.
package adminserver
