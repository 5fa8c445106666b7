package transport

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	helloVersion = 4
	helloHead    = 51 // bytes before the name
)

// hello is what two ends tell each other first. It says nothing about who a
// peer is, which its certificate has said already, but which start of it this
// is: a restarted process has a higher boot, a second process on a copied
// data directory another instance.
type hello struct {
	boot     uint64
	instance [16]byte // random, made at each start
	started  int64    // start of the process, Unix nanoseconds by its own clock
	name     string
	mesh     mesh
}

// maxBoot is more starts than any node has: a higher number was made up.
const maxBoot = 1 << 40

// mesh is what a node says of the mesh that it is of.
type mesh struct {
	id      MeshID
	pending bool // it is of none yet
}

// appendHello writes: version (1), boot (8), instance (16), started (8),
// mesh (16) and whether it is pending (1), length of name (1), name.
func appendHello(dst []byte, h hello) []byte {
	dst = append(dst, helloVersion)
	dst = binary.BigEndian.AppendUint64(dst, h.boot)
	dst = append(dst, h.instance[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.started))
	dst = append(dst, h.mesh.id[:]...)
	dst = append(dst, asByte(h.mesh.pending), byte(len(h.name)))
	return append(dst, h.name...)
}

func readHello(r io.Reader) (hello, error) {
	var head [helloHead]byte
	if err := readHead(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return hello{}, malformed("empty hello")
		}
		return hello{}, err
	}
	if head[0] != helloVersion {
		return hello{}, malformed("hello of version %d, want %d", head[0], helloVersion)
	}
	h := hello{
		boot:     binary.BigEndian.Uint64(head[1:]),
		instance: [16]byte(head[9:25]),
		started:  int64(binary.BigEndian.Uint64(head[25:])),
		mesh:     mesh{id: MeshID(head[33:49]), pending: head[49] == 1},
	}
	if head[49] > 1 {
		return hello{}, malformed("hello with %d as a flag", head[49])
	}
	if h.boot > maxBoot {
		return hello{}, malformed("hello of start %d", h.boot)
	}
	name, err := readBody(r, int(head[50]))
	if err != nil {
		return hello{}, err
	}
	if err := checkLabel("name", string(name), maxNameLen); err != nil {
		return hello{}, malformed("hello: %v", err)
	}
	h.name = string(name)
	return h, readEnd(r)
}

// before reports which of two processes under one identity may go on when
// they have the same boot: the one that started first, and between two of
// the same nanosecond the one with the smaller instance. Both come to the
// same answer.
func (h hello) before(o hello) bool {
	if h.started != o.started {
		return h.started < o.started
	}
	return string(h.instance[:]) < string(o.instance[:])
}
