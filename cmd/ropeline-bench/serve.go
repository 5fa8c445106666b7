package main

import (
	"encoding/json"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/rig/redis"
	"github.com/ropeline/ropeline/bench/rig/serve"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
)

// newServeCommand is one of the servers beside this program, in a process of its own.
func newServeCommand() *cobra.Command {
	var c serve.Config
	cmd := &cobra.Command{
		Use:    "serve KIND",
		Short:  "Be one of the servers that are measured beside ropeline",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Kind = serve.Kind(args[0])
			return serve.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen, "listen", "", "`host:port`")
	f.StringVar(&c.Site, "site", "", "`host:port` of the origin")
	f.StringVar(&c.Answer, "answer", "", "the `file` of what is answered")
	c.Body = len("hello\n")
	f.Var(settings.Int(0, math.MaxInt32).At(&c.Body), "body", "bytes of the body that bare answers with, without --answer")
	return cmd
}

// newIncrementCommand is a client of Redis, in a process of its own so that its time can be told.
func newIncrementCommand() *cobra.Command {
	var target string
	conns, lasts := 64, time.Second
	cmd := &cobra.Command{
		Use:    "incr",
		Short:  "Be the client of Redis that are measured beside ropeline",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := redis.Increment(target, conns, lasts)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`host:port` of Redis")
	f.Var(settings.Int(1, 4096).At(&conns), "connections", "how many ask at a time")
	f.Var(settings.Duration(time.Millisecond, time.Hour, 1).At(&lasts), "for", "how long")
	return cmd
}
