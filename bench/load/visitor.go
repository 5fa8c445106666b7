package load

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

// retryPause is how long a visitor waits before asking again when no target
// gave an answer.
const retryPause = time.Second

// visitor is one browser. It is used by one goroutine.
type visitor struct {
	run    *run
	life   *life
	jar    jar
	target int // index of the target that it stays with
}

// browse is the life of a made-up visitor who comes at due.
func (v *visitor) browse(ctx context.Context, due time.Duration, rng *rand.Rand) {
	crowd := v.run.cfg.Crowd
	patience := around(rng, crowd.Patience)
	stay := around(rng, crowd.Stay)
	var leaveAt time.Duration
	inside := false
	for {
		path := crowd.Paths[rng.IntN(len(crowd.Paths))]
		a, ok := v.pass(ctx, due, request{method: http.MethodGet, path: path}, patience)
		if !ok {
			break
		}
		if !inside {
			inside, leaveAt = true, a.done+stay
		}
		due = a.done + time.Duration(rng.ExpFloat64()*float64(crowd.Think))
		if due > leaveAt || !v.run.sleep(ctx, due) {
			break
		}
	}
	v.leave(ctx)
}

// replay is the life of a visitor out of a log.
func (v *visitor) replay(ctx context.Context, requests []LogRequest) {
	for _, r := range requests {
		// While the visitor waited, or was served slowly, the log went on;
		// what was missed follows at once, in order.
		due := max(v.run.scale(r.At), v.run.now())
		if !v.run.sleep(ctx, due) {
			break
		}
		ask := request{method: r.Method, path: r.Path, agent: r.Agent}
		if _, ok := v.pass(ctx, due, ask, 0); !ok {
			break
		}
	}
	v.leave(ctx)
}

// leave ends the visit. Those whom the end of the run surprises stay: they did
// not leave, and count as what they are.
func (v *visitor) leave(ctx context.Context) {
	if ctx.Err() == nil {
		v.run.tally.leave(v.life)
	}
}

// pass makes a request and repeats it, at the pace that the room asks for,
// until it is not sent to the queue any more. It reports false when the visitor
// gives up, waits longer than patience (0: without end), or the run ends.
func (v *visitor) pass(ctx context.Context, due time.Duration, r request, patience time.Duration) (answer, bool) {
	began := due
	for {
		a, ok := v.ask(ctx, due, r)
		if !ok || a.verdict != waiting {
			return a, ok
		}
		due = a.done + cmp.Or(a.pause, v.run.cfg.Poll)
		if patience > 0 && due-began > patience {
			return a, false
		}
		if !v.run.sleep(ctx, due) {
			return a, false
		}
	}
}

// ask makes a request until it is answered, moving on to the next target when
// one cannot be reached or is not ready. It reports false when no target
// answered for too long, or the run ends. A refusal is an answer: the same
// request would be refused again.
func (v *visitor) ask(ctx context.Context, due time.Duration, r request) (answer, bool) {
	r.jar = &v.jar
	n := len(v.run.client.pools)
	for tries := 1; ; tries++ {
		a, err := v.run.client.do(ctx, v.target, r)
		if ctx.Err() != nil {
			return a, false // the end of the run, not a failure
		}
		if err != nil {
			v.run.tally.fail(err)
		} else {
			v.run.tally.answer(v.life, due, a)
			if a.verdict != unready {
				return a, true
			}
		}
		v.target = (v.target + 1) % n
		if tries%n != 0 {
			continue
		}
		now := v.run.now()
		if now-due >= v.run.cfg.GiveUp || !v.run.sleep(ctx, now+max(retryPause, a.pause)) {
			return a, false
		}
	}
}
