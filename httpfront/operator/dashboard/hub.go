package dashboard

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// hub is one subject that readers follow: the mesh, or one room. However many they are,
// what it says is asked for and encoded once.
type hub struct {
	// get returns what there is to say, and false if the subject is gone.
	get func(now time.Time) (any, bool)

	// current is nil until the first refresh. Readers load it without a lock: a state
	// does not change any more, but for being replaced.
	current atomic.Pointer[state]

	mu   sync.Mutex // guards the following, and is held by who stores current
	last document   // what current says
}

// state is what is said at one moment.
type state struct {
	version  uint64        // goes up by one with each state of a hub
	snapshot []byte        // an event with all of it
	delta    []byte        // an event that leads here from the state before; empty for the first
	gone     bool          // the subject is: snapshot and delta are empty
	replaced chan struct{} // closed when there is a next state
}

// refresh has the hub say what there is to say now. If that is what it says already,
// nothing happens.
func (h *hub) refresh(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.current.Load()
	next := &state{version: 1, replaced: make(chan struct{})}
	if before != nil {
		next.version = before.version + 1
	}
	v, ok := h.get(now)
	if !ok {
		if before == nil || !before.gone {
			next.gone = true
			h.storeLocked(next, document{})
		}
		return nil
	}
	d, err := cut(v)
	if err != nil {
		return err
	}
	if before != nil && !before.gone {
		change, any := d.since(h.last)
		if !any {
			return nil
		}
		if next.delta, err = event("delta", change); err != nil {
			return err
		}
	}
	whole, err := d.whole()
	if err != nil {
		return fmt.Errorf("encode a snapshot: %w", err)
	}
	if next.snapshot, err = event("snapshot", json.RawMessage(whole)); err != nil {
		return err
	}
	h.storeLocked(next, d)
	return nil
}

func (h *hub) storeLocked(next *state, d document) {
	h.last = d
	if before := h.current.Swap(next); before != nil {
		close(before.replaced)
	}
}

// after returns the event that leads a reader who has seen that state, nil for nothing
// yet, to s: the delta if it is the very next one, else the snapshot.
func (s *state) after(seen *state) []byte {
	if seen != nil && s.version == seen.version+1 && len(s.delta) > 0 {
		return s.delta
	}
	return s.snapshot
}

// event encodes a server-sent event. JSON has no line breaks in it, so one line of data
// is enough.
func event(name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an event %s: %w", name, err)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, b), nil
}
