package agreement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// agreesReal is agrees for processes, which take their time to start and to see each other.
const agreesReal = time.Minute

// real is one run with processes, whose operators have nothing but the API. Troubles of one process come one after the other: a second
// one is left out while the first lasts.
type real struct {
	ctx    context.Context
	mesh   *rig.Mesh
	client http.Client
	began  time.Time
	all    sync.WaitGroup // acts and troubles

	notes sync.Mutex // guards log
	log   io.Writer

	mu     sync.Mutex // guards the following, and what is drawn and started
	nodes  []*process
	truth  truth
	result Result
	deeds  int
	ids    int
	sites  map[string]int
}

type process struct {
	*rig.Node
	id      crdt.NodeID // that it had last; zero: it was never ready
	wrong   bool        // its clock is
	trouble bool        // it is in some
}

// RunProcesses runs a sequence with processes of a binary that is built for faults, in a directory, which is made. Pauses, in which
// deletions are forgotten, are left out.
func (q Sequence) RunProcesses(ctx context.Context, binary, dir string, log io.Writer) (*Result, error) {
	r, err := q.startProcesses(ctx, binary, dir, log)
	if err != nil {
		return nil, err
	}
	err = rig.Try(func() {
		r.run(q.Steps)
		r.result.Violations = append(r.result.Violations, r.settle(agreesReal)...)
	})
	r.all.Wait()
	if e := r.mesh.Close(); err == nil {
		err = e
	}
	return &r.result, err
}

