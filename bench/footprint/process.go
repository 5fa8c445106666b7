//go:build linux

package footprint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
// be a node of a mesh, and waits until it takes requests.
func startNode(ctx context.Context, binary, config string) (p *process, err error) {
	p = &process{}
	if p.dir, err = os.MkdirTemp("", "ropeline-footprint-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	secret, file := filepath.Join(p.dir, "secret.key"), filepath.Join(p.dir, "ropeline.yaml")
	if out, err := exec.CommandContext(ctx, binary, "keygen", "--out", secret).CombinedOutput(); err != nil {
		return p, fmt.Errorf("keygen: %w: %s", err, out)
	}
	if err = os.WriteFile(file, []byte(config), 0o600); err != nil {
		return p, err
	}
	var ports [3]string
	for i := range ports {
		if ports[i], err = rig.Free(); err != nil {
			return p, err
		}
	}
	p.listen, p.admin = ports[0], ports[1]
	began := time.Now()
	p.Process, err = rig.Start(ctx, rig.Command{Name: binary, Args: []string{"run", "--config", file, "--listen", p.listen, "--admin", p.admin,
		"--name", "n1", "--mesh", ports[2], "--bootstrap-nodes", "n1", "--secret-file", secret, "--data-dir", filepath.Join(p.dir, "data")}})
	if err != nil {
		return p, err
	}
	err = p.Await(ctx, "http://"+p.admin+"/readyz")
	p.ready = time.Since(began)
	return p, err
}

// stop ends the node and removes its directory.
func (p *process) stop() error {
	var err error
	if p.Process != nil {
		err = p.Stop()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// heap returns what the Go runtime of the node says of its heap: what is kept, what of it
// may not be used any more included, in bytes.
func (p *process) heap() (int64, error) {
	text, err := p.get("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return int64(f), err
		}
	}
	return 0, errors.New("/metrics does not tell the heap")
}

// inside returns how many visitors the node counts as active and as waiting, in all rooms.
func (p *process) inside() (active, waiting int, err error) {
	text, err := p.get("/status")
	if err != nil {
		return 0, 0, err
	}
	var s struct {
		Rooms []struct {
			Active  int `json:"active"`
			Waiting int `json:"waiting"`
		} `json:"rooms"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, 0, err
	}
	for _, r := range s.Rooms {
		active += r.Active
		waiting += r.Waiting
	}
	return active, waiting, nil
}

func (p *process) get(path string) ([]byte, error) {
	resp, err := http.Get("http://" + p.admin + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
