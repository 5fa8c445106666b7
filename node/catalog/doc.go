// Package catalog is what operators have set, as all nodes know it: zones, rooms, their
// events and rules, and the texts of their pages. It lives in the last-writer map, so any
// node takes a change and every node reads the same.
//
// Settings are not one value but many: two operators who change two settings of a room at
// once, at two nodes that cannot hear each other, have both changed. Of two changes to the
// same setting the later one stays. Rooms, events, rules and rate limits stand under a key as
// they were made, and under one more for each setting that was changed since; see thing.go.
//
//	zone/<zone>                         settings of a zone
//	room/<room>[/<unit>]                a room
//	event/<room>/<event>[/<unit>]       an event
//	rule/<room>/<rule>[/<unit>]         a rule
//	limit/<limit>[/<unit>]              a rate limit
//	text/<room>/<version>/<piece>       a page, in pieces; those of rate limits are of room zero
//	file/<room>/<node>                  what a node's configuration file said of a room
//
// What was sound where it was written need not be sound together with what was written
// elsewhere at the same time: two rooms on one host and path, a sixth event. Effective
// leaves out what came later, by the same rule at every node, and says so.
//
// The package is pure: it is given a map to read, and returns what is to be written.
package catalog
