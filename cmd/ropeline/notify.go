package main

import (
	"log/slog"
	"os/signal"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/httpfront/server"
)

// tellManager tells the service manager, if there is one that wants to know, when the node
// takes visitors, and when it is being stopped, from when on a second signal ends the process. It
// returns then.
func tellManager(node *server.Server, log *slog.Logger) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("the service manager is not told", "state", state, "error", err)
		}
	}
	select {
	case <-node.Ready():
		tell(daemon.SdNotifyReady)
	case <-node.Stopping():
	}
	<-node.Stopping()
	signal.Reset(cli.StopSignals()...)
	log.Info("a second signal stops at once")
	tell(daemon.SdNotifyStopping)
}
