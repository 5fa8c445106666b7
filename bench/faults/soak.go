//go:build linux

package main

import "time"

func soakScenario(d time.Duration) scenario {
	return scenario{Name: "soak", Fault: "all of these, mixed", Injected: "for " + d.String()}
}
