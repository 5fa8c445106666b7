package transport

import (
	"errors"
	"io"
	"sync"

	"github.com/quic-go/quic-go"
)

// messageBatch is how many bytes of messages are written at once.
const messageBatch = 64 << 10

// post holds the outboxes of all peers. Its lock may be held while that of an
// outbox is taken, never the other way round.
type post struct {
	m *Mesh

	mu    sync.Mutex // guards the following
	boxes map[PeerID]*outbox
}

// box returns the outbox of a peer, and makes it if need be.
func (p *post) box(id PeerID) *outbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boxLocked(id)
}

func (p *post) boxLocked(id PeerID) *outbox {
	o := p.boxes[id]
	if o == nil {
		o = newOutbox(p.m.cfg.Limits.QueueLen, p.m.cfg.Limits.QueueBytes)
		p.boxes[id] = o
	}
	return o
}

// put queues a message. It holds the lock throughout, so that the box is not
// closed in between.
func (p *post) put(id PeerID, key slotKey, body []byte) (replaced bool, dropped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.boxLocked(id).put(key, body)
}

// drop forgets the messages for a peer that is gone.
func (p *post) drop(id PeerID) {
	p.mu.Lock()
	o := p.boxes[id]
	p.mu.Unlock()
	if o != nil {
		p.m.count.messagesDropped.Add(uint64(o.clear()))
	}
}

// forget removes the box of a peer that is neither a member nor connected.
func (p *post) forget(id PeerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.boxes[id]; o != nil {
		p.m.count.messagesDropped.Add(uint64(o.close()))
		delete(p.boxes, id)
	}
}

func (p *post) depth() (n, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.boxes {
		on, ob := o.depth()
		n, bytes = n+on, bytes+ob
	}
	return n, bytes
}

// Send tells a peer something without waiting, and without a promise that it
// arrives. A message still queued under the same kind and slot is replaced in
// its place; give messages that must not replace each other different slots.
// When the queue is full the oldest goes. msg must not be changed after the
// call, and may be shared between calls. Messages over [MaxMessage] and those
// to unknown, failed or left peers are dropped and counted.
func (m *Mesh) Send(to PeerID, kind uint8, slot uint64, msg []byte) {
	l := m.links.get(to)
	addr, alive := m.members.alive(to)
	if len(msg) > MaxMessage || (l == nil && !alive) {
		m.count.messagesDropped.Add(1)
		return
	}
	replaced, dropped := m.post.put(to, slotKey{kind, slot}, msg)
	if replaced {
		m.count.messagesReplaced.Add(1)
	}
	m.count.messagesDropped.Add(uint64(dropped))
	if l == nil {
		m.links.nudge(to, addr, nil)
	}
}

// sendMessages empties the outbox of the peer into one stream, opened with
// the first message. While the peer does not read, QUIC's flow control holds
// the write, and the outbox keeps only what is newest.
func (l *link) sendMessages() {
	box := l.m.post.box(l.id)
	defer func() { box.signal() }() // a link that comes after this one must not miss a token taken here
	var (
		stream *quic.SendStream
		buf    []byte
	)
	for {
		select {
		case <-l.conn.Context().Done():
			return
		case <-l.retired:
			if stream != nil {
				_ = stream.Close()
			}
			return
		case <-box.wake:
		}
		if box.closed() {
			box = l.m.post.box(l.id)
		}
		var err error
		if stream, buf, err = l.drain(box, stream, buf); err != nil {
			return
		}
	}
}

// drain writes what is in box, and returns the stream and buffer to go on
// with. An error means that the connection is gone.
func (l *link) drain(box *outbox, stream *quic.SendStream, buf []byte) (*quic.SendStream, []byte, error) {
	for !l.isRetired() {
		buf = buf[:0]
		if stream == nil {
			buf = append(buf, streamMessage)
		}
		var n int
		if buf, n = box.take(buf, messageBatch); n == 0 {
			break
		}
		err := error(nil)
		if stream == nil {
			stream, err = l.conn.OpenUniStreamSync(l.conn.Context())
		}
		if err == nil {
			_, err = stream.Write(buf)
		}
		if err != nil {
			l.m.count.messagesDropped.Add(uint64(n))
			if l.dead() {
				return nil, nil, err
			}
			stream = nil // the peer refused this stream; a new one may do
			continue
		}
		l.touch()
		l.m.count.messagesOut.Add(uint64(n))
		if cap(buf) > 2*messageBatch {
			buf = nil // grown by one big message
		}
	}
	return stream, buf, nil
}

// acceptMessages reads the peer's messages.
func (l *link) acceptMessages() {
	for {
		s, err := l.conn.AcceptUniStream(l.conn.Context())
		if err != nil {
			return
		}
		if !l.m.group.Go(func() { l.readMessages(s) }) {
			return
		}
	}
}

func (l *link) readMessages(s *quic.ReceiveStream) {
	err := l.readMessagesFrom(s)
	s.CancelRead(0)
	if !errors.Is(err, io.EOF) {
		l.blame(err)
	}
}

// readMessagesFrom reads until the stream ends, and returns why it did:
// io.EOF when the peer closed it between two messages.
func (l *link) readMessagesFrom(s *quic.ReceiveStream) error {
	var kind [1]byte
	if err := readHead(s, kind[:]); err != nil {
		return err
	}
	if kind[0] != streamMessage {
		return malformed("one-way stream of kind %d", kind[0])
	}
	for {
		kind, body, err := readMessage(s)
		if err != nil {
			return err
		}
		l.touch()
		l.m.count.messagesIn.Add(1)
		l.m.onMessage(l, kind, body)
	}
}

// onMessage hands a message to the owner of the mesh. A panic there costs
// this one message.
func (m *Mesh) onMessage(l *link, kind uint8, body []byte) {
	if m.cfg.OnMessage == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			m.panicked("message handler", r)
		}
	}()
	m.cfg.OnMessage(m.members.describe(l), kind, body)
}
