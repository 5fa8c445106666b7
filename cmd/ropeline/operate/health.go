package operate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
)

// askAgain is how often health asks while it waits.
const askAgain = 200 * time.Millisecond

// newHealthCommand returns the command for containers, which have no other program to ask with.
func newHealthCommand() *cobra.Command {
	var alive bool
	var wait time.Duration
	op := &operation{}
	cmd := op.command("health", "Say whether the node takes visitors, for health checks of containers",
		"  ropeline health\n  ropeline health --wait 30s\n  ropeline health --alive", 0, 0, func(cmd *cobra.Command, c *client, _ []string) error {
			if wait < 0 {
				return cli.Usagef("--wait is %s; allowed is 0s or more", wait)
			}
			path := "/readyz"
			if alive {
				path = "/healthz"
			}
			until := time.Now().Add(wait)
			said, err := c.healthAt(cmd.Context(), path)
			for err != nil && time.Now().Before(until) && sleep(cmd.Context(), askAgain) {
				said, err = c.healthAt(cmd.Context(), path)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), Printable(said))
			return err
		})
	cmd.Flags().BoolVar(&alive, "alive", false, "whether it runs at all")
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to ask again while the answer is no, or there is none")
	cmd.Long = "Asks the node that runs here whether it takes visitors. No token is needed.\n" + exitCodes
	return cmd
}

// sleep returns after d, or when ctx ends, and reports whether it has not.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// healthAt returns what the node says at one of its addresses for health checks. That it is not well
// is an error.
func (c *client) healthAt(ctx context.Context, path string) (said string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(path).String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", NotReached{fmt.Errorf("no answer from %s: %w", c.base, reasonOf(err))}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return "", NotReached{fmt.Errorf("the answer of %s broke off: %w", c.base, err)}
	}
	said = strings.TrimSpace(string(text))
	switch {
	case resp.Header.Get("Server") != "ropeline":
		return "", c.noNode(resp)
	case resp.StatusCode != http.StatusOK:
		return "", Refused{resp.StatusCode, Printable(said)}
	}
	return said, nil
}
