// Package limits has tests that run rate limits over whole meshes in virtual time: the code of node/limit,
// with every message between nodes late, lost, doubled or cut off as a scenario has it.
package limits
