package differential

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// request is what is sent on one connection. {id} in it is replaced by a name of its own.
type request struct {
	raw   []byte
	body  string // that every server reads, where whole says that there is only one reading
	whole bool
}

// line is what a site says of a request that it has served.
type line struct {
	page, host, id, body string
	late                 bool // it is of a request before, to which there was an answer
}

// outcome is what has become of a request.
type outcome string

// The outcomes.
const (
	served  outcome = "served"  // the site has
	queued  outcome = "queued"  // it went to the room
	refused outcome = "refused" // anything else
)

// patience is how long a connection may last.
const patience = 10 * time.Second

// try sends one request through the front and returns what has become of it, and what is wrong with that. Answers
// that are missing are waited for once more.
func (s *site) try(ctx context.Context, q *request) (o outcome, wrong, listed []string, err error) {
	if s.way.quiet == 0 {
		return s.tryOnce(ctx, q, 0)
	}
	o, wrong, listed, err = s.tryOnce(ctx, q, s.way.quiet)
	if len(wrong) == 1 && strings.HasPrefix(wrong[0], unanswered) {
		return s.tryOnce(ctx, q, unhurried)
	}
	return o, wrong, listed, err
}

func (s *site) tryOnce(ctx context.Context, q *request, quiet time.Duration) (o outcome, wrong, listed []string, err error) {
	s.n++
	id := fmt.Sprintf("q%07d", s.n)
	got, late := say(ctx, s.front, []byte(named(string(q.raw), id)), quiet)
	lines, err := s.since(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	answers := len(finalAnswer.FindAllString(got, -1))
	if answers == 0 && quiet > 0 && len(lines) == 1 && lines[0].id == id {
		answers = 1 // it was broken off within its body, of which the site has seen the beginning
	}
	if s.owed[id] = max(answers, 1); quiet > 0 {
		s.owed[id]++ // of another request in it, whose answer was not waited for
	}
	for i, l := range lines {
		// Some say so after they have answered, and a visitor may be refused while the site reads on.
		of := l.id[:min(len(l.id), len(id))]
		lines[i].late = of != id && s.owed[of] > 0
		s.owed[of]--
	}
	wrong, listed = verdict(q, id, lines, answers, slices.Concat(s.kind.known, s.way.known))
	if late != nil {
		wrong = append(wrong, late.Error())
	}
	switch {
	case len(lines) > 0:
		return served, wrong, listed, nil
	case waitingState.MatchString(got):
		return queued, wrong, listed, nil
	}
	return refused, wrong, listed, nil
}

func named(text, id string) string { return strings.ReplaceAll(text, "{id}", id) }

// finalAnswer is what an answer begins with that is not only a word on the way.
var finalAnswer = regexp.MustCompile(`HTTP/1\.[01] [2-5]\d\d `)

// waitingState is a field of the answer of who has to wait. Proxies change its case.
var waitingState = regexp.MustCompile(`(?i)\r\nRopeline-State: waiting\r\n`)

// unanswered begins what is wrong where a site has read more than the visitor sent, or an answer has been lost.
const unanswered = "more requests than answers: "

// verdict returns what is wrong with the lines that a site wrote after a request, to which there were so many
// answers, and what of it is listed.
func verdict(q *request, id string, lines []line, answers int, known []exception) (wrong, listed []string) {
	for _, l := range lines {
		if l.late {
			answers++
		}
		said := ""
		switch {
		case l.page == "tickets":
			said = fmt.Sprintf("the site served its protected page: %+v", l)
		case l.late, l.page == "", l.page == "-": // of what nginx and Apache refuse by its first line, they have no name
			continue
		case !strings.HasPrefix(l.id, id):
			said = fmt.Sprintf("the site read a request that nobody sent: %+v", l)
		case q.whole && l.body != "-" && l.body != hex.EncodeToString([]byte(named(q.body, id))):
			said = fmt.Sprintf("the site read another body: %+v", l)
		default:
			continue
		}
		if reason := exceptionOf(known, q, l); reason != "" {
			listed = append(listed, reason)
			if !strings.HasPrefix(l.id, "q") {
				answers++ // it was one without a head
			}
			continue
		}
		wrong = append(wrong, said)
	}
	if len(lines) > answers {
		wrong = append(wrong, fmt.Sprintf(unanswered+"the site read %d, the visitor got %d: %+v", len(lines), answers, lines))
	}
	return wrong, listed
}

func exceptionOf(known []exception, q *request, l line) string {
	for _, e := range known {
		if e.is(q, l) {
			return e.reason
		}
	}
	return ""
}

// How long somebody is heard out who answers only as long as the connection is whole.
const (
	silence   = 300 * time.Millisecond // until the first answer
	unhurried = time.Second            // after an answer, where one was missing before
)

// say sends bytes, ends its half of the connection, and returns all that comes back. It ends its half at once if quiet
// is 0, and else when nothing has come for that long after an answer.
func say(ctx context.Context, addr string, b []byte, quiet time.Duration) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	c := conn.(*net.TCPConn)
	end := time.Now().Add(patience)
	if err := c.SetDeadline(end); err != nil {
		return "", err
	}
	written := make(chan struct{})
	go func() { // ends with the connection
		defer close(written)
		if _, err := c.Write(b); err == nil && quiet == 0 {
			_ = c.CloseWrite()
		}
	}()
	got, err := hear(c, quiet, end)
	_ = c.Close()
	<-written
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "", fmt.Errorf("%s: %w; it has said %.200q to %.300q", addr, err, got, b)
	}
	return string(got), nil // that it was reset is no less an answer
}

