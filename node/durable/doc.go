// Package durable runs named objects whose state outlives the process. An object
// runs one call at a time, reads and writes keys of its own, and may be written as
// plainly as this:
//
//	n := get("n"); put("n", n+1); return n+1
//
// Two gates make that correct. The input gate lets no other call of the object
// begin while a storage operation is under way, so that nothing changes between the
// get and the put. The output gate holds the reply, and every message that the call
// sends, until all that it may depend on is on disk; where a write fails, an error
// takes its place and the object starts again from what is confirmed. Speed comes
// from what happens behind the gates: reads come from a cache, the writes of many
// calls and of many objects share one commit, and the next call runs while the last
// one's reply is waiting.
//
// [Objects] is the runtime. A [Store] keeps the keys: a file ([Open]), in tests also
// memory ([NewMemory]). A commit that failed is never tried again, since after a failed
// fsync nobody knows what is on disk. The store refuses everything further with
// [ErrBroken], goes on showing what is confirmed, and is replaced by a new one
// ([Create], [Objects.Replace]).
package durable
