package edge

import (
	"crypto/tls"
	"errors"
	"net"
)

// handshakeMax is how many bytes a client may send until its handshake is complete. A ClientHello with keys of the largest
// post-quantum kind has less than 4 KB, and may come twice; crypto/tls holds up to 64 KiB of it, several times over.
const handshakeMax = 8 << 10

var errLongHandshake = errors.New("the TLS handshake is too long")

// secured is the server's side of TLS on a connection whose handshake is bounded. Who reads first has it made.
type secured struct {
	*tls.Conn
	from *handshaking
}

func secure(c net.Conn, cfg *tls.Config) *secured {
	from := &handshaking{Conn: c, left: handshakeMax}
	return &secured{tls.Server(from, cfg), from}
}

// Handshake makes the handshake, if that was not done.
func (s *secured) Handshake() error {
	if s.from.complete {
		return nil
	}
	err := s.Conn.Handshake()
	s.from.complete = err == nil
	return err
}

// Read reads what has come.
func (s *secured) Read(p []byte) (int, error) {
	if err := s.Handshake(); err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

// handshaking is a connection below TLS. Only who reads from it uses what is in it.
type handshaking struct {
	net.Conn
	left     int // bytes that may still be read
	complete bool
}

// Read reads what has come, and no more than may until the handshake is complete.
func (h *handshaking) Read(p []byte) (int, error) {
	if h.complete {
		return h.Conn.Read(p)
	}
	if h.left == 0 {
		return 0, errLongHandshake
	}
	n, err := h.Conn.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}