// hear reads until the connection ends. Where quiet is not 0 it ends our half when nobody speaks any more.
func hear(c *net.TCPConn, quiet time.Duration, end time.Time) (got []byte, err error) {
	part := make([]byte, 16<<10)
	for open := quiet > 0; ; {
		until := end
		if open && finalAnswer.Match(got) {
			until = time.Now().Add(quiet)
		} else if open {
			until = time.Now().Add(max(quiet, silence))
		}
		if err := c.SetReadDeadline(until); err != nil {
			return got, err
		}
		n, err := c.Read(part)
		got = append(got, part[:n]...)
		if e, ok := errors.AsType[net.Error](err); open && ok && e.Timeout() {
			open = false
			_ = c.CloseWrite()
			continue
		}
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

// asked asks the site itself for a path of the host that the room is for. It is an error if it does not say that it
// has served that page: what it served through a node would tell nothing.
func (s *site) asked(ctx context.Context, path, page string) error {
	if _, err := say(ctx, s.addr, []byte("GET "+path+" HTTP/1.1\r\nHost: "+protectedHost+"\r\nX-Id: asked\r\nConnection: close\r\n\r\n"), 0); err != nil {
		return err
	}
	var lines []line
	var err error
	if !rig.Until(ctx, patience, time.Millisecond, func() bool {
		lines, err = s.since(ctx)
		return err != nil || len(lines) > 0
	}) || err != nil || len(lines) != 1 || lines[0].page != page {
		return fmt.Errorf("%s served %+v for %s, want %s (%v)", s.kind.name, lines, path, page, err)
	}
	return nil
}

// since returns what the site has served since it was called last. To know that it has said everything, it asks the
// site itself for one thing more.
func (s *site) since(ctx context.Context) (lines []line, err error) {
	s.n++
	mark := fmt.Sprintf("m%07d", s.n)
	if _, err := say(ctx, s.addr, []byte("GET /mark HTTP/1.1\r\nHost: mark.example\r\nX-Id: "+mark+"\r\nConnection: close\r\n\r\n"), 0); err != nil {
		return nil, err
	}
	var part string
	next := func() bool {
		part, err = s.log.ReadString('\n')
		s.half += part
		return err == nil
	}
	for {
		if s.half = ""; !rig.Until(ctx, patience, 100*time.Microsecond, next) {
			return nil, fmt.Errorf("%s does not say that it has served %s: %w; it said last:\n%s", s.kind.name, mark, err, s.said())
		}
		// What a program says of an error may stand before it, without the end of its line.
		f := strings.Split(strings.TrimSuffix(s.half[max(0, strings.LastIndex(s.half, "served\t")):], "\n"), "\t")
		switch {
		case len(f) != 5 || f[0] != "served": // said of something else
		case f[3] == mark:
			return lines, nil
		case f[2] == checkedHost: // what the node asks by itself
		default:
			lines = append(lines, line{page: f[1], host: f[2], id: f[3], body: f[4]})
		}
	}
}
