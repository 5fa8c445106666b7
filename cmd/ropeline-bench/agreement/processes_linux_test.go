package agreement

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// TestProcessesAgree: what operators do with processes holds as in virtual time; and what nobody has done is seen.
func TestProcessesAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while; make test-all runs it")
	}
	binary, err := rig.Built(t.Context(), rig.Ropeline, "faults")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	q := Sequence{Seed: 1, Layout: "aab"}
	r, err := q.startProcesses(t.Context(), binary, filepath.Join(t.TempDir(), "run"), &log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		r.all.Wait()
		if err := r.mesh.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.run([]Step{
		{MakeRoom, 0, 0, 1, 0},
		{MakeLimit, 2, 0, 1, 0},
		{ChangeRoom, 1, 1, 8, time.Second},
		{ChangeRoom, 2, 1, 9, 0},
		{MakeRule, 1, 1, 1, 0},
		{CutSite, 2, 0, 0, 0},
		{GivePage, 0, 1, 99, 0},
		{ChangeRoom, 2, 1, 4, 0},
		{Heal, 0, 0, 0, 2 * time.Second},
		{MakeEvent, 0, 1, 1, 0},
		{DropLimit, 1, 0, 0, 0},
		{Restart, 1, 0, 1, 0},
		{ReplaceRules, 2, 1, 1, 0},
		{Wipe, 2, 1, 1, 2 * time.Second},
		{ChangeZone, 0, 1, 1, 0},
	})
	for _, broken := range r.settle(agreesReal) {
		t.Error(broken)
	}
	if r.result.Answered < 8 || t.Failed() {
		t.Fatalf("%d acts were answered:\n%s", r.result.Answered, log.String())
	}
	rooms, err := r.list(r.nodes[0], "/api/v1/rooms")
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/rooms/" + rooms[0]["id"].(string)
	if _, _, err := r.send(r.nodes[0], http.MethodPatch, path, item{"description": "by nobody"}, nil); err != nil {
		t.Fatal(err)
	}
	if broken := strings.Join(r.settle(2*calm), "\n"); !strings.Contains(broken, rooms[0].key("room")+` has description "\"by nobody`) {
		t.Errorf("a change of nobody is not seen: %q", broken)
	}
}
