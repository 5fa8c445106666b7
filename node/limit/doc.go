// Package limit is the rate limiter: rules, counters and what nodes tell each other of
// them, as functions of state, input and now.
//
// A rule says which requests are counted, and together with which others: requests that
// have the same values of its characteristics share a [Key]. Of each key a node keeps two
// numbers, the counts of this period and of the one before, and estimates from them how
// many requests came within the last period; see [Window].
//
// In each site one node owns a key. The others tell it what they have counted, in batches
// and off the path of requests, and are told what the whole site has; where a rule counts
// over the whole mesh, owners tell each other. When a key is above its limit, the node that
// finds it tells the site for how long, and the mesh if that is longer than counts say; every
// node answers from its own memory until then.
//
// Nothing in the package is guarded: who shares a [Table] between goroutines locks it.
package limit
