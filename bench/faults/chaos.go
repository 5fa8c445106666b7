//go:build linux

package faults

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// chaosScenario mixes what goes wrong with machines on which nodes run on: descriptors, logs, stores, disks, paths.
func chaosScenario(d time.Duration) scenario {
	s := scenario{
		Name: "chaos", Fault: "what goes wrong around nodes, mixed at random", Injected: "one after the other, some at the same time, for " + d.String(),
		Nodes: []string{"a1", "a2", "b1", "b2"}, Room: busyRoom, Crowd: busyCrowd, Length: d, Settle: time.Minute,
		// The access log fills a pipe that nobody reads, and goes no further than that.
		Args: []string{"--access-log=-"}, LogReader: []string{"grep", "--line-buffered", " level="},
		Script: chaos.script(d), Check: checkChaos,
	}
	if os.Geteuid() == 0 {
		s.Disk = 64 << 20
	}
	return s
}

var chaos = mixture{
	nodes: []ailment{
		killed(1), stopped(2), fullDisk(2),
		{"descriptors", 2, false, func(_ *run, n *rig.Node) func() {
			giveBack := rig.Got(n.UseUpDescriptors())
			return func() { rig.Must(giveBack()) }
		}},
		{"log not read", 1, false, func(_ *run, n *rig.Node) func() {
			rig.Must(n.Reader.Pause())
			return func() { rig.Must(n.Reader.Resume()) }
		}},
		{"log not read, and SIGTERM", 1, false, func(r *run, n *rig.Node) func() {
			rig.Must(n.Reader.Pause())
			return func() { r.restart(n, n.Args...) }
		}},
		{"log without a reader", 1, false, func(r *run, n *rig.Node) func() {
			rig.Must(n.Reader.Kill())
			return func() { r.restart(n, n.Args...) }
		}},
		{"clock", 2, false, func(r *run, n *rig.Node) func() {
			r.stop(n)
			return func() {
				n.Args = []string{"--fault-clock-skew=" + r.between(-maxSkew, maxSkew).Round(time.Millisecond).String()}
				r.start(n)
			}
		}},
		damaged("store cut", func(r *run, f *os.File, size int64) error { return f.Truncate(r.somewhere(size)) }),
		damaged("store zeroed", zero),
		damaged("store removed", func(_ *run, f *os.File, _ int64) error { return os.Remove(f.Name()) }),
		{"identity removed", 1, false, func(r *run, n *rig.Node) func() {
			rig.Must(os.Remove(filepath.Join(n.Data, "identity.json")))
			return func() {
				r.until(mendsWithin, 50*time.Millisecond, func() bool { return !missing(n.Data, "identity.json") })
				r.kill(n)
				r.start(n)
			}
		}},
	},
	network: []disorder{sitesApart, nodeCutOff, deafLink, bentLinks, narrowLinks},
}

// somewhere returns a position in a store of so many bytes: what is in use is in the beginning of the file.
func (r *run) somewhere(size int64) int64 { return r.rng.Int64N(size >> r.rng.IntN(12)) }

// zero overwrites some pages of a store with zeros.
func zero(r *run, f *os.File, size int64) error {
	const page = 4096
	from := r.somewhere(size) / page * page
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.LimitReader(zeros{}, min(8*page, size-from)))
	return err
}

// zeros are zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// damaged is a store that is damaged while its node runs. It comes alone, since at most one node may be without its
// store at a time.
func damaged(kind string, do func(r *run, f *os.File, size int64) error) ailment {
	return ailment{kind, 1, true, func(r *run, n *rig.Node) func() {
		old := r.status(n).Node
		f := rig.Got(os.OpenFile(filepath.Join(n.Data, "store"), os.O_RDWR, 0))
		info := rig.Got(f.Stat())
		rig.Must(errors.Join(do(r, f, info.Size()), f.Close()))
		return func() { r.mend(n, old) }
	}}
}

// mend does with a node whose store was damaged what an operator does: waits for what it does about it by itself, and
// has it killed and started again, to see whether what it has now is whole. One that does not get well, or does not
// start again, is replaced by a new one that declares it dead.
func (r *run) mend(n *rig.Node, old string) {
	healed := r.until(mendsWithin, 100*time.Millisecond, func() bool {
		s, err := n.Status(r.ctx)
		return err == nil && s.Ready && storeIsWell(s)
	})
	if !n.Running() {
		return // which is told where all are looked at
	}
	r.kill(n)
	if healed && r.startsAgain(n) {
		r.say("%s has healed its store", n.Name)
		return
	}
	r.kill(n)
	rig.Must(n.Wipe())
	r.renew(n, old)
	r.say("%s is a new node: its store was not to be healed", n.Name)
}

func missing(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return errors.Is(err, os.ErrNotExist)
}

const mendsWithin = 5 * time.Second

// startsAgain starts a node, and reports whether it takes visitors: one whose store is damaged ends.
func (r *run) startsAgain(n *rig.Node) bool {
	rig.Must(n.Start())
	ready := false
	r.until(wholeWithin, 50*time.Millisecond, func() bool {
		s, err := n.Status(r.ctx)
		ready = err == nil && s.Ready
		return ready || !n.Running()
	})
	return ready
}

// checkChaos: sessions are long beside faults, so nobody loses one, nor a place.
func checkChaos(r *run) (wrong []string) {
	if n := r.loaded.SessionsLost; n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d visitors lost their session", n))
	}
	return wrong
}
