// Package relay moves the bytes of one request that go on for long, between a client and an origin: the
// body that is sent on while the answer is awaited, and both directions of a connection that was
// upgraded.
package relay
