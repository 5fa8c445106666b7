// Package history keeps what happened in each room, minute by minute, for a day: how
// many visitors were inside and waited, how many came and were let in, how long they had
// waited and how long they stayed.
//
// # Who records what
//
// A [Recorder] belongs to one node. Two kinds of figures go into it, and they are added
// up differently:
//
//   - Counts and durations ([Counts], waits, stays) are of what this node did itself:
//     visitors who came to it, whom it let in, whose sessions it ended. Each happens at
//     exactly one node, so those of several nodes add up.
//   - Gauges ([Seen]) are of the whole room over the whole mesh, as this node sees it.
//     Every node records the same room, so adding them up would count each visitor once
//     per node. [Merge] takes those of one node for each minute: the one that looked most
//     often, since a node that was starting, or stopped, saw less of the minute.
//
// A reader asks every node for its [Series] and merges them. Merging is commutative and
// associative, but not idempotent: a node's series must go in once ([Join]). What a dead node did
// is missing until it is back; [Minute.Nodes] says how many recorded a minute, so that a
// reader sees the gap. A node that leaves passes on what it has ([Recorder.Inherit]), and what others had
// left to it: its successor answers for it from then on.
//
// # Time
//
// A minute is closed when the first observation or Advance of another one comes, and is
// not changed any more. If the clock jumps, the next minute is simply another one: nothing
// is thrown away because it looks old, and a minute that comes twice is merged when it is
// read. What was recorded under a time that was wrong stays under that time. An observation
// that is at most a minute late goes into the open minute.
//
// # Durations
//
// Durations are kept in cells whose width grows with the value, sixteen to an octave. A
// percentile of a [Histogram] at level 0 is within 1/32 (3.2 %) of the true one, or 50 ms
// if that is more. Where durations are scattered in so many rooms that a day of them would not
// fit into memory, they are kept at a lower resolution: each level doubles both bounds, up to
// level 4, which is half of the value. [Histogram.Error] says which bound holds. There is
// always room for such as are close together, as in a room that goes first come first served.
//
// The ready-made histograms were looked at. Those of HdrHistogram take kilobytes each however
// little is in them, and there are two for every minute and room.
//
// # Memory
//
// Closed minutes are bytes without pointers, about 30 for a minute in which little happened,
// and 100 for a busy one, or some hundreds where memory allows. All together take at most [Config.Bytes]; beyond that the oldest
// hour goes, whichever room's it is. What was inherited takes half of that at most. It lies beside what this node
// recorded, unmerged, until there are two days of a room, and goes after a day.
//
// A Recorder has no clock, no lock and no goroutine. It is owned by one goroutine. Series
// and all they hold are values that nobody changes.
package history
