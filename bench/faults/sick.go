//go:build linux

package faults

import (
	"errors"
	"fmt"
	"time"
)

// backWithin is how long visitors may be kept from an origin that is well again.
const backWithin = 5 * time.Second

func sickOrigin(r *run) error {
	moods := []struct {
		mood int32
		one  int64
		what string
	}{{fails, 1, "answers with 500"}, {hangs, 1, "hangs"}, {slow, 20, "is slow"}}
	r.rng.Shuffle(len(moods), func(i, j int) { moods[i], moods[j] = moods[j], moods[i] })
	for _, m := range moods {
		came := r.origin.came.Load()
		r.mark("the origin %s", m.what)
		r.origin.be(m.mood, m.one)
		if err := r.sleep(8 * time.Second); err != nil {
			return err
		}
		met := r.origin.came.Load() - came
		if met == 0 {
			return fmt.Errorf("no request came to the origin while it %s", m.what)
		}
		served, began := r.origin.served.Load(), time.Now()
		r.origin.be(well, 1)
		for r.origin.served.Load() == served {
			if time.Since(began) > backWithin {
				return fmt.Errorf("no visitor reaches the origin %v after it is well again", backWithin)
			}
			if err := r.sleep(20 * time.Millisecond); err != nil {
				return err
			}
		}
		r.note("it %s: %d requests came, the first good answer %s after", m.what, met, ms(time.Since(began)))
		if err := r.sleep(4 * time.Second); err != nil {
			return err
		}
	}
	return r.sleep(healed)
}

// checkFull: without a fault nobody is thrown out, and the room gets full. A place that
// rests until it may be given again is no free one, so full goes by places that are
// taken. Were these more than there are, the measure would be too kind.
func checkFull(r *run) error {
	var errs []error
	if n := r.loaded.SessionsLost; n > 0 {
		errs = append(errs, fmt.Errorf("%d visitors lost their session though nothing happened", n))
	}
	if !r.strict() {
		return errors.Join(errs...)
	}
	taken, limit := r.found.PeakTaken, r.Room.active
	r.note("%d places of %d taken, %d of them by passes and the guard after these", taken, limit, r.found.PeakResting)
	if taken < limit*97/100 {
		errs = append(errs, fmt.Errorf("of the room of %d never more than %d places were taken", limit, taken))
	}
	if taken > limit {
		errs = append(errs, fmt.Errorf("%d places of a room of %d count as taken: one is given again before the guard is over, or counted for too long", taken, limit))
	}
	return errors.Join(errs...)
}
