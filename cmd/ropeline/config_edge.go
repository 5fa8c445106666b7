package main

import (
	"github.com/ropeline/ropeline/httpfront"
)

// edgeConfig is what the operator says about how visitors connect, limits and
// timeouts aside.
type edgeConfig struct {
	front httpfront.Edge
}
