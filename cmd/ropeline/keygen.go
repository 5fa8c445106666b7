package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/httpfront/server"
	"github.com/ropeline/ropeline/transport"
)

func newKeygenCommand() *cobra.Command {
	var out, replaces string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the secret that the nodes of one mesh share",
		Long: `Makes a new secret. Give the same file to every node with --secret-file.
Certificates between nodes and the keys of visitors' passes come from it:
whoever has it can join the mesh and admit anybody.

With --replaces, the new secret stands in front of those of an existing file.
Give the file that comes out to all nodes, in any order: they begin to use it
once all have it, and nobody loses a place or a session.`,
		Example: `  ropeline keygen --out secret.key
  ropeline keygen --replaces secret.key --out next.key`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := newSecrets(replaces)
			if err != nil {
				return err
			}
			if out == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			return server.WriteSecret(out, text)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this new `file`, readable by you alone (default: standard output)")
	cmd.Flags().StringVar(&replaces, "replaces", "", "`file` with the secret that the new one is to replace")
	return cmd
}

// newSecrets returns the text of a file with a new secret, in front of those in the file
// that it is to replace, if there is one.
func newSecrets(replaces string) (string, error) {
	if replaces == "" {
		return transport.NewSecret().Text() + "\n", nil
	}
	old, err := os.ReadFile(replaces)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	secrets, err := transport.ParseSecrets(string(old))
	if err != nil {
		return "", fmt.Errorf("secret in %s: %w", replaces, err)
	}
	if len(secrets) == transport.MaxSecrets {
		return "", fmt.Errorf("%s has %d secrets, and more are not allowed; take those out that no node uses", replaces, len(secrets))
	}
	text := secrets[0].Next().Text() + "\n"
	for _, s := range secrets {
		text += s.Text() + "\n"
	}
	return text, nil
}
