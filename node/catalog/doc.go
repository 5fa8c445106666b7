// Package catalog is what operators have set, as all nodes know it: zones, rooms, their
// events and rules, and the texts of their pages. It lives in the last-writer map, so any
// node takes a change and every node reads the same.
//
// A room is not one value but several, of which each holds settings that only mean
// something together: two operators who change the limits and the page of a room at once,
// at two nodes that cannot hear each other, have both changed. Of two changes to the same
// group the later one stays.
//
//	zone/<zone>                  settings of a zone
//	room/<room>/<group>          a group of settings; a room is there while it has an identity
//	event/<room>/<event>         one event
//	rule/<room>/<rule>           one rule
//	order/<room>                 in which order the rules are asked
//	text/<room>/<hash>/<piece>   a page, in pieces, by what it says
//	file/<room>/<node>           what a node's configuration file said of a room
//
// What was sound where it was written need not be sound together with what was written
// elsewhere at the same time: two rooms on one host and path, a sixth event. Effective
// leaves out what came later, by the same rule at every node, and says so.
//
// The package is pure: it is given a map to read, and returns what is to be written.
package catalog
