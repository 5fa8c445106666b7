// Package server is a node as a value: everything that `ropeline run` starts, put together,
// without the command line, the configuration file, signals and exit codes.
//
//	s, err := server.New(server.Config{DataDir: dir, Rooms: rooms, Proxy: server.Proxy{Upstreams: httpfront.Upstreams{Origins: origins}}})
//	…
//	err = s.Run(ctx) // until ctx ends and the last visitor was served
//
// Programs of their own, tests and measurements start nodes with it in their own process,
// as many as they like: a Server keeps nothing in variables of a package. What needs a process
// (kill -9, signals, output, memory of one node) starts the binary with bench/rig.
//
// It stands below httpfront since it puts the parts of httpfront on top of a node: node must not
// know of HTTP, and bench, which starts nodes too, must not import commands.
package server
