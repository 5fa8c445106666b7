// Package transport is the mesh between nodes: one UDP port, QUIC with mutual
// TLS 1.3 between any two peers, and serf membership running inside those
// same connections.
//
// A [Mesh] answers four needs. It says who is there ([Mesh.Members] and
// Config.OnEvent), it asks a peer something and waits ([Mesh.Call]), it tells
// a peer something and does not wait ([Mesh.Send]), and it measures how far
// away a peer is in distance and in clock time ([Mesh.RTT], [Mesh.Offset]).
// It knows nothing of what is said.
//
// Who a peer is comes from its certificate alone, never from an address nor
// from a message. A peer without a certificate of the cluster gets no byte of
// ours beyond the TLS handshake.
//
// All methods of a Mesh may be called from any number of goroutines. Nothing
// runs before [Mesh.Run]; everything that was started has ended when Run
// returns, but for a few goroutines of serf that wait for a last timer of
// some seconds. Callbacks may be called from several goroutines at once, except
// OnEvent, whose calls come one after the other.
package transport
