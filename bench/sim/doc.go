// Package sim runs whole meshes of nodes in virtual time and measures how well
// they keep what a waiting room promises.
//
// The nodes are the shipped ones: each is a [node.Core], with its rules, its
// counts and its replication. Time, network, membership, clocks, failures and
// visitors are made here, from one seed, and everything that happens is an event
// in one heap. An oracle watches from outside: it knows at every moment who is
// really inside, who really waits and since when, and compares.
//
// The same [Config] gives the same [Result], to the byte, on machines of one
// architecture (GOARCH) and with any number of cores. Others may round the last
// digit of a floating-point number in another way. Several runs may go on at once:
// they share nothing. One run uses one goroutine.
//
// DESIGN.md says what is modelled, what is not, and how each figure is defined.
package sim
