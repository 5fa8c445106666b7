package durable_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/durable"
)

// The test binary runs itself as a process that counts and is killed.
const (
	childFile  = "DURABLE_TEST_FILE"
	childPoint = "DURABLE_TEST_POINT" // where it kills itself: a name, a colon, the how manieth time
)

// points are the places in a commit that a store can see.
var points = []string{"before a commit", "after a commit", "before a reply", "after a reply"}

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := count(path, os.Getenv(childPoint)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// dying kills its process at a point.
type dying struct {
	durable.Store
	point string
	left  atomic.Int64
}

func (d *dying) reach(point string) {
	if point == d.point && d.left.Add(-1) == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

func (d *dying) Commit(batch []durable.Write) error {
	d.reach("before a commit")
	err := d.Store.Commit(batch)
	d.reach("after a commit")
	return err
}

// count draws numbers from two counters and says each that is returned.
func count(path, point string) error {
	file, err := durable.Open(path)
	if err != nil {
		return err
	}
	d := &dying{Store: file}
	name, times, _ := strings.Cut(point, ":")
	n, _ := strconv.ParseInt(times, 10, 64)
	d.point = name
	d.left.Store(n)
	o, err := durable.New(durable.Config{Store: d})
	if err != nil {
		return err
	}
	go o.Run(context.Background())
	var wg sync.WaitGroup
	for caller := range 8 {
		object := []string{"even", "odd"}[caller%2]
		wg.Go(func() {
			for {
				n, err := durable.Do(context.Background(), o, object, next)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				d.reach("before a reply")
				fmt.Printf("%s %d\n", object, n)
				d.reach("after a reply")
			}
		})
	}
	wg.Wait()
	return nil
}

// life runs a child until it dies, or for a while, and takes down what it said.
func life(t *testing.T, path, point string, span time.Duration, seen map[string]bool, last map[string]int) (n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childFile+"="+path, childPoint+"="+point)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(span, func() { cmd.Process.Kill() })
	defer timer.Stop()
	before := map[string]int{"even": last["even"], "odd": last["odd"]}
	for lines := bufio.NewScanner(out); lines.Scan(); n++ {
		var object string
		var value int
		if _, err := fmt.Sscan(lines.Text(), &object, &value); err != nil {
			break // the line that it died in
		}
		if seen[lines.Text()] {
			t.Errorf("%q was returned twice", lines.Text())
		}
		if value <= before[object] {
			t.Errorf("%q is not above %d, which an earlier life returned", lines.Text(), before[object])
		}
		seen[lines.Text()] = true
		last[object] = max(last[object], value)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return n
}

// TestCounterUnderKill9 kills a process that counts, at each point and at random
// moments, and goes on counting in the same file.
func TestCounterUnderKill9(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	seen, last := map[string]bool{}, map[string]int{}
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	total := 0
	for _, point := range points {
		for range 3 {
			at := fmt.Sprintf("%s:%d", point, 1+rng.IntN(200))
			n := life(t, path, at, 10*time.Second, seen, last)
			t.Logf("killed %s: %d numbers", at, n)
			total += n
		}
	}
	lives := 8
	if testing.Short() {
		lives = 2
	}
	for range lives {
		total += life(t, path, "", time.Duration(60+rng.IntN(150))*time.Millisecond, seen, last)
	}
	if total < 100 {
		t.Errorf("only %d numbers were drawn", total)
	}
}
