package http1

import (
	"bytes"

	"github.com/ropeline/ropeline/node/room"
)

// Memory is what a connection remembers of the head before, since the next request is mostly
// about the same host, and often the same path. The zero value remembers nothing.
type Memory struct {
	hostField []byte
	host      string // what NormalHost says of it

	path []byte
	read room.Path // what room.ReadPath says of it
}

// pathMax is the length of the longest path that is remembered.
const pathMax = 1 << 10

// readHost is NormalHost of a Host field.
func (m *Memory) readHost(field []byte) (host string, ok bool) {
	if m == nil {
		return NormalHost(field)
	}
	if m.host != "" && bytes.Equal(m.hostField, field) {
		return m.host, true
	}
	if host, ok = NormalHost(field); ok {
		m.hostField, m.host = append(m.hostField[:0], field...), host
	}
	return host, ok
}

// readPath is room.ReadPath.
func (m *Memory) readPath(raw []byte) (p room.Path, err error) {
	if m == nil || len(raw) > pathMax {
		return room.ReadPath(raw)
	}
	if m.read.Route != "" && bytes.Equal(m.path, raw) {
		return m.read, nil
	}
	if p, err = room.ReadPath(raw); err == nil {
		m.path, m.read = append(m.path[:0], raw...), p
	}
	return p, err
}
