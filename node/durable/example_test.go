package durable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/ropeline/ropeline/node/durable"
)

// next is the plainest counter there is. Under the gates it never returns a number
// twice: not to callers at the same time, and not after a crash.
func next(c *durable.Call) (int, error) {
	value, err := c.Get("n")
	if err != nil {
		return 0, err
	}
	n, _ := strconv.Atoi(string(value)) // 0 before the first one
	return n + 1, c.Put("n", []byte(strconv.Itoa(n+1)))
}

func Example() {
	dir, err := os.MkdirTemp("", "counter")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := durable.Open(filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	objects, err := durable.New(durable.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { objects.Run(ctx) })
	for range 3 {
		n, err := durable.Do(ctx, objects, "counter", next)
		fmt.Println(n, err)
	}
	stop()
	running.Wait()
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}
