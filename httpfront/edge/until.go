package edge

import (
	"context"
	"sync"
	"time"
)

// Until has serve run until ctx ends, and returns what that does. Once ctx has ended, or serve has failed, end is called: it
// ends serve, and what that has begun, within a grace. Until returns when both have.
func Until(ctx context.Context, grace time.Duration, serve func() error, end func(context.Context)) error {
	ctx, failed := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		last, over := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer over()
		end(last)
	})
	defer wg.Wait()
	defer failed()
	return serve()
}
