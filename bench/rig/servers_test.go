package rig

import (
	"bytes"
	"os"
	"testing"
)

// TestNodesAreStartedAsShipped: what is measured is what operators get.
func TestNodesAreStartedAsShipped(t *testing.T) {
	for file, line := range map[string]string{
		"../../deploy/package/ropeline.service": "Environment=" + Shipped,
		"../../deploy/docker/Dockerfile":        "ENV " + Shipped,
	} {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("%s has no line %q (%v)", file, line, err)
		}
	}
}
