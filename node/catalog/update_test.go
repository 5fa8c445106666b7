package catalog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// TestUpdatesAreWhatIsRead writes rooms and rate limits at random, some of them in part, out of order or
// malformed, and holds what a catalog is updated to, and what comes of that, against what is read of the whole map.
func TestUpdatesAreWhatIsRead(t *testing.T) {
	check := func(s *room.Settings) error {
		if strings.Contains(s.Front.CustomPage, "bad") {
			return fmt.Errorf("a bad page")
		}
		return nil
	}
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 35))
		var m crdt.LWW
		var clock crdt.Clock
		now := time.UnixMilli(1_700_000_000_000)
		is, at := Read(&m), uint64(0)
		var effects *Effects
		for step := range 40 {
			for _, w := range anyWrites(rng, is, now) {
				now = now.Add(time.Millisecond)
				if err := m.Set(w.Key, w.Value, clock.Now(now, crdt.NodeID{byte(1 + rng.IntN(3))})); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(3) == 0 {
				continue
			}
			was, written := is, slices.Collect(m.Changed(at))
			is, at = is.Update(&m, slices.Values(written)), m.Changes()
			want := Read(&m)
			if !reflect.DeepEqual(is.zones, want.zones) || !reflect.DeepEqual(is.rooms, want.rooms) || !reflect.DeepEqual(is.order, want.order) || !reflect.DeepEqual(is.RateLimits(), want.RateLimits()) {
				t.Fatalf("seed %d, step %d: updated to\n%+v\nand read as a whole\n%+v", seed, step, is, want)
			}
			for r := range is.Rooms() {
				id := r.Settings.ID
				if before := was.Room(id); before != nil && before != r && !slices.ContainsFunc(written, func(key string) bool { return strings.Contains(key, id.String()) }) {
					t.Fatalf("seed %d, step %d: a room was read again of which nothing was written", seed, step)
				}
			}
			effects = is.Effects(effects, check)
			all, refused := want.Effective(check)
			if got := settingsOf(effects.Running); !reflect.DeepEqual(got, all) || fmt.Sprint(effects.Refused) != fmt.Sprint(refused) {
				t.Fatalf("seed %d, step %d: of the updated one comes\n%+v\n%v\nand of the whole\n%+v\n%v", seed, step, got, effects.Refused, all, refused)
			}
		}
	}
}

func settingsOf(of []*room.Settings) (all []room.Settings) {
	for _, s := range of {
		all = append(all, *s)
	}
	return all
}

// anyWrites returns what somebody may write, who has heard of a catalog or of a part of it.
func anyWrites(rng *rand.Rand, c *Catalog, now time.Time) (all []Write) {
	text := func() string {
		return []string{"", "a page", "a bad page", strings.Repeat(fmt.Sprint(rng.Uint64()), 8000)}[rng.IntN(4)]
	}
	switch rng.IntN(8) {
	case 0:
		return ZoneWrites(fmt.Sprint("zone", rng.IntN(2)), Zone{SearchEngineCrawlerBypass: rng.IntN(2) == 0})
	case 1:
		was := c.RateLimits()
		is := slices.Clone(was)
		if len(is) > 0 && rng.IntN(2) == 0 {
			is = is[1:]
		}
		l := RateLimit{Version: 1, Created: now, Rule: limit.Rule{ID: limit.ID{byte(rng.IntN(4))}, Name: fmt.Sprint(rng.IntN(3)), Expression: "true", Period: time.Minute, RequestsPerPeriod: 5}.WithDefaults()}
		l.Response.Content = text()
		is = append(slices.DeleteFunc(is, func(o RateLimit) bool { return o.ID == l.ID }), l)
		all = new(Catalog).LimitWrites(was, is)
	default:
		id := crdt.RoomID{byte(1 + rng.IntN(5))}
		was := c.Room(id)
		is := &Room{Zone: fmt.Sprint("zone", rng.IntN(2)), Created: now, Settings: room.Settings{ID: id, Host: fmt.Sprint("h", rng.IntN(4)), Path: "/", TotalActiveUsers: 1, NewUsersPerMinute: 1}}
		if was != nil {
			is = was.Clone()
		}
		is.Settings.Name, is.Settings.TotalActiveUsers = fmt.Sprint("room", rng.IntN(5)), rng.IntN(100)
		is.Settings.Front.CustomPage = text()
		e := Event{ID: ID{byte(rng.IntN(3))}, Created: now, Event: room.Event{Name: fmt.Sprint(rng.IntN(3)), Start: now.Add(time.Hour), End: now.Add(time.Duration(2+rng.IntN(3)) * time.Hour)}}
		if rng.IntN(3) == 0 {
			e.CustomPage = new(text())
		}
		is.Events = append(slices.DeleteFunc(is.Events, func(o Event) bool { return o.ID == e.ID }), e)
		is.Rules = append(slices.Clone(is.Rules), Rule{ID: ID{byte(rng.IntN(4))}, Version: 1, Created: now, Rule: room.Rule{Expression: "true", Action: room.Bypass}})
		slices.SortFunc(is.Rules, func(a, b Rule) int { return int(a.ID[0]) - int(b.ID[0]) })
		is.Rules = slices.CompactFunc(is.Rules, func(a, b Rule) bool { return a.ID == b.ID })
		if rng.IntN(4) == 0 {
			is = nil
		}
		if was != nil || is != nil {
			all = new(Catalog).Writes(was, is)
		}
	}
	switch rng.IntN(6) {
	case 0: // half of it has come
		all = all[:len(all)/2]
	case 1:
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	case 2:
		if len(all) > 0 {
			all[rng.IntN(len(all))].Value = []byte("malformed")
		}
	}
	return all
}
