package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropeline/ropeline/cmd/cli"
)

const (
	askRecovery  = time.Second      // how often the node is asked, with --wait
	toldRecovery = 10 * time.Second // how often a line is printed where there is no terminal
)

func newDeadCommand() *cobra.Command {
	op, wait := &operation{}, false
	cmd := op.command("declare-dead NODE", "Declare a node dead that is gone for good with its data directory",
		"  ropeline node declare-dead b1 --gone-for-good --wait", 1, 1, func(cmd *cobra.Command, c *client, args []string) error {
			if !op.yes {
				return cli.Usagef("node %s is not declared dead: if it runs all the same, more visitors get in than the limit allows.\nPower its machine off, never start it again from that data directory, and pass --gone-for-good", args[0])
			}
			raw, err := c.ask(cmd.Context(), "POST", "/api/v1/nodes/"+escaped(args[0])+"/declare_dead", nil, object{"gone_for_good": true})
			if err != nil {
				return err
			}
			r, err := recoveryIn(raw)
			if err != nil {
				return err
			}
			if !wait {
				return op.told(cmd, raw, Printable(r.first()))
			}
			return op.awaitRecovery(cmd, c, raw, r)
		})
	cmd.Long = "Declares a node dead that will never run again, because its data directory is lost or thrown away. The other\n" +
		"nodes then recover its capacity. They can use it when no session of the dead node can last any more: one\n" +
		"session and some seconds later. Ask a node that keeps running; it takes the capacity over.\n\n" + exitCodes
	cmd.Flags().BoolVar(&op.yes, "gone-for-good", false, "confirm that the machine does not run and never will with this data directory; required")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until its capacity can be used, and count down")
	op.show.Bind(cmd, false)
	return cmd
}

// recovery is what the command reads of an answer.
type recovery struct {
	ID       string `json:"node"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Message  string `json:"message"`
	InSecond int64  `json:"usable_in_seconds"`
}

func recoveryIn(raw json.RawMessage) (r recovery, err error) {
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("the answer of the node: %w", err)
	}
	if r.Message == "" { // of a version that does not tell
		r.Message = "its capacity can be used when no session of it can last any more"
	}
	return r, nil
}

// first says what was done, and what comes.
func (r *recovery) first() string {
	name := r.Name
	if name == "" {
		name = r.ID
	}
	return fmt.Sprintf("node %s (%s) is declared dead. %s", name, r.ID, r.Message)
}

func (r *recovery) over() bool { return r.State == "usable" || r.State == "" }

// awaitRecovery shows how far it is until it is over: on a terminal in one line that counts down, elsewhere
// in a line now and then and whenever the state changes, as JSON in one answer on each line.
func (op *operation) awaitRecovery(cmd *cobra.Command, c *client, raw json.RawMessage, r recovery) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	show := countdown{out: out, json: op.show.WantsJSON(cmd)}
	if f, ok := out.(*os.File); ok && !show.json && term.IsTerminal(int(f.Fd())) {
		show.terminal = f
	}
	if !show.json {
		if _, err := fmt.Fprintln(out, Printable(fmt.Sprintf("node %s is declared dead", r.ID))); err != nil {
			return err
		}
	}
	ticker := time.Tick(askRecovery)
	for {
		if err := show.put(raw, r, time.Now()); err != nil || r.over() {
			return err
		}
		select {
		case <-ctx.Done():
			show.end()
			return fmt.Errorf("node %s stays declared dead, and its capacity is recovered without this command: %w", r.ID, context.Cause(ctx))
		case <-ticker:
		}
		next, err := c.ask(ctx, "GET", "/api/v1/nodes/"+r.ID+"/recovery", nil, nil)
		var lost NotReached
		switch {
		case errors.As(err, &lost): // it may come back; the capacity is recovered all the same
			show.note(err.Error())
		case err != nil:
			show.end()
			return err
		default:
			if r, err = recoveryIn(next); err != nil {
				return err
			}
			raw = next
		}
	}
}

// countdown prints how far a recovery is.
type countdown struct {
	out      io.Writer
	json     bool
	terminal *os.File // nil: there is none
	state    string
	printed  time.Time
}

func (d *countdown) put(raw json.RawMessage, r recovery, now time.Time) error {
	changed := r.State != d.state
	if d.terminal != nil {
		d.state = r.State
		_, err := io.WriteString(d.out, "\r"+text.Snip(Printable(r.Message), max(20, d.width()-1), "…")+"\x1b[K")
		if err == nil && r.over() {
			d.end()
		}
		return err
	}
	if !changed && now.Sub(d.printed) < toldRecovery {
		return nil
	}
	d.state, d.printed = r.State, now
	if d.json {
		return Print(d.out, raw, true, true, nil)
	}
	_, err := fmt.Fprintln(d.out, now.Format(time.TimeOnly)+"  "+Printable(r.Message))
	return err
}

// note says what stands in the way of asking; it is said again by the next answer.
func (d *countdown) note(what string) {
	if d.terminal != nil {
		fmt.Fprint(d.out, "\r"+text.Snip(Printable(what), max(20, d.width()-1), "…")+"\x1b[K")
	}
}

// end leaves the last line where it is.
func (d *countdown) end() {
	if d.terminal != nil {
		fmt.Fprintln(d.out)
	}
}

func (d *countdown) width() int {
	if columns, _, err := term.GetSize(int(d.terminal.Fd())); err == nil && columns > 0 {
		return columns
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	return 80
}
