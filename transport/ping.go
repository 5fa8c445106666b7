package transport

import "encoding/binary"

const (
	pingSize = 8
	pongSize = 24
)

func appendPing(dst []byte, t1 int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, datagramPing), uint64(t1))
}

func appendPong(dst []byte, t1, t2, t3 int64) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, datagramPong), uint64(t1))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t2))
	return binary.BigEndian.AppendUint64(dst, uint64(t3))
}

// parsePing and parsePong take a datagram without its first byte.
func parsePing(b []byte) (t1 int64, ok bool) {
	if len(b) != pingSize {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

func parsePong(b []byte) (t1, t2, t3 int64, ok bool) {
	if len(b) != pongSize {
		return 0, 0, 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), int64(binary.BigEndian.Uint64(b[16:])), true
}
