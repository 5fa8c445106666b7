//go:build !linux

package bare

import (
	"context"
	"errors"
	"net"
)

// Server is a server that cannot be here.
type Server struct{}

// Listen returns an error: there is no epoll here.
func Listen(Config) (*Server, error) { return nil, errors.New("bare: this runs on Linux only") }

// Addr returns nothing.
func (*Server) Addr() net.Addr { return nil }

// Serve returns an error.
func (*Server) Serve(context.Context) error { return errors.New("bare: this runs on Linux only") }
