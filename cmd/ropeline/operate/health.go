package operate

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

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
				return NotReached{fmt.Errorf("no answer from %s: %w", c.base, reasonOf(err))}
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
			if err != nil {
				return NotReached{fmt.Errorf("the answer of %s broke off: %w", c.base, err)}
			}
			said := strings.TrimSpace(string(text))
			if resp.StatusCode != http.StatusOK {
				return Refused{resp.StatusCode, said}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), Printable(said))
			return err
		})
	cmd.Flags().BoolVar(&alive, "alive", false, "whether it runs at all")
	cmd.Long = "Asks the node that runs here whether it takes visitors. No token is needed.\n" + exitCodes
	return cmd
}
