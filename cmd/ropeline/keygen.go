package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/transport"
)

func newKeygenCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the secret that the nodes of one mesh share",
		Long: `Makes a new secret. Give the same file to every node with --secret-file.
Certificates between nodes and the keys of visitors' passes come from it:
whoever has it can join the mesh and admit anybody.`,
		Example: "  ropeline keygen --out secret.key",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := transport.NewSecret().Text() + "\n"
			if out == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			return writeSecret(out, text)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this new `file`, readable by you alone (default: standard output)")
	return cmd
}

// writeSecret never overwrites: a lost secret logs every visitor out.
func writeSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fmt.Errorf("write the secret to %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return fmt.Errorf("write the secret to %s: %w", path, err)
	}
	return f.Close()
}
