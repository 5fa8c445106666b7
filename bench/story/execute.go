package story

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
)

// planned is one run: what is written in the table in front of its figures, and
// what the program is told.
type planned struct {
	title []string // the first cells of its row
	args  []string
	env   []string // besides that of this process
}

// line returns the command line that a reader types.
func (p planned) line() string {
	return strings.Join(append(append([]string{}, p.env...), "ropeline-bench simulate "+strings.Join(p.args, " ")), " ")
}

// finished is a run that was made.
type finished struct {
	planned
	result sim.Result
	took   time.Duration
	memory int64 // most bytes that were resident; 0: this system does not say
}

// one makes one run. That promises were broken does not end the story: it is in
// the result, and the table tells.
func one(ctx context.Context, self string, p planned) (finished, error) {
	cmd := exec.CommandContext(ctx, self, append([]string{"simulate"}, p.args...)...)
	cmd.Env = append(os.Environ(), p.env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	start := time.Now()
	err := cmd.Run()
	f := finished{planned: p, took: time.Since(start)}
	if bad := json.Unmarshal(out.Bytes(), &f.result); bad != nil {
		return f, fmt.Errorf("%s: %w: %s", p.line(), errors.Join(err, bad), errOut.String())
	}
	f.memory = peakMemory(cmd.ProcessState)
	return f, nil
}
