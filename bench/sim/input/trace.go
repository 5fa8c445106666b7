package input

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/bench/accesslog"
)

// Bounds on a trace, beside those of any traffic.
const (
	maxCount   = 1_000_000_000 // requests in one minute
	maxClients = 5_000_000     // addresses of an access log, which are all held
	// maxCounts bounds the bytes of a file of counts: a line for each minute of
	// MaxTime is a tenth of it. The parser of lines would hold one without end.
	maxCounts = 16 << 20
)

const whatItMayBe = `a trace is either requests per minute, whose first line is "minute,requests", or an access log in common or combined format`

// ReadTrace reads recorded traffic, plain or compressed with gzip: requests per
// minute, of which each counts as a visitor ([Traffic.Scaled] makes fewer of
// them), or an access log, in which each client address is a visitor who comes
// with its first request. Time begins at the first minute or request. Errors
// name the file, by name, and line and column where they can.
func ReadTrace(r io.Reader, name string) (*Traffic, error) {
	src, err := accesslog.Decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	mark := []byte("\xef\xbb\xbf") // some editors put it in front of a text
	if head, _ := src.Peek(len(mark)); bytes.Equal(head, mark) {
		_, _ = src.Discard(len(mark))
	}
	if head, _ := src.Peek(len("minute")); bytes.EqualFold(head, []byte("minute")) {
		return readCounts(src, name)
	}
	return readLog(src, name)
}

// counts reads a file of requests per minute.
type counts struct {
	csv   *csv.Reader
	name  string
	spans []span
	start time.Time // the first minute; zero: none yet
}

func readCounts(src *bufio.Reader, name string) (*Traffic, error) {
	limited := &io.LimitedReader{R: src, N: maxCounts}
	c := counts{csv: csv.NewReader(limited), name: name}
	c.csv.ReuseRecord = true
	c.csv.FieldsPerRecord = -1 // checked here, with a clearer word
	for first := true; ; first = false {
		record, err := c.csv.Read()
		if limited.N <= 0 {
			return nil, fmt.Errorf("%s: larger than %d bytes, which is more than a line for each minute of %d days needs", name, maxCounts, int(MaxTime.Hours()/24))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, fmt.Errorf("%s:%d:%d: %w", name, bad.Line, bad.Column, bad.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		read := c.row
		if first {
			read = c.header
		}
		if err := read(record); err != nil {
			return nil, err
		}
	}
	t := &Traffic{spans: c.spans}
	if t.Len() == 0 {
		return nil, fmt.Errorf("%s: no minute has a request", name)
	}
	return t, nil
}

// at returns an error about a field of the record just read, counted from 0.
func (c *counts) at(field int, format string, args ...any) error {
	line, column := c.csv.FieldPos(field)
	return fmt.Errorf("%s:%d:%d: %s", c.name, line, column, fmt.Sprintf(format, args...))
}

func (c *counts) header(record []string) error {
	if !slices.Equal(record, []string{"minute", "requests"}) {
		return c.at(0, `the first line must be "minute,requests"`)
	}
	return nil
}

// minuteFormats are how a minute may be written.
var minuteFormats = [...]string{"2006-01-02 15:04:05", "2006-01-02 15:04", time.RFC3339}

func (c *counts) row(record []string) error {
	if len(record) != 2 {
		return c.at(min(len(record)-1, 2), "%d fields; a line is a minute and a number of requests, such as 1998-07-07 18:00:00,21835", len(record))
	}
	minute, ok := parseMinute(record[0])
	if !ok {
		return c.at(0, "%.40q is not a whole minute such as 1998-07-07 18:00:00", record[0])
	}
	n, err := strconv.ParseUint(record[1], 10, 64)
	if err != nil || n > maxCount {
		return c.at(1, "%.40q is not a number of requests: a whole number from 0 to %d", record[1], maxCount)
	}
	if c.start.IsZero() {
		c.start = minute
	}
	from := minute.Sub(c.start)
	if last := len(c.spans) - 1; last >= 0 && from <= c.spans[last].from {
		return c.at(0, "%s does not come after the minute before it", record[0])
	}
	if from >= MaxTime {
		return c.at(0, "%s is more than %d days after the first minute", record[0], int(MaxTime.Hours()/24))
	}
	c.spans = append(c.spans, span{from: from, length: time.Minute, visitors: int(n)})
	return nil
}

func parseMinute(s string) (time.Time, bool) {
	for _, format := range minuteFormats {
		if at, err := time.Parse(format, s); err == nil {
			return at, at.Equal(at.Truncate(time.Minute))
		}
	}
	return time.Time{}, false
}

// readLog reads an access log. Only the second of each client's first request is
// kept, because a log knows no more.
func readLog(src *bufio.Reader, name string) (*Traffic, error) {
	lines, err := accesslog.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := new(Traffic)
	first := make(map[string]int64) // address → seconds since 1970
	for {
		e, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if bad, ok := errors.AsType[*accesslog.Malformed](err); ok {
			if t.SkippedLines++; t.Skipped == nil {
				t.Skipped = fmt.Errorf("%s:%d:%d: %w", name, bad.Line, bad.Column, bad.Reason)
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if e.Method == accesslog.Preflight {
			continue
		}
		if at, known := first[e.Address]; !known || e.At.Unix() < at {
			first[e.Address] = e.At.Unix()
		}
		if len(first) > maxClients {
			return nil, fmt.Errorf("%s: more than %d client addresses", name, maxClients)
		}
	}
	switch {
	case len(first) == 0 && t.Skipped != nil:
		return nil, fmt.Errorf("%w; %s", t.Skipped, whatItMayBe)
	case len(first) == 0:
		return nil, fmt.Errorf("%s: there is no request in it; %s", name, whatItMayBe)
	}
	seconds := slices.Sorted(maps.Values(first))
	if days := (seconds[len(seconds)-1] - seconds[0]) / 86400; days >= int64(MaxTime.Hours()/24) {
		return nil, fmt.Errorf("%s: its visitors come over %d days; at most %d are allowed", name, days, int(MaxTime.Hours()/24))
	}
	for _, s := range seconds {
		from := time.Duration(s-seconds[0]) * time.Second
		if last := len(t.spans) - 1; last < 0 || t.spans[last].from != from {
			t.spans = append(t.spans, span{from: from, length: time.Second})
		}
		t.spans[len(t.spans)-1].visitors++
	}
	return t, nil
}
