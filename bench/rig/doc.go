// Package rig starts, watches, pauses and kills the processes of tests and measurements, each
// on a processor of its own where that is wanted, and says what they have used: nodes of ropeline,
// and the servers that these are held beside. It finds ports for them, and hurts them: it loses,
// copies and fills their data directories, and cuts and bends the network between them.
//
// Who does things to them one after the other, and is over with the first that fails, may say so by [Try], [Must]
// and [Got] instead of handing on each error.
//
// Nothing is installed here. [Missing] says what is not on the machine, and who brings it.
//
// A [Process] is one program, and may be used from any goroutine. Whoever starts one stops it; the end of
// the context stops it, too, so that nothing is left behind by a run that is broken off. On Linux it ends
// with us in any case.
//
// A [Mesh] of nodes lives in a [Network]: [Loopback] needs no privileges and passes every packet through
// proxies, [Namespaces] gives every node a network stack of its own behind the switch of its site, and cuts
// real links and routes. Whatever a mesh, a network or a disk has made on the machine its Close takes away
// again. A Mesh belongs to one goroutine; what says so may be called beside it. It needs Linux.
package rig
