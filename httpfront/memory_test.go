package httpfront

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// TestWhatIsRememberedIsWhatOpens has one connection bring whatever may follow on one: passes
// of several visitors, rooms, hosts and keys, spoiled ones, several in one request, in fields
// of one or two; while settings and keys change. With a memory it has to be as without one.
func TestWhatIsRememberedIsWhatOpens(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	now := time.Now().Truncate(time.Second)
	one, two := pass.Key{ID: 1, Secret: [32]byte{1}}, pass.Key{ID: 2, Secret: [32]byte{2}}
	rings := []*pass.Keyring{must(pass.NewKeyring(one)), must(pass.NewKeyring(two, one)), must(pass.NewKeyring(two))}
	var rooms []*room.Settings
	for i := range 4 {
		s := newRoom(always).settings
		s.ID = crdt.RoomID{byte(1 + i/2)} // each has been set anew once
		if i == 3 {
			s.CookieSuffix = "b"
		}
		rooms = append(rooms, &s)
	}
	hosts := []string{"a.example", "b.example"}
	var cookies []string
	for _, ring := range rings {
		for _, s := range rooms {
			for _, host := range hosts {
				p := node.Pass{Room: s.ID, Visitor: node.VisitorID{byte(rnd.Uint32())}, Arrival: now, LastPoll: now}
				if rnd.IntN(3) > 0 {
					p.AcceptedAt, p.LeaseEnd = now, now.Add(time.Duration(1+rnd.IntN(9))*time.Minute)
				}
				text := string(ring.AppendSeal(nil, p, host))
				cookies = append(cookies, string(appendCookieName(nil, false, s))+"="+text)
			}
		}
	}
	cookies = append(cookies, "ropeline=", "theme=dark", "ropeline="+strings.Repeat("A", 2*rememberedMax))

	var memory memory
	again := 0
	// What comes is what came before but for something, now and then.
	keys, s, host, secure, list := rings[0], rooms[0], hosts[0], false, cookies[0]
	for range 20_000 {
		switch rnd.IntN(16) {
		case 0:
			keys = rings[rnd.IntN(len(rings))]
		case 1:
			s = rooms[rnd.IntN(len(rooms))]
		case 2:
			host = hosts[rnd.IntN(len(hosts))]
		case 3:
			secure = !secure
		case 4:
			list = cookies[rnd.IntN(len(cookies))]
		case 5, 7: // one that fits
			i := rnd.IntN(len(rings) * len(rooms) * len(hosts))
			list, keys, s, host, secure = cookies[i], rings[i/len(hosts)/len(rooms)], rooms[i/len(hosts)%len(rooms)], hosts[i%len(hosts)], false
		case 6:
			list += "; " + cookies[rnd.IntN(len(cookies))]
		}
		r := newRequest()
		r.Host, r.via.Secure, r.Cookies = host, secure, true
		r.Fields = append(r.Fields, http1.Field{Name: []byte("Cookie"), Value: []byte(list)})
		if rnd.IntN(8) == 0 {
			r.Fields = append(r.Fields, http1.Field{Name: []byte("cookie"), Value: []byte(cookies[rnd.IntN(len(cookies))])})
		}
		var want, got carried
		r.openPass(&want, keys, s, nil)
		r.before = &memory
		if only := r.onlyCookies(); only != nil && memory.opened.is(only, openedFrom{keys, s, r.Host, r.cookieSecure(s)}) {
			again++
		}
		if r.openPass(&got, keys, s, nil); got != want {
			t.Fatalf("with a memory %+v, without one %+v, of %q", got, want, r.Fields)
		}
		r.release()
	}
	if again < 1000 {
		t.Errorf("something was remembered %d times only", again)
	}
}

// A proxy in front may send several visitors through one connection.
func TestVisitorsOfOneConnectionAreToldApart(t *testing.T) {
	var seen atomic.Value
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		seen.Store(p.Visitor)
		return always(p, known, now)
	})
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo))
	c := f.dial()
	now := time.Now()
	var ask [2]func()
	for i := range ask {
		p := node.Pass{Room: r.settings.ID, Visitor: node.VisitorID{byte(1 + i)}, Arrival: now, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
		ask[i] = asker(t, c, "GET / HTTP/1.1\r\nHost: a\r\nCookie: ropeline="+string(f.keys.AppendSeal(nil, p, "a"))+"\r\n\r\n")
	}
	for i, who := range []int{0, 0, 0, 1, 0, 1, 1, 1, 0, 0} {
		ask[who]()
		equal(t, fmt.Sprint("the visitor of request ", i), seen.Load().(node.VisitorID), node.VisitorID{byte(1 + who)})
	}
}

func TestDatesAreThoseOfTheirSecond(t *testing.T) {
	at := time.Date(2026, 2, 28, 23, 59, 58, 0, time.FixedZone("", 3600))
	for _, d := range []time.Duration{0, time.Second - 1, time.Second, 2 * time.Second, 0, 24 * time.Hour, -time.Nanosecond} {
		now := at.Add(d)
		equal(t, "the date", string(appendDate([]byte("x"), now)), "x"+now.UTC().Format(http.TimeFormat))
	}
}
