package input

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxCount bounds the requests of one minute.
const maxCount = 1_000_000_000

// ReadTrace reads recorded traffic: a line "minute,requests", then a line for each
// minute, such as "1998-07-07 18:00:00,21835". Each request counts as a visitor
// ([Traffic.Scaled] makes fewer of them). Time begins at the first minute. Errors
// name the file, by name, and the line where they can.
func ReadTrace(r io.Reader, name string) (*Traffic, error) {
	c := counts{traffic: new(Traffic)}
	lines, n := bufio.NewScanner(r), 0
	for lines.Scan() {
		n++
		if err := c.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	if c.traffic.Len() == 0 {
		return nil, fmt.Errorf("%s: no minute has a request", name)
	}
	return c.traffic, nil
}

// counts reads a file of requests per minute.
type counts struct {
	traffic *Traffic
	headed  bool
	start   time.Time // the first minute; zero: none yet
}

func (c *counts) line(text string) error {
	if !c.headed {
		if text != "minute,requests" {
			return fmt.Errorf(`%.40q: the first line must be "minute,requests"`, text)
		}
		c.headed = true
		return nil
	}
	at, requests, _ := strings.Cut(text, ",")
	minute, err := time.Parse(time.DateTime, at)
	if err != nil || !minute.Equal(minute.Truncate(time.Minute)) {
		return fmt.Errorf("%.40q is not a whole minute such as 1998-07-07 18:00:00", at)
	}
	n, err := strconv.ParseUint(requests, 10, 64)
	if err != nil || n > maxCount {
		return fmt.Errorf("%.40q is not a number of requests: a whole number from 0 to %d", requests, maxCount)
	}
	if c.start.IsZero() {
		c.start = minute
	}
	from, t := minute.Sub(c.start), c.traffic
	if from < t.Span() {
		return fmt.Errorf("%s does not come after the minute before it", at)
	}
	if from >= MaxTime {
		return fmt.Errorf("%s is more than %d days after the first minute", at, int(MaxTime.Hours()/24))
	}
	t.spans = append(t.spans, span{from: from, length: time.Minute, visitors: int(n)})
	return nil
}
