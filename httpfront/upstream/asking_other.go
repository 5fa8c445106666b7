//go:build !unix

package upstream

import "errors"

// asking is for connections that can be waited for in another way than by reading.
type asking struct {
	request []byte
	sent    bool
	reused  bool
}

var errUnsent = errors.New("")

func newAsking(*quietness, bool) *asking { return &asking{} }

func (*asking) canAsk() bool { return false }

func (*asking) read([]byte) (int, error) { panic("upstream: asked on a connection that cannot") }
