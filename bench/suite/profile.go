package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/ropeline/ropeline/bench/flame"
)

// Profile is where a node's time or memory went in one situation, in the format of Go's pprof.
type Profile struct {
	Row  string `json:"row"`
	Kind string `json:"kind"` // cpu, heap, allocs, mutex or block
	File string `json:"file"` // below docs/bench

	Samples int `json:"samples"` // 0: nothing of the kind was seen
	data    []byte
	name    string // of a picture
}

// kindsOfProfiles are those that are kept, in the order in which they are asked for: the first takes as long as the load.
var kindsOfProfiles = []string{"cpu", "heap", "allocs", "mutex", "block"}

// profile loads a node once more, outside of the rounds, since to be watched costs it something.
func (h *harness) profile(ctx context.Context, e entry, r *Result) (all []Profile, err error) {
	p, err := h.place()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(p.dir)
	p.profiles = true
	sub, err := e.start(ctx, p)
	if sub != nil {
		defer func() { err = errors.Join(err, sub.end()) }()
	}
	if err != nil {
		return nil, err
	}
	due, err := e.due(r)
	if err != nil {
		return nil, err
	}
	seconds := max(1, int(h.Lasts.Seconds()))
	s := shot{rate: due, address: p.listen, heads: sub.heads, turn: sub.turn, conns: e.row().Conns, lasts: time.Duration(seconds+1) * time.Second, code: sub.wants()}
	loading, cancel := context.WithCancel(ctx)
	var load sync.WaitGroup
	var failed error
	load.Go(func() { _, failed = send(loading, s) })
	defer func() { cancel(); load.Wait() }()
	row := e.row()
	for _, kind := range kindsOfProfiles {
		data, err := fetchProfile(ctx, p.admin, fmt.Sprintf("%s?seconds=%d", kind, seconds))
		if err != nil {
			return nil, fmt.Errorf("%s profile: %w", kind, err)
		}
		read, err := profile.ParseData(data)
		if err != nil {
			return nil, fmt.Errorf("%s profile: %w", kind, err)
		}
		name := r.Name + "-" + e.profile
		all = append(all, Profile{Row: row.name(), Kind: kind, File: name + "." + kind + ".pb.gz", Samples: len(read.Sample), data: data, name: name})
		if kind != kindsOfProfiles[0] {
			continue
		}
		if load.Wait(); failed != nil {
			return nil, failed
		}
	}
	return all, nil
}

func fetchProfile(ctx context.Context, admin, what string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/debug/pprof/"+what, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, data)
	}
	return data, err
}

// writeProfiles writes those of r into docs, and draws where the processor's time went.
func (r *Result) writeProfiles(docs string) error {
	for i := range r.Profiles {
		p := &r.Profiles[i]
		if err := os.WriteFile(filepath.Join(docs, "bench", p.File), p.data, 0o644); err != nil {
			return err
		}
		if p.Kind != "cpu" {
			continue
		}
		var svg bytes.Buffer
		if err := flame.Write(&svg, bytes.NewReader(p.data), flame.Config{Title: p.Row}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "img", "flame-"+p.name+".svg"), svg.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
