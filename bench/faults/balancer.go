//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// probeEvery is how often the balancer asks nodes whether they take visitors.
const probeEvery = 100 * time.Millisecond

// balancer is what operators have in front of their nodes: it deals requests out in turn
// to those whose /readyz says yes, and gives a request that could not be delivered, or was
// answered 503, to the next. Unlike visitors who know all nodes it sees when a node comes and goes.
type balancer struct {
	ctx      context.Context // until when nodes are asked
	addr     string
	stop     func()
	next     atomic.Uint64
	last     atomic.Pointer[error] // why a request had no answer
	backends atomic.Pointer[[]*backend]
}

// why tells why a request had no answer, if one had none whose visitor had not left.
func (b *balancer) why() string {
	if last := b.last.Load(); last != nil {
		return fmt.Sprintf(" (%v)", *last)
	}
	return ""
}

// backend is one node as the balancer knows it.
type backend struct {
	node   *rig.Node
	ready  atomic.Bool
	served atomic.Int64 // requests
	failed atomic.Int64 // requests without an answer
}

// newBalancer serves on a port of its own until stop is called, and asks nodes until ctx ends. It waits until they
// are ready.
func newBalancer(ctx context.Context, nodes []*rig.Node) (b *balancer, err error) {
	b = &balancer{ctx: ctx}
	b.backends.Store(new([]*backend))
	for _, n := range nodes {
		for k := b.add(n); !k.ready.Load() && ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	b.addr, b.stop, err = rig.Serve(&http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // the transport says where to
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: b,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				b.last.Store(&err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}}, "")
	return b, err
}

// add has a node be asked from now on, and be given requests once it is ready.
func (b *balancer) add(n *rig.Node) *backend {
	k := &backend{node: n}
	all := append(slices.Clone(*b.backends.Load()), k)
	b.backends.Store(&all)
	go k.probe(b.ctx) // ends with the run
	return k
}

func (k *backend) probe(ctx context.Context) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		resp, err := client.Get("http://" + k.node.Place.Admin + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
		}
		k.ready.Store(err == nil && resp.StatusCode == http.StatusOK)
		_ = rig.Sleep(ctx, probeEvery) // the loop sees why it woke
	}
}

// RoundTrip sends a request to the node whose turn it is, and to the next if no connection
// to that can be had. A request that has reached a node is not sent again.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	all := *b.backends.Load()
	first, err := b.next.Add(1), errors.New("no node is ready")
	for i := range all {
		k := all[(first+uint64(i))%uint64(len(all))]
		if !k.ready.Load() {
			continue
		}
		var resp *http.Response
		if resp, err = k.send(r); err == nil {
			return resp, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !errors.Is(err, errNotServing) && (!ok || op.Op != "dial") {
			k.failed.Add(1)
			return nil, err
		}
		k.ready.Store(false) // until it says that it is
	}
	return nil, err
}

// errNotServing is a node that answers, and says that it takes nobody: one that has just
// started, before it was asked.
var errNotServing = errors.New("the node takes no visitors")

// transports keep connections to nodes open.
var transports = &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}

func (k *backend) send(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", k.node.Place.HTTP
	resp, err := transports.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		_, err := io.Copy(io.Discard, resp.Body)
		return nil, errors.Join(errNotServing, err, resp.Body.Close())
	}
	k.served.Add(1)
	return resp, nil
}
