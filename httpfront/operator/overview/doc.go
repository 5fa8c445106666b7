// Package overview puts together what the dashboard shows: what this node knows of the
// mesh, with what every other node says of itself.
//
// Nodes are asked by a call, once a second at most and only while somebody looks; a node
// that does not answer is shown as it was last. What rooms are like over the whole mesh
// every node knows by itself, so nobody is asked about that.
package overview
