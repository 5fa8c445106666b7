package main

import (
	"fmt"
	"strings"

	"github.com/ropeline/ropeline/httpfront/proof"
	"github.com/ropeline/ropeline/transport"
)

// proofConfig says how the site is told that a visitor was let in.
type proofConfig struct {
	On     bool
	Header string
	Issuer string
}

func (c *proofConfig) check() error {
	if c.On && strings.TrimSpace(c.Issuer) == "" {
		return fmt.Errorf("--proof-issuer %q is not allowed: a name or an address, which the site is told too", c.Issuer)
	}
	return nil
}

// signer returns what signs proofs; nil if there shall be none. All nodes that share the
// secrets sign with the same key, which comes from the first.
func (c *proofConfig) signer(order []transport.Secret) (*proof.Signer, error) {
	if !c.On {
		return nil, nil
	}
	return proof.New(proof.Config{Issuer: c.Issuer, Keys: proofKeys(order)})
}
