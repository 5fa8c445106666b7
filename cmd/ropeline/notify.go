package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// How whoever starts nodes learns that they are ready.

// readyLook is how often it is looked whether a node is ready.
const readyLook = 50 * time.Millisecond

// notifyReady tells the service manager, if there is one that wants to know, when the node
// takes visitors, and when it is being stopped.
func notifyReady(ctx context.Context, ready func() error, log *slog.Logger) error {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("the service manager is not told", "state", state, "error", err)
		}
	}
	ticker := time.NewTicker(readyLook)
	defer ticker.Stop()
	for ready() != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	tell(daemon.SdNotifyReady)
	<-ctx.Done()
	tell(daemon.SdNotifyStopping)
	return nil
}
