package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/httpfront/server"
)

// notifyEnd is for how long a node that is being stopped tries to tell the service manager so.
const notifyEnd = time.Second

// tellManager tells the service manager, if there is one that wants to know, when the node
// takes visitors, and when it is being stopped, from when on a second signal ends the process. It
// returns then. A manager that does not read may be told late that the node is ready, and holds up nothing.
func tellManager(node *server.Server, log *slog.Logger) {
	tell := func(ctx context.Context, state string) {
		if err := notify(ctx, state); err != nil {
			log.Warn("the service manager is not told", "state", state, "error", err)
		}
	}
	serving, stop := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-node.Ready():
			tell(serving, daemon.SdNotifyReady)
		case <-serving.Done():
		}
	})
	<-node.Stopping()
	signal.Reset(cli.StopSignals()...)
	log.Info("a second signal stops at once")
	stop()
	telling.Wait()
	ending, cancel := context.WithTimeout(context.Background(), notifyEnd)
	defer cancel()
	tell(ending, daemon.SdNotifyStopping)
}

// notify sends state to the service manager, if there is one, which may have as many messages before it as its socket
// holds. Until ctx ends it waits for room there.
func notify(ctx context.Context, state string) error {
	to := &net.UnixAddr{Name: os.Getenv("NOTIFY_SOCKET"), Net: "unixgram"}
	if to.Name == "" {
		return nil
	}
	conn, err := net.DialUnix(to.Net, nil, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now()) })()
	_, err = conn.Write([]byte(state))
	return err
}