// startProcesses starts a mesh, and waits until it is ready.
func (q Sequence) startProcesses(ctx context.Context, binary, dir string, log io.Writer) (*real, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("a run needs a directory of its own: %w", err)
	}
	r := &real{ctx: ctx, log: log, began: time.Now(), sites: map[string]int{}}
	r.truth = truth{things: map[string]*thing{}, lost: map[crdt.NodeID]bool{}, left: map[crdt.NodeID]int{}}
	var names []string
	for i := range q.Layout {
		names = append(names, r.name(q.Layout[i:i+1]))
	}
	m, err := rig.NewMesh(rig.Config{Binary: binary, Dir: dir, Names: names, Args: []string{"--host", "elsewhere.example"}, Origin: http.NotFoundHandler()}, rig.NewLoopback(q.Seed))
	if err != nil {
		return nil, err
	}
	r.mesh = m
	for _, n := range m.Nodes {
		r.nodes = append(r.nodes, &process{Node: n})
	}
	err = rig.Try(func() {
		rig.Must(m.Start(ctx))
		r.ofFile()
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return r, nil
}

// run runs steps, and has all be well then.
func (r *real) run(steps []Step) {
	for _, s := range steps {
		time.Sleep(s.After)
		r.step(s)
	}
	time.Sleep(patience)
	r.all.Wait()
	r.heal()
}

func (r *real) note(format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	fmt.Fprintf(r.log, "%8.3f "+format+"\n", append([]any{time.Since(r.began).Seconds()}, args...)...)
}

// name returns that of another node of a site.
func (r *real) name(site string) string {
	r.sites[site]++
	return fmt.Sprint(site, r.sites[site])
}

// ofFile notes what is there before anybody does anything.
func (r *real) ofFile() {
	is, err := r.shownBy(r.nodes[0])
	rig.Must(err)
	d := &deed{name: "the file", everyone: true}
	for key, fields := range is {
		r.truth.make(key, "", d, fields)
	}
}

// step does what a step says, and does not wait for it.
func (r *real) step(s Step) {
	r.mu.Lock()
	p := r.nodes[s.Node%len(r.nodes)]
	r.mu.Unlock()
	if slices.Contains(acts, s.Do) {
		r.all.Go(func() { r.act(p, s) })
		return
	}
	r.note("%s: %s", s.Do, p.Name)
	r.result.Troubles++
	switch s.Do {
	case CutNode:
		rig.Must(r.mesh.Net.CutNode(p.Name))
	case CutSite:
		rig.Must(r.mesh.Net.CutSite(p.Site))
	case Mute, Deafen:
		for _, o := range r.nodes {
			from, to := p, o
			if s.Do == Deafen {
				from, to = o, p
			}
			if o != p {
				rig.Must(r.mesh.Net.CutOneWay(from.Name, to.Name))
			}
		}
	case Heal:
		rig.Must(r.mesh.Net.Heal())
	case Join:
		r.join(s)
	case BuryLost:
		r.bury(p)
	case Restart:
		r.has(p, func() { r.restart(p, 0, time.Duration(s.Value*3)*time.Millisecond) })
	case WrongTime:
		r.has(p, func() {
			r.restart(p, []time.Duration{10 * time.Second, 10 * time.Minute, 12 * time.Hour, -time.Minute}[s.Value%4], 0)
			time.Sleep(time.Duration(2000+s.Value*5) * time.Millisecond)
			r.restart(p, 0, 0)
		})
	case Wipe:
		r.has(p, func() { r.wipe(p, s) })
	case Leave:
		r.has(p, func() { r.leave(p) })
	}
}

// has has a process be in trouble, if it is in none.
func (r *real) has(p *process, trouble func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.trouble {
		return
	}
	p.trouble = true
	r.all.Go(func() {
		if err := rig.Try(trouble); err != nil {
			r.broken("%s: %v", p.Name, err)
		}
		r.mu.Lock()
		p.trouble = false
		r.mu.Unlock()
	})
}

func (r *real) broken(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Violations = append(r.result.Violations, fmt.Sprintf(format, args...))
}

func (r *real) start(p *process, ahead time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.wrong = ahead != 0
	p.Args = []string{"--fault-clock-skew=" + ahead.String()}
	rig.Must(p.Start())
}

func (r *real) restart(p *process, ahead, after time.Duration) {
	r.ask(p)
	_ = p.Kill() // it may have ended
	time.Sleep(after)
	r.start(p, ahead)
}

// ask has a process say who it is.
func (r *real) ask(p *process) (s node.Status, err error) {
	if s, err = p.Status(r.ctx); err != nil {
		return s, err
	}
	id, err := crdt.ParseNodeID(s.Node)
	rig.Must(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.id != id && s.Ready {
		p.id = id
	}
	return s, nil
}

func (r *real) join(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.nodes) >= mostNodes {
		return
	}
	n, err := r.mesh.Add(r.name(string(rune('a' + s.Value%3))))
	rig.Must(err)
	p := &process{Node: n}
	r.nodes = append(r.nodes, p)
	rig.Must(p.Start())
	r.cutSoon(p, s)
}

// cutSoon has some of those that join be cut off while they do, or just after.
func (r *real) cutSoon(p *process, s Step) {
	if s.Thing%3 == 0 {
		r.all.Go(func() {
			time.Sleep(time.Duration(s.Node*10) * time.Millisecond)
			if err := r.mesh.Net.CutNode(p.Name); err != nil {
				r.broken("cut %s: %v", p.Name, err)
			}
		})
	}
}

// wipe loses a disk, where another node has one that does not lose it.
func (r *real) wipe(p *process, s Step) {
	r.ask(p)
	r.mu.Lock()
	last := !slices.ContainsFunc(r.nodes, func(o *process) bool { return o != p && o.id != crdt.NodeID{} && !o.trouble })
	if !last && p.id != (crdt.NodeID{}) {
		r.truth.lost[p.id] = true
		p.id = crdt.NodeID{}
	}
	r.mu.Unlock()
	if last {
		return
	}
	_ = p.Kill()
	rig.Must(p.Wipe())
	time.Sleep(time.Duration(s.Value*3) * time.Millisecond)
	r.start(p, 0)
	r.cutSoon(p, s)
}

// leave has a node leave, and another one begin on its machine.
func (r *real) leave(p *process) {
	if is, err := r.ask(p); err != nil || !is.Ready {
		return
	}
	r.mu.Lock()
	id, lost := p.id, len(r.truth.lost)
	r.mu.Unlock()
	status, _, _ := r.send(p, http.MethodPost, "/api/v1/nodes/"+id.String()+"/drain", map[string]any{"leave": true}, nil)
	r.note("%s is told to leave: status %d", p.Name, status)
	if status != http.StatusOK && status != http.StatusAccepted {
		return
	}
	r.mu.Lock()
	r.truth.left[id] = lost
	r.mu.Unlock()
	if p.EndedWithin(20 * time.Second) {
		rig.Must(p.Wipe())
		r.mu.Lock()
		p.id = crdt.NodeID{}
		r.mu.Unlock()
	} else {
		_ = p.Kill() // nobody takes over: it goes on leaving when it starts
	}
	r.start(p, 0)
}

// bury has an operator declare dead who has lost its disk.
func (r *real) bury(p *process) {
	r.mu.Lock()
	var lost []string
	for id := range r.truth.lost {
		lost = append(lost, id.String())
	}
	r.mu.Unlock()
	r.all.Go(func() {
		for _, id := range lost {
			status, _, _ := r.send(p, http.MethodPost, "/api/v1/nodes/"+id+"/declare_dead", map[string]any{"gone_for_good": true}, nil)
			r.note("%.8s is declared dead at %s: status %d", id, p.Name, status)
		}
	})
}

// heal has all be well.
func (r *real) heal() {
	r.note("all is healed")
	rig.Must(r.mesh.Net.Heal())
	for _, p := range r.nodes {
		if !p.Running() {
			r.note("%s does not run; it said last:\n%s", p.Name, p.Tail(3))
			r.start(p, 0)
		}
	}
}

// settle waits until all nodes agree, for so long at most, and returns what is not as it must be then.
func (r *real) settle(most time.Duration) (broken []string) {
	for end, since := time.Now().Add(most), time.Now(); time.Now().Before(end) && r.ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		if broken = r.differences(); len(broken) > 0 {
			since = time.Now()
		} else if time.Since(since) >= calm {
			break
		}
	}
	return broken
}

