//go:build linux

package footprint

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// process is a real node that bootstraps a mesh of one, on loopback.
type process struct {
	*rig.Process
	listen, admin string
	dir           string
	ready         time.Duration // from the start until it took requests
}

// startNode starts a node with the settings of config, YAML, beside those that it needs to
// be a node of a mesh, has it used once it takes requests, and ends it.
func startNode(ctx context.Context, binary, config string, use func(*process)) {
	p := &process{dir: rig.Got(os.MkdirTemp("", "ropeline-footprint-"))}
	defer os.RemoveAll(p.dir)
	secret, file := filepath.Join(p.dir, "secret.key"), filepath.Join(p.dir, "ropeline.yaml")
	if out, err := exec.CommandContext(ctx, binary, "keygen", "--out", secret).CombinedOutput(); err != nil {
		rig.Must(fmt.Errorf("keygen: %w: %s", err, out))
	}
	rig.Must(os.WriteFile(file, []byte(config), 0o600))
	p.listen, p.admin = rig.Got(rig.Free()), rig.Got(rig.Free())
	began := time.Now()
	p.Process = rig.Got(rig.Start(ctx, rig.Command{Name: binary, Env: []string{rig.Shipped}, Args: []string{
		"run", "--config", file, "--listen", p.listen, "--admin", p.admin,
		"--name", "n1", "--mesh", rig.Got(rig.Free()), "--bootstrap-nodes", "n1", "--secret-file", secret, "--data-dir", filepath.Join(p.dir, "data"),
	}}))
	defer p.Stop()
	rig.Must(p.Await(ctx, "http://"+p.admin+"/readyz"))
	p.ready = time.Since(began)
	use(p)
}

// inside returns how many visitors the node counts as active and as waiting, in all rooms.
func (p *process) inside(ctx context.Context) (active, waiting int) {
	for _, r := range rig.Got(rig.StatusAt(ctx, http.DefaultClient, p.admin)).Rooms {
		active += int(r.Active)
		waiting += int(r.Waiting)
	}
	return active, waiting
}
