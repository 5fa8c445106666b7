package dashboard

import (
	"slices"
	"testing"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// TestBrowserShowsLimits: what each is and does, and whose memory is too small for them.
func TestBrowserShowsLimits(t *testing.T) {
	mesh := newFakeMesh(1, 3, 4)
	_, b := look(t, mesh, "#/limits")
	row := func(name string) string {
		return "[...document.querySelectorAll('.limits .body .row')].find(e => e.querySelector('.name b').textContent === '" + name + "')"
	}
	cells := func(name string) []string {
		t.Helper()
		b.Awaits("!!" + row(name))
		return browsertest.See[[]string](b.Tab, "[..."+row(name)+".children].map(e => [...e.children].length ? [...e.children].map(c => c.textContent).join('|') : e.textContent)")
	}
	wants := func(name string, want ...string) {
		t.Helper()
		if got := cells(name); !slices.Equal(got, want) {
			t.Errorf("%s has\n%q, want\n%q", name, got, want)
		}
	}
	wants("logins", "1", "Quiet", `logins|http.request.uri.path eq "/login" and http.request.method eq "POST"`, "5 in 1 min|by ip.src", "block|for 10 min", "the mesh",
		"3,120|8,320 in sum", "0|", "1.24 s of requests|at most 15")
	wants("scrapers", "3", "Quiet", "scrapers|true", "12,000 in 90 s|by ip.src, http.host", "log|until fewer come", "each site", "168,080|448,213 in sum", "0|", "1.24 s of requests|at most 36,000")
	wants("checkout", "4", "Disabled", `checkout|http.request.uri.path eq "/checkout"`, "250 in 1 s|all together", "block|until fewer come", "the mesh", "–|", "–|", "–|")
	b.Shows(".times", "fra-1", "Enough", "212,400", "1,800,000")

	mesh.change(func(f *fakeMesh) {
		f.snap.Limits[0].Limited, f.snap.Limits[2].Limited = OverNodes{2, 2}, OverNodes{1, 3}
		f.snap.Limits[1].State = LimitLeftOut
		f.snap.Limits[0].Most, f.snap.Limits[0].DelaySeconds = 0, 0
		f.snap.Refused = []Refused{{Limit: "searches", Reason: "another one is called so"}}
		f.snap.Nodes[1].Limits = nil
		f.snap.Nodes[2].Limits = &LimitMemory{Room: 500, Keys: 499, Replaced: 7, ReplacedLately: 3}
		f.snap.Limits = append(f.snap.Limits, Limit{ID: "f", Name: "unknown", Order: 5, Scope: "mesh", State: LimitCounts, Nodes: 1})
	})
	b.Awaits(row("logins") + ".innerText.includes('Limiting')")
	wants("logins", "1", "Limiting", `logins|http.request.uri.path eq "/login" and http.request.method eq "POST"`, "5 in 1 min|by ip.src", "block|for 10 min", "the mesh",
		"3,120|8,320 in sum", "2|", "nothing|one node counts")
	if got := cells("scrapers"); got[1] != "Logging" || got[7] != "1|3 in sum" {
		t.Errorf("scrapers has %q", got)
	}
	if got := cells("searches"); got[1] != "Left out" || got[6] != "–|" {
		t.Errorf("searches has %q", got)
	}
	wants("unknown", "5", "Quiet", "unknown|", "–|", "–|", "the mesh", "0|", "0|", "nothing|one node counts")
	b.Shows("#findings", "A rate limit is left out", "searches", "A node has too little memory for rate limits", "sin-1", "3 clients forgotten too early in 5 min")
	if got := browsertest.See[int](b.Tab, "document.querySelectorAll('#findings a[href=\"#/limits\"]').length"); got != 2 {
		t.Errorf("%d of the findings lead here, want 2", got)
	}
	b.Shows(".found", "Counted by 3 of 4 nodes")
	b.Awaits("document.querySelector('.times tbody tr').innerText.includes('Too small')")
	b.Awaits("document.querySelectorAll('.times tbody tr').length === 3")

	b.Click(".limits .head button", "Limited")
	b.Awaits("document.querySelector('.limits .body .name b').textContent === 'logins'")
	mesh.change(func(f *fakeMesh) { f.snap.Limits = f.snap.Limits[:0] })
	b.Shows("main", "There is no rate limit")
	b.Awaits("document.querySelector('.times').hidden")
	b.wantNothingWrong()
}