// differences returns what is not as it must be by now.
func (r *real) differences() (all []string) {
	var agreed shown
	for i, p := range r.nodes {
		is, err := p.Status(r.ctx)
		if err != nil || !is.Ready || rig.Alive(is) < len(r.nodes)-1 {
			return []string{fmt.Sprintf("%s is not ready, or does not see all others: %v, %d peers, %v", p.Name, is.Ready, rig.Alive(is), err)}
		}
		has, err := r.shownBy(p)
		if err != nil {
			return []string{fmt.Sprintf("%s: %v", p.Name, err)}
		}
		if i == 0 {
			agreed = has
		}
		for _, at := range differ(has, agreed) {
			all = append(all, fmt.Sprintf("%s and %s do not agree on %s", p.Name, r.nodes[0].Name, at))
		}
		for _, room := range is.Rooms {
			if fields := has["room "+room.Name]; fields == nil || fields["total_active_users"] != fmt.Sprint(room.TotalActiveUsers) {
				all = append(all, fmt.Sprintf("%s does not run the room %s as the catalog has it", p.Name, room.Name))
			}
		}
	}
	return append(all, r.truth.judge(agreed)...)
}

// JudgeProcesses is Judge with processes, one sequence at a time, below a directory.
func (s *Set) JudgeProcesses(ctx context.Context, dir string, out io.Writer) (kept bool, err error) {
	binary, err := rig.Built(ctx, rig.Ropeline, "faults")
	if err != nil {
		return false, err
	}
	start := time.Now()
	var t Tally
	for i := range s.N {
		q := Draw(s.Seed + uint64(i))
		q.Steps = slices.DeleteFunc(q.Steps, func(x Step) bool { return x.Do == Pause || slices.Contains(s.Without, x.Do) })
		var log strings.Builder
		of := fmt.Sprintf("%s/%d", dir, q.Seed)
		r, err := q.RunProcesses(ctx, binary, of, &log)
		if err != nil {
			return false, fmt.Errorf("seed %d: %w", q.Seed, err)
		}
		t.add(r)
		if s.Verbose || len(r.Violations) > 0 {
			fmt.Fprint(out, log.String())
		}
		for _, v := range r.Violations {
			fmt.Fprintf(out, "seed %d: %s\n", q.Seed, v)
		}
		fmt.Fprintf(out, "seed %d, with %d nodes: %d acts were answered, %d troubles, %d broken promises; %v so far\n",
			q.Seed, len(q.Layout), r.Answered, r.Troubles, len(r.Violations), time.Since(start).Round(time.Second))
	}
	fmt.Fprintf(out, "%d runs with processes, %d failed; %d acts were answered, %d of them named a node that had not confirmed; %d troubles\n",
		t.Sequences, t.Failed, t.Answered, t.Named, t.Troubles)
	return t.Failed == 0, context.Cause(ctx)
}
