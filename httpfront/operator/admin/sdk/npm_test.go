package sdk

import (
	"os"
	"os/exec"
	"testing"
)

// TestNPM runs npm/check.mjs, which has its own way to send each call to the next node.
func TestNPM(t *testing.T) {
	if _, err := os.Stat("npm/node_modules"); err != nil {
		t.Skip("the npm package is not installed; make sdk-check does that")
	}
	n := meet(t, "npm")
	cmd := exec.CommandContext(t.Context(), "node", "check.mjs", n.token, n.zone)
	for _, u := range n.urls {
		cmd.Args = append(cmd.Args, u.String())
	}
	cmd.Dir, cmd.Env = "npm", append(os.Environ(), "NODE_EXTRA_CA_CERTS="+os.Getenv("ROPELINE_SDK_CA"))
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	n.wantAll()
}
