package rig

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Answers is what wrk has got. Its latencies are of the closed model, in which a server that stalls is asked less.
type Answers struct {
	All, Other int     // requests; of those, answered with no 2xx or 3xx
	Rate       float64 // requests a second
}

// Wrk has wrk ask url, with 64 connections from the core of the load.
func Wrk(ctx context.Context, url string, lasts time.Duration) (Answers, error) {
	line := OfLoad.Pinned("wrk", "-t1", "-c64", fmt.Sprintf("-d%ds", max(1, int(lasts.Seconds()))), url)
	out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput()
	if err != nil {
		return Answers{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	return parseWrk(string(out))
}

func parseWrk(out string) (a Answers, err error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		switch {
		case len(f) > 2 && f[1] == "requests" && f[2] == "in":
			a.All, _ = strconv.Atoi(f[0])
		case len(f) == 2 && f[0] == "Requests/sec:":
			a.Rate, _ = strconv.ParseFloat(f[1], 64)
		case len(f) > 2 && f[0] == "Non-2xx":
			a.Other, _ = strconv.Atoi(f[len(f)-1])
		}
	}
	if a.All == 0 {
		return a, fmt.Errorf("wrk: %s", out)
	}
	return a, nil
}
