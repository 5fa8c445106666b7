package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/settings"
)

func newRateCommand() *cobra.Command {
	var cfg rate.Config
	var target string
	var fields []string
	cmd := &cobra.Command{
		Use:   "rate --target URL",
		Short: "Send requests at a constant rate and measure how long answers take",
		Long: `Sends requests to one address and measures how long the answers take, at little
cost to the machine. With --rate they are due at times that nothing moves: if
the server stands still, those that were due meanwhile have waited, and are
counted so. Without, each connection sends when it has its answer, which finds
the highest rate, and no latency that a visitor would see.

The result says how much of a CPU the generator itself has used, and how late it
was, by which to judge whether the figures are its own. Linux only.`,
		Example: `  ropeline-bench rate --target http://127.0.0.1:8080/ --rate 20000 --for 30s
  taskset -c 1 ropeline-bench rate --target http://127.0.0.1:8080 --header 'Cookie: a=1' --connections 1000`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Address, cfg.Requests, err = requestTo(target, fields); err != nil {
				return cli.UsageError{Err: err}
			}
			r, err := rate.Run(cmd.Context(), cfg)
			if err != nil && r.Due == 0 {
				return err
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return errors.Join(out.Encode(r), err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "`URL` to ask for, without TLS")
	f.StringArrayVar(&fields, "header", nil, "`line` to send with it, such as 'Cookie: a=1'; repeat it for several")
	f.Var(settings.Float(0, 10e6).At(&cfg.Rate), "rate", "requests per second; 0: as many as the connections allow")
	cfg.Conns, cfg.Warm, cfg.Lasts = 64, time.Second, 10*time.Second
	f.Var(settings.Int(1, 1<<20).At(&cfg.Conns), "connections", "connections that are kept open")
	f.Var(settings.Duration(0, 24*time.Hour, 1).At(&cfg.Warm), "warm", "time before the requests that count")
	f.Var(settings.Duration(time.Millisecond, 24*time.Hour, 1).At(&cfg.Lasts), "for", "time in which requests count")
	f.SortFlags = false
	return cmd
}

// requestTo returns where a URL is asked for, and the request.
func requestTo(target string, fields []string) (address string, heads [][]byte, err error) {
	r, err := http.NewRequest(http.MethodGet, target, nil)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("--target: %w", err)
	case r.URL.Scheme != "http" || r.URL.Hostname() == "":
		return "", nil, fmt.Errorf("--target %q is not allowed: a URL without TLS is wanted, which would cost the generator more than the request, such as http://127.0.0.1:8080/", target)
	}
	if address = r.URL.Host; r.URL.Port() == "" {
		address += ":80"
	}
	for _, line := range fields {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(line, "\r\n") {
			return "", nil, fmt.Errorf("--header %q is not allowed: a name, a colon and a value are wanted, such as 'Cookie: a=1'", line)
		}
		if r.Header.Add(name, strings.TrimSpace(value)); strings.EqualFold(name, "Host") {
			r.Host = strings.TrimSpace(value)
		}
	}
	var head bytes.Buffer
	err = r.Write(&head)
	return address, [][]byte{head.Bytes()}, err
}
