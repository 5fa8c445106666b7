package history

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Column is one figure of a point, as it is named in JSON and in CSV.
type Column struct {
	Name string // with its unit, where that is not a number of something
	Help string
	of   func(*Point) (float64, bool) // reports whether there is such a figure
}

// Columns returns all figures of a point in the order in which they are written. Before
// them stands "time", when the step began, as RFC 3339 in UTC.
func Columns() []Column { return append([]Column(nil), columns...) }

var columns = append(append([]Column{
	{"minutes", "minutes of the step that were recorded", always(func(p *Point) float64 { return float64(p.Minutes) })},
	{"nodes", "nodes that recorded them, in the minute with the fewest", always(func(p *Point) float64 { return float64(p.Nodes) })},
	{"active_users_avg", "visitors inside, average", seen(func(p *Point) float64 { return p.ActiveAvg })},
	{"active_users_max", "visitors inside, most", seen(func(p *Point) float64 { return float64(p.ActiveMax) })},
	{"waiting_users_avg", "visitors in line, average", seen(func(p *Point) float64 { return p.WaitingAvg })},
	{"waiting_users_max", "visitors in line, most", seen(func(p *Point) float64 { return float64(p.WaitingMax) })},
	{"total_active_users", "the limit at the end of the step", seen(func(p *Point) float64 { return float64(p.TotalActiveUsers) })},
	{"new_users_per_minute", "the limit at the end of the step", seen(func(p *Point) float64 { return float64(p.NewUsersPerMinute) })},
	{"new_users", "visitors who came", always(func(p *Point) float64 { return float64(p.Counts.New) })},
	{"admitted_users", "visitors who were let in", always(func(p *Point) float64 { return float64(p.Counts.Admitted) })},
	{"new_users_avg_per_minute", "visitors who came, in a recorded minute", perMinute(func(c *Counts) uint64 { return c.New })},
	{"admitted_users_avg_per_minute", "visitors who were let in, in a recorded minute", perMinute(func(c *Counts) uint64 { return c.Admitted })},
	{"ended_sessions", "sessions that ended", always(func(p *Point) float64 { return float64(p.Counts.Ended) })},
	{"revoked_sessions", "of those, ended by the site", always(func(p *Point) float64 { return float64(p.Counts.Revoked) })},
}, percentiles("wait", "how long visitors waited who had to and were let in", func(p *Point) *Histogram { return &p.Waits })...),
	percentiles("time_on_site", "how long sessions were that ended", func(p *Point) *Histogram { return &p.Stays })...)

func always(f func(*Point) float64) func(*Point) (float64, bool) {
	return func(p *Point) (float64, bool) { return f(p), true }
}

func seen(f func(*Point) float64) func(*Point) (float64, bool) {
	return func(p *Point) (float64, bool) { return f(p), p.Seen }
}

func perMinute(f func(*Counts) uint64) func(*Point) (float64, bool) {
	return always(func(p *Point) float64 { return float64(f(&p.Counts)) / float64(p.Minutes) })
}

// percentiles returns the columns of a histogram.
func percentiles(name, help string, of func(*Point) *Histogram) []Column {
	var all []Column
	for _, n := range [...]int{50, 75, 95, 99} {
		all = append(all, Column{
			fmt.Sprintf("%s_p%d_seconds", name, n), fmt.Sprintf("%s: %d %% no longer than this", help, n),
			func(p *Point) (float64, bool) {
				d, ok := of(p).Percentile(float64(n) / 100)
				return d.Seconds(), ok
			},
		})
	}
	return append(all, Column{name + "_percentile_error_ratio", "how far these may be off, as a part of the true one", func(p *Point) (float64, bool) {
		part, _ := of(p).Error()
		return part, of(p).Count() > 0
	}})
}

// AppendJSON appends points as an array of objects. A figure that there is not, such as the
// wait of nobody, is null.
func AppendJSON(dst []byte, points []Point) []byte {
	dst = append(dst, '[')
	for i := range points {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"time":"`...)
		dst = append(points[i].At.AppendFormat(dst, time.RFC3339), '"')
		for _, c := range columns {
			dst = append(append(append(dst, `,"`...), c.Name...), `":`...)
			dst = appendFigure(dst, c, &points[i], "null")
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// AppendCSV appends points as a table with a header (RFC 4180). A figure that there is not
// is an empty field.
func AppendCSV(dst []byte, points []Point) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	w := csv.NewWriter(buf)
	w.UseCRLF = true
	row := []string{"time"}
	for _, c := range columns {
		row = append(row, c.Name)
	}
	err := w.Write(row)
	for i := range points {
		row = append(row[:0], points[i].At.Format(time.RFC3339))
		for _, c := range columns {
			row = append(row, string(appendFigure(nil, c, &points[i], "")))
		}
		if err == nil {
			err = w.Write(row)
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("write history as CSV: %w", err)
	}
	return buf.Bytes(), nil
}

// appendFigure rounds to five digits after the point; no figure is known better.
func appendFigure(dst []byte, c Column, p *Point, none string) []byte {
	v, ok := c.of(p)
	if !ok {
		return append(dst, none...)
	}
	return strconv.AppendFloat(dst, math.Round(v*1e5)/1e5, 'f', -1, 64)
}
