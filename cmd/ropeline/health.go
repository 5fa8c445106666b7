package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
)

// How whoever starts nodes learns that they are ready.

// readyLook is how often it is looked whether a node is ready.
const readyLook = 50 * time.Millisecond

// notifyReady tells the service manager, if there is one that wants to know, when the node
// takes visitors, and when it is being stopped.
func notifyReady(ctx context.Context, ready func() error, log *slog.Logger) error {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("the service manager is not told", "state", state, "error", err)
		}
	}
	ticker := time.NewTicker(readyLook)
	defer ticker.Stop()
	for ready() != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	tell(daemon.SdNotifyReady)
	<-ctx.Done()
	tell(daemon.SdNotifyStopping)
	return nil
}

// newHealthCommand returns the command for containers, which have no other program to ask with.
func newHealthCommand() *cobra.Command {
	var alive bool
	op := &operation{}
	cmd := op.command("health", "Say whether the node takes visitors, for health checks of containers",
		"  ropeline health\n  ropeline health --alive", 0, 0, func(cmd *cobra.Command, c *client, _ []string) error {
			path := "/readyz"
			if alive {
				path = "/healthz"
			}
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, c.base.JoinPath(path).String(), nil)
			if err != nil {
				return err
			}
			resp, err := c.http.Do(req)
			if err != nil {
				return notReached{fmt.Errorf("no answer from %s: %w", c.base, reasonOf(err))}
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
			if err != nil {
				return notReached{fmt.Errorf("the answer of %s broke off: %w", c.base, err)}
			}
			said := strings.TrimSpace(string(text))
			if resp.StatusCode != http.StatusOK {
				return refusedByNode{resp.StatusCode, said}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(said))
			return err
		})
	cmd.Flags().BoolVar(&alive, "alive", false, "whether it runs at all")
	cmd.Long = "Asks the node that runs here whether it takes visitors. No token is needed.\n" + exitCodes
	return cmd
}
