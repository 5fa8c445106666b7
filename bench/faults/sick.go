//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"
)

func sickOrigin(r *run) error {
	for mood, what := range map[int32]string{fails: "answers with 500", hangs: "hangs", slow: "is slow"} {
		r.mark("the origin %s", what)
		r.origin.mood.Store(mood)
		if err := r.sleep(8 * time.Second); err != nil {
			return err
		}
		r.origin.mood.Store(well)
		r.say("the origin is well")
		if err := r.sleep(4 * time.Second); err != nil {
			return err
		}
	}
	served := r.origin.served.Load()
	if err := r.sleep(healed); err != nil {
		return err
	}
	if r.origin.served.Load() == served {
		return errors.New("no visitor reaches the origin any more")
	}
	return nil
}

// checkFull: without a fault nobody is thrown out, and the room gets full.
func checkFull(r *run) error {
	var errs []error
	if n := r.loaded.SessionsLost; n > 0 {
		errs = append(errs, fmt.Errorf("%d visitors lost their session though nothing happened", n))
	}
	if r.strict() && r.found.Peak < r.Room.active*97/100 {
		errs = append(errs, fmt.Errorf("the room of %d was never fuller than %d", r.Room.active, r.found.Peak))
	}
	return errors.Join(errs...)
}
