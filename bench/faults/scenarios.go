//go:build linux

package faults

import (
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/load"
)

// Two sites, as most meshes have, and one that is larger than the other.
var five = []string{"a1", "a2", "a3", "b1", "b2"}

// full is a room that is always full, and a crowd that browses: sessions are
// renewed, visitors wait, some of them leave.
var (
	fullRoom  = roomArgs{active: 200, perMinute: 2100, session: 3 * time.Second}
	fullCrowd = load.Crowd{Burst: 250, Spread: 3 * time.Second, Rate: 50, Stay: 4 * time.Second, Think: 800 * time.Millisecond, Patience: 15 * time.Second}
)

// busyRoom is always full as well, and its visitors wait for long: who loses a place, or a
// session, notices.
var (
	busyRoom  = roomArgs{active: 300, perMinute: 2100, session: 30 * time.Second}
	busyCrowd = load.Crowd{Burst: 500, Spread: 3 * time.Second, Rate: 10, Stay: 15 * time.Second, Think: 2 * time.Second, Patience: 2 * time.Minute}
)

// wide is a room with a place for everybody, and a crowd of visitors who ask
// once: so each request is a ticket, and a pause in their flow shows.
var (
	wideRoom  = roomArgs{active: 20_000, perMinute: 300_000, session: 2 * time.Second, once: true}
	wideCrowd = load.Crowd{Rate: 400}
)

// long is how long a cut or a pause lasts that is meant to outlast every lease.
const long = 20 * time.Second

// scenarios returns all of them, in order.
func scenarios() []scenario {
	all := []scenario{
		{Name: "F1", Fault: "uneven load, nothing else", Injected: "seven of eight visitors ask one node of five", Targets: append([]string{"a2", "b1", "b2", "a3"}, slices.Repeat([]string{"a1"}, 28)...), Length: 40 * time.Second, Check: checkFull},
		{Name: "F1b", Fault: "all load at one site", Injected: "nobody asks the other site", Targets: []string{"a1", "a2", "a3"}, Length: 40 * time.Second, Check: checkFull},
		{Name: "F2", Fault: "1, 5 and 20 % of packets lost, 5 % doubled, 5 % late by 100 ms, 20 ms of delay", Injected: "UDP proxies, every link", Script: bendLinks},
		{Name: "F3", Fault: "the sites cut apart, then healed", Injected: "link between the sites taken down", Cuts: true, Script: cutSites(long)},
		{Name: "F3b", Fault: "a node cut off inside its site, then healed", Injected: "its port at the switch taken down", Cuts: true, Script: cutNode(long)},
		{Name: "F3c", Fault: "the site's counter cut off inside its site, then healed", Injected: "its port at the switch taken down", Cuts: true, Script: cutCounter(long)},
		{Name: "F4", Fault: "one direction of one link lost: who is sent to does not hear", Injected: "blackhole route", Cuts: true, Script: cutOneWay(long)},
		{Name: "F5", Fault: "the site's counter killed", Injected: "kill −9, restarted after 2 s; each trial with a new mesh", Room: wideRoom, Crowd: wideCrowd, Script: killCounter, Check: checkFlow, Trials: 3},
		{Name: "F5b", Fault: "any node killed every few seconds, room full", Injected: "kill −9, restarted after 0 to 3 s", Script: killAny},
		{Name: "F5c", Fault: "all nodes killed at once", Injected: "kill −9, all restarted", Script: killAll},
		{Name: "F6", Fault: "the site's counter stopped, then woken", Injected: "SIGSTOP for 5 s, then for " + long.String() + ", SIGCONT", Script: pauseCounter(5*time.Second, long)},
		{Name: "F6b", Fault: "any node stopped for a moment, again and again", Injected: "SIGSTOP for 0.2 to 3 s, SIGCONT", Script: pauseAny},
		{Name: "F7", Fault: "clocks 0.3 s apart", Injected: "one node 0.15 s ahead, one behind", Node: map[string][]string{"a2": {"--fault-clock-skew=150ms"}, "b1": {"--fault-clock-skew=-150ms"}}, Length: 40 * time.Second},
		{Name: "F7b", Fault: "a clock 2 s ahead, then one 2 s behind", Injected: "restart with a shifted clock", Script: shiftClock(2*time.Second, -2*time.Second)},
		{Name: "F7c", Fault: "a clock a minute ahead, then one a minute behind", Injected: "restart with a shifted clock", Script: shiftClock(time.Minute, -time.Minute)},
		{Name: "F8", Fault: "a full disk, then room on it again", Injected: "file system of 24 MiB filled to the last byte, then freed", Disk: 24 << 20, Script: fillDisk, Check: checkSilence},
		{Name: "F12", Fault: "a data directory lost", Injected: "kill −9, directory emptied, restarted", Script: loseDisk, Loses: true},
		{Name: "F12b", Fault: "a data directory copied, and used by two processes", Injected: "copy made while the node runs, second process started on it, killed after the original; the original started again", Script: cloneDisk(1), Check: checkTwins},
		{Name: "F12c", Fault: "a data directory rolled back", Injected: "kill −9, a copy from before it gave rights away put in place, restarted", Script: rollBack(0), Check: checkRolledBack},
		{Name: "F12f", Fault: "a data directory copied, and a supervisor that starts the refused node again and again", Injected: "as F12b; the original started three times", Script: cloneDisk(3), Check: checkTwins},
		{Name: "F12g", Fault: "a data directory rolled back by two starts", Injected: "as F12c; the copy is from two starts before", Script: rollBack(2), Check: checkRolledBack},
		{Name: "F13", Fault: "one node crashes in a loop", Injected: "kill −9 every 2 s for " + long.String(), Script: crashLoop(long)},
		{Name: "L2", Fault: "the limit lowered and raised, each time at another node, room full", Injected: "PATCH to a half, one and a half, a quarter, the whole", Script: lowerAndRaise, Settle: 20 * time.Second},
		{Name: "R1", Fault: "all nodes restarted, one after the other", Injected: "SIGTERM with --drain-delay, started again, behind a balancer", Room: busyRoom, Crowd: busyCrowd, Balanced: true, Args: drain, Script: rolling(15 * time.Second), Check: checkNothingLost},
		{Name: "R1b", Fault: "all nodes killed and restarted, one after the other", Injected: "kill −9, started again, behind a balancer", Room: busyRoom, Crowd: busyCrowd, Balanced: true, Script: rollingKill(15 * time.Second), Check: checkInFlight},
		{Name: "R2", Fault: "a node added to a site under load", Injected: "started, behind a balancer", Room: busyRoom, Crowd: busyCrowd, Balanced: true, Later: "a4", Script: grow, Check: checkGrown},
		{Name: "R3", Fault: "a node taken out of a site under load", Injected: "SIGTERM with --on-stop leave and --drain-delay, behind a balancer", Room: busyRoom, Crowd: busyCrowd, Balanced: true, Args: append(drain, "--on-stop=leave"), Script: shrink, Check: checkNothingLost},
	}
	for i := range all {
		s := &all[i]
		if s.Nodes == nil {
			s.Nodes = five
		}
		s.Room = cmp.Or(s.Room, fullRoom)
		if s.Crowd.Rate == 0 {
			s.Crowd = fullCrowd
		}
	}
	return all
}
