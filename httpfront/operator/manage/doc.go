// Package manage is the part of the API of operators that is about the mesh itself: its
// nodes and sites, who has which rights of a room, the secrets, how a node is stopped or
// declared dead, and why a visitor is let in or is not. Rooms are package admin's.
package manage
