package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/accesslog"
)

// Log is a recorded access log, ready to be replayed. The zero value is empty.
// It is not changed by a run, and several runs may share it.
type Log struct {
	// Clients are the visitors, in the order of their first requests.
	Clients []Client
	// Requests is how many requests they hold together.
	Requests int
	// Span is the time from the first request to the last.
	Span time.Duration
	// Skipped counts the requests that are left out because no visitor makes
	// them by choice: OPTIONS.
	Skipped int
	// Malformed counts the lines that are no request; FirstMalformed says what
	// is wrong with the first of them, and is nil if there is none.
	Malformed      int
	FirstMalformed error
}

// Client is one client address of a log.
type Client struct {
	Address  string
	Requests []LogRequest // oldest first, never empty
}

// LogRequest is one request of a log.
type LogRequest struct {
	At     time.Duration // after the first request of the log
	Method string
	Path   string // with the query
	Agent  string // User-Agent; empty if the log does not have it
}

// ReadLog reads a log in common or combined format, plain or compressed with
// gzip. Lines need not be in order of time: servers write them when a request
// ends. Lines that are no request are counted and left out. It fails when the
// source does, or when nothing in it is a request; the error names the line.
func ReadLog(r io.Reader) (*Log, error) {
	lines, err := accesslog.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	log := new(Log)
	var entries []accesslog.Entry
	for {
		e, err := lines.Next()
		if m, ok := errors.AsType[*accesslog.Malformed](err); ok {
			log.malformed(m)
			continue
		}
		switch {
		case errors.Is(err, io.EOF):
			return log, log.fill(entries)
		case err != nil:
			return nil, fmt.Errorf("read log: %w", err)
		case e.Method == accesslog.Preflight:
			log.Skipped++
		default:
			entries = append(entries, e)
		}
	}
}

func (l *Log) malformed(m *accesslog.Malformed) {
	l.Malformed++
	if l.FirstMalformed == nil {
		l.FirstMalformed = m
	}
}

// fill sorts entries by time and deals them out to their clients.
func (l *Log) fill(entries []accesslog.Entry) error {
	if len(entries) == 0 {
		if l.FirstMalformed != nil {
			return fmt.Errorf("read log: no line is a request in common or combined format; %w", l.FirstMalformed)
		}
		return errors.New("read log: it is empty")
	}
	slices.SortStableFunc(entries, func(a, b accesslog.Entry) int { return a.At.Compare(b.At) })
	start, index := entries[0].At, make(map[string]int)
	agents := make(map[string]string) // one copy of each, few browsers make most requests
	for _, e := range entries {
		i, ok := index[e.Address]
		if !ok {
			i = len(l.Clients)
			index[e.Address] = i
			l.Clients = append(l.Clients, Client{Address: e.Address})
		}
		agent, ok := agents[e.Agent]
		if !ok {
			agent, agents[e.Agent] = e.Agent, e.Agent
		}
		c := &l.Clients[i]
		c.Requests = append(c.Requests, LogRequest{At: e.At.Sub(start), Method: e.Method, Path: e.Path, Agent: agent})
	}
	l.Requests = len(entries)
	l.Span = entries[len(entries)-1].At.Sub(start)
	return nil
}

// First returns the part of l that ends where client n+1 would come: the first
// n clients and what they asked for until then. A cut by clients alone would
// not be shorter, since some clients return until the very end.
func (l *Log) First(n int) *Log {
	if n >= len(l.Clients) {
		return l
	}
	n = max(n, 0)
	end := l.Clients[n].Requests[0].At
	part := &Log{Skipped: l.Skipped, Malformed: l.Malformed, FirstMalformed: l.FirstMalformed}
	for _, c := range l.Clients[:n] {
		keep, _ := slices.BinarySearchFunc(c.Requests, end, func(r LogRequest, end time.Duration) int {
			return cmp.Compare(r.At, end)
		})
		// Clients who came in the same second as the next one keep the request
		// that they came with.
		keep = max(keep, 1)
		part.Clients = append(part.Clients, Client{Address: c.Address, Requests: c.Requests[:keep:keep]})
		part.Requests += keep
		part.Span = max(part.Span, c.Requests[keep-1].At)
	}
	return part
}
