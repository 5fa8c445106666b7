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
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
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

// execute makes all runs, jobs at a time, and returns them in their order.
func execute(ctx context.Context, r *measurement.Run, runs []planned, jobs int) ([]finished, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make([]finished, len(runs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			for i := range next {
				var err error
				if done[i], err = one(ctx, r.Self, runs[i]); err != nil {
					cancel(err)
					return
				}
				r.Tell("%2d of %d  %6.1f s  %s", i+1, len(runs), done[i].took.Seconds(), runs[i].line())
			}
		})
	}
	for i := range runs {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return done, context.Cause(ctx)
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
