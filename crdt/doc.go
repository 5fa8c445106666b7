// Package crdt holds the state that nodes share and merge: rows of counters,
// one per node incarnation and written by that node alone; site summaries; and
// a last-writer-wins map. Each has a digest, a delta and a bounded codec.
//
// Nothing here reads a clock, starts a goroutine or touches a network. Values
// are not safe for concurrent use. What a merge or a delta returns owns its
// memory: it shares no map or slice with its arguments.
package crdt
