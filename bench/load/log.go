package load

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxLine bounds a line of a log, so that a file that is no log at all cannot
// fill the memory. Longer lines count as malformed.
const maxLine = 64 << 10

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
	br := bufio.NewReaderSize(r, maxLine)
	if magic, err := br.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("read log: gzip: %w", err)
		}
		defer zr.Close()
		br = bufio.NewReaderSize(zr, maxLine)
	}

	log := new(Log)
	var entries []entry
	for number := 1; ; number++ {
		line, err := readLine(br)
		switch {
		case errors.Is(err, io.EOF):
			return log, log.fill(entries)
		case errors.Is(err, errLongLine):
			log.malformed(number, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("read log: line %d: %w", number, err)
		case len(line) == 0:
			continue
		}
		e, err := parseLine(string(line))
		if err != nil {
			log.malformed(number, err)
			continue
		}
		if e.method == preflight {
			log.Skipped++
			continue
		}
		entries = append(entries, e)
	}
}

var errLongLine = fmt.Errorf("longer than %d bytes", maxLine)

// readLine returns the next line without its end. The line is valid until the
// next call. A line that is too long is skipped whole and gives errLongLine;
// the end of the source gives io.EOF.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = br.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, errLongLine
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func (l *Log) malformed(number int, err error) {
	l.Malformed++
	if l.FirstMalformed == nil {
		l.FirstMalformed = fmt.Errorf("line %d: %w", number, err)
	}
}

// fill sorts entries by time and deals them out to their clients.
func (l *Log) fill(entries []entry) error {
	if len(entries) == 0 {
		if l.FirstMalformed != nil {
			return fmt.Errorf("read log: no line is a request in common or combined format; %w", l.FirstMalformed)
		}
		return errors.New("read log: it is empty")
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	start := entries[0].at
	index := make(map[string]int)
	agents := make(map[string]string) // one copy of each, few browsers make most requests
	for _, e := range entries {
		i, ok := index[e.address]
		if !ok {
			i = len(l.Clients)
			index[e.address] = i
			l.Clients = append(l.Clients, Client{Address: e.address})
		}
		agent, ok := agents[e.agent]
		if !ok {
			agent, agents[e.agent] = e.agent, e.agent
		}
		c := &l.Clients[i]
		c.Requests = append(c.Requests, LogRequest{At: e.at.Sub(start), Method: e.method, Path: e.path, Agent: agent})
	}
	l.Requests = len(entries)
	l.Span = entries[len(entries)-1].at.Sub(start)
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
