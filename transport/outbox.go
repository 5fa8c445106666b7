package transport

import "sync"

// slotKey names what a message is the newest state of.
type slotKey struct {
	kind uint8
	slot uint64
}

type queued struct {
	key  slotKey
	body []byte // nil once taken or dropped
}

// outbox holds the messages that wait for one peer. A newer message takes the
// place in line of an older one with the same key, so that what changes often
// is not pushed back for ever. When the box is full the oldest message goes:
// it is the one most likely to be out of date.
type outbox struct {
	wake chan struct{} // one token when there is something to take

	mu       sync.Mutex // guards the following
	line     []*queued  // oldest first
	byKey    map[slotKey]*queued
	bytes    int // sum of len(body) in line
	maxLen   int
	maxBytes int
	gone     bool // the peer was forgotten; another box takes its messages
}

func newOutbox(maxLen, maxBytes int) *outbox {
	return &outbox{wake: make(chan struct{}, 1), byKey: map[slotKey]*queued{}, maxLen: maxLen, maxBytes: maxBytes}
}

// put queues body, which must not be changed afterwards. It reports whether
// an older message was replaced and how many had to go.
func (o *outbox) put(key slotKey, body []byte) (replaced bool, dropped int) {
	o.mu.Lock()
	if q := o.byKey[key]; q != nil {
		o.bytes += len(body) - len(q.body)
		q.body, replaced = body, true
	} else {
		q := &queued{key: key, body: body}
		o.line = append(o.line, q)
		o.byKey[key] = q
		o.bytes += len(body)
	}
	for len(o.line) > o.maxLen || (o.bytes > o.maxBytes && len(o.line) > 1) {
		o.popLocked()
		dropped++
	}
	o.mu.Unlock()
	o.signal()
	return replaced, dropped
}

// take removes messages from the front, at least one if there is any, and no
// more than fit into limit bytes beyond the first, and appends them to dst in
// their wire form. It returns how many it took.
func (o *outbox) take(dst []byte, limit int) ([]byte, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for len(o.line) > 0 {
		next := o.line[0]
		if n > 0 && len(dst)+messageHead+len(next.body) > limit {
			break
		}
		dst = appendMessage(dst, next.key.kind, next.body)
		o.popLocked()
		n++
	}
	return dst, n
}

// popLocked removes the oldest message.
func (o *outbox) popLocked() {
	q := o.line[0]
	o.line[0] = nil // the array lives on under the shortened slice
	o.line = o.line[1:]
	delete(o.byKey, q.key)
	o.bytes -= len(q.body)
}

// clear drops everything and returns how many messages that were.
func (o *outbox) clear() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.line)
	o.line, o.bytes = nil, 0
	clear(o.byKey)
	return n
}

// close ends the box for good and returns how many messages were in it.
func (o *outbox) close() int {
	n := o.clear()
	o.mu.Lock()
	o.gone = true
	o.mu.Unlock()
	o.signal()
	return n
}

func (o *outbox) closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// depth returns the messages and bytes waiting.
func (o *outbox) depth() (n, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.line), o.bytes
}

// signal leaves a token for whoever empties the box.
func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
