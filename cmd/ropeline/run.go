package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/httpfront/observe/sink"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/node"
)

func newRunCommand() *cobra.Command {
	cfg := defaultConfig()
	var file string
	var helpAll bool
	var showAll func(*cobra.Command, []string)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a node",
		Long: `Runs a node in front of a site. With --origin alone it is a working single
node; nodes that are given the same secret and each other's addresses are a mesh.

These are the flags of a first start; --help-all lists all. Each may stand in a
YAML file under its own name; flags win. Several rooms stand there under "rooms".`,
		Example: `  ropeline run --origin http://127.0.0.1:3000 --total-active-users 500

  ropeline keygen --out secret.key
  ropeline run --origin http://10.0.0.5 --name a1 --site a --mesh :7946 --secret-file secret.key \
    --join a1.internal:7946,a2.internal:7946 --bootstrap-nodes a1,a2     # at a2 the same with --name a2`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if helpAll {
				showAll(cmd, nil)
				return nil
			}
			return cfg.run(cmd.Context(), file, cmd.Flags(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `file` with any of these flags")
	nodeFlags(cmd.Flags(), &cfg)
	roomFlags(cmd.Flags(), &cfg.Room)
	cmd.Flags().BoolVar(&helpAll, "help-all", false, "show all flags")
	cmd.Flags().SortFlags = false
	showAll = shortHelp(cmd)
	return cmd
}

// logKept is how many bytes of the log wait for who reads it at most, and logEnd for how long the
// end of a node does.
const (
	logKept = 1 << 20
	logEnd  = 2 * time.Second
)

// run runs a node that logs to w, which may stop taking lines, or go away, and holds up nothing
// by it.
func (c *config) run(ctx context.Context, file string, flags *pflag.FlagSet, w io.Writer) error {
	// A line for a reader that is gone is an error then, and not the end of the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	hangups := catchHangups()
	lines := sink.New(w, logKept, 0)
	go lines.Run()
	defer lines.Close(logEnd)
	to, err := c.prepare(file, flags, lines)
	if err != nil {
		return err
	}
	to.LogDropped = lines.Dropped
	lines.Report(func(dropped uint64) {
		to.Logger.Warn("lines of this log were dropped, since who reads it did not take them", "lines", dropped)
	})
	c.Rooms, c.file = nil, fileLines{} // there may be thousands, and flags hold c for good
	return runNode(ctx, to, hangups)
}

// prepare returns what a server is told by file and flags. It logs to w.
func (c *config) prepare(file string, flags *pflag.FlagSet, w io.Writer) (to server.Config, err error) {
	if err := c.load(file, flags); err != nil {
		return to, cli.UsageError{Err: err}
	}
	log, err := newLogger(w, c.LogFormat, c.LogLevel)
	if err != nil {
		return to, cli.UsageError{Err: err}
	}
	c.logPassedOver(log)
	if err := c.faults.open(); err != nil {
		return to, err
	}
	to = c.server()
	to.Logger, to.Version = log, versionText()
	to.Descriptors = descriptors()
	if to.DataDir == "" {
		to.DataDir, err = stateDir(c.Name)
	}
	return to, err
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // a number of nanoseconds, by default
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// stateDir is where a node keeps its state when nothing else is said: below
// what systemd hands over, or the user's state directory.
func stateDir(name string) (string, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no directory for the node's state: %w; give one with --data-dir", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "ropeline", name), nil
}

// runNode runs a node until ctx ends, or an operator has it stop. One that was declared dead goes on as a new one: others have what
// it had, and everybody who has the secret of the mesh can say so. At hangups the access log opens its file again.
func runNode(ctx context.Context, cfg server.Config, hangups <-chan os.Signal) error {
	for {
		err := runOnce(ctx, cfg, hangups)
		if !errors.Is(err, node.ErrDeclaredDead) || cfg.Mesh.CertFile != "" || ctx.Err() != nil {
			return err
		}
		cfg.Logger.Error("this node was declared dead although it runs; it gives up what it had, and starts again as a new node. If no operator did that, somebody has the secret of the mesh: replace it")
	}
}

func runOnce(ctx context.Context, cfg server.Config, hangups <-chan os.Signal) error {
	log := cfg.Logger
	var beside sync.WaitGroup
	defer beside.Wait()
	besideCtx, stopBeside := context.WithCancel(ctx)
	defer stopBeside()
	n, err := server.New(cfg)
	if err != nil {
		if _, ok := errors.AsType[*server.SettingError](err); ok {
			return cli.UsageError{Err: err}
		}
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	beside.Go(func() { tellManager(n, log) })
	beside.Go(func() { giveBack(besideCtx, log) })
	beside.Go(func() { reopen(n, hangups, ended, log) })
	return n.Run(ctx)
}

// catchHangups has SIGHUP do no harm, from now on: an early one would end the process. Nil is
// returned where it ends commands in order.
func catchHangups() <-chan os.Signal {
	if slices.Contains(cli.StopSignals(), os.Signal(syscall.SIGHUP)) {
		return nil
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return hup
}

// reopen has the access log open its file again at each signal, as those who rotate files ask
// for it, until the node has ended.
func reopen(node *server.Server, hangups <-chan os.Signal, ended <-chan struct{}, log *slog.Logger) {
	for {
		select {
		case <-hangups:
			if !node.ReopenAccessLog() {
				log.Info("SIGHUP: there is no access log to open again; secrets, tokens and certificates are read again by themselves, other settings at a start")
			}
		case <-ended:
			return
		}
	}
}
