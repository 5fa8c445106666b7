package relay

import "testing"

// TestTunnelBuffers follows one direction of a tunnel through silence and haste.
func TestTunnelBuffers(t *testing.T) {
	var b tunnelBuffer
	defer b.shrink()
	small := len(b.small)
	for i, step := range []struct{ n, want int }{
		{0, small}, {1, small}, {small - 1, small}, {small, pieceMax}, {pieceMax, pieceMax}, {small, pieceMax}, {small - 1, small}, {0, small},
	} {
		if b.fit(step.n); len(b.bytes()) != step.want {
			t.Errorf("step %d: after %d bytes the buffer has %d, want %d", i, step.n, len(b.bytes()), step.want)
		}
	}
}
