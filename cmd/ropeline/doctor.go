package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/cmd/ropeline/operate"
)

// finding is what the doctor says of one thing.
type finding struct {
	Check string `json:"check"`
	// State is "ok", "warn" (it works, and may fail or be slow later) or "fail".
	State string `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// States of findings.
const (
	findOK   = "ok"
	findWarn = "warn"
	findFail = "fail"
)

// doctor gathers findings.
type doctor struct {
	cfg   *config
	found []finding
}

func (d *doctor) ok(check, format string, args ...any) {
	d.found = append(d.found, finding{check, findOK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) warn(check, found, do string) {
	d.found = append(d.found, finding{check, findWarn, found, do})
}

func (d *doctor) fail(check, found, do string) {
	d.found = append(d.found, finding{check, findFail, found, do})
}

func newDoctorCommand() *cobra.Command {
	cfg := defaultConfig()
	var file string
	show := &operate.Output{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether a node can run here, and what to do if not",
		Long: `Looks at what a node needs of this machine: ports, buffers of UDP, the limit of open
files, the clock, the secret, the data directory, and whether the other nodes and the site
are reached. It takes the flags and the file of "ropeline run", and changes nothing.

Exit codes: 0 all is well, or might be better; 1 a node cannot run like this; 2 the flags or the
file are refused.`,
		Example: `  ropeline doctor --config /etc/ropeline/ropeline.yaml`,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.load(file, cmd.Flags()); err != nil {
				return cli.UsageError{Err: err}
			}
			d := &doctor{cfg: &cfg}
			d.look(cmd.Context())
			raw, err := json.Marshal(map[string]any{"findings": d.found})
			if err != nil {
				return err
			}
			if err := operate.Print(cmd.OutOrStdout(), raw, show.WantsJSON(cmd), false, func(json.RawMessage) (string, error) { return d.table(), nil }); err != nil {
				return err
			}
			if n := d.count(findFail); n > 0 {
				return fmt.Errorf("%d of %d checks failed", n, len(d.found))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML `file` of the node")
	nodeFlags(cmd.Flags(), &cfg)
	roomFlags(cmd.Flags(), &cfg.Room)
	show.Bind(cmd, false)
	cmd.Flags().SortFlags = false
	return cmd
}

// look makes all checks.
func (d *doctor) look(ctx context.Context) {
	runs := d.checkPorts(ctx)
	d.checkFiles()
	d.checkBuffers()
	d.checkClock()
	d.checkSecret()
	d.checkData(runs)
	d.checkBootstrap()
	d.checkPeers(ctx)
	d.checkOrigins(ctx)
}

func (d *doctor) count(state string) (n int) {
	for _, f := range d.found {
		if f.State == state {
			n++
		}
	}
	return n
}

// table renders the findings for people.
func (d *doctor) table() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"", "What", "Found"})
	for _, f := range d.found {
		mark := map[string]string{findOK: "ok", findWarn: "warn", findFail: "FAIL"}[f.State]
		found := text.WrapSoft(f.Found, 90)
		if f.Do != "" {
			found += "\n→ " + strings.ReplaceAll(text.WrapSoft(f.Do, 88), "\n", "\n  ")
		}
		t.AppendRow(table.Row{mark, f.Check, operate.Printable(found)})
	}
	switch fails, warns := d.count(findFail), d.count(findWarn); {
	case fails > 0:
		return t.Render() + fmt.Sprintf("\na node cannot run like this: %d to mend", fails)
	case warns > 0:
		return t.Render() + fmt.Sprintf("\na node can run here; %d to look at", warns)
	}
	return t.Render() + "\na node can run here"
}

// errText returns the text of an error, without what was being done.
func errText(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
