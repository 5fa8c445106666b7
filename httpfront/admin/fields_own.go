package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// ownFields are those that the dialect does not have, under the names that they have in
// configuration files.
func ownFields() []roomField {
	all := []roomField{
		oneOf("policy", "Who may let in how many. Default escrow.", policies, room.Escrow, func(r *catalog.Room) *room.Policy { return &r.Settings.Policy }),
		truth("dry_run", "With true all is decided and counted, and who would have queued passes all the same. Default false.", func(r *catalog.Room) *bool { return &r.Settings.DryRun }),
		oneOf("on_partition", "Under escrow, what becomes of a session when the node that it hangs on is out of reach. Default hold.",
			[]room.OnPartition{room.PartitionHold, room.PartitionOpen}, room.PartitionHold, func(r *catalog.Room) *room.OnPartition { return &r.Settings.OnPartition }),
		curveFactor(),
		span("share_freeze", "How long a site that has fallen silent keeps its share. Default 15m.", time.Second, 24*time.Hour, 1, -1, func(r *catalog.Room) *time.Duration { return &r.Settings.ShareFreeze }),
		span("bucket_span", "Visitors who arrive within it share a bucket of the queue. Default 1m.", time.Second, time.Minute, time.Second, 0, func(r *catalog.Room) *time.Duration { return &r.Settings.BucketSpan }),
		span("refresh_interval", "How often a waiting visitor asks. Default 20s.", time.Second, 10*time.Minute, time.Second, 0, func(r *catalog.Room) *time.Duration { return &r.Settings.RefreshInterval }),
		span("place_kept", "How long the place is kept of somebody who stopped asking. Default 5m.", time.Second, 24*time.Hour, time.Second, 0, func(r *catalog.Room) *time.Duration { return &r.Settings.PlaceKept }),
		bindPass(),
		orDefault(whole("bind_ipv4_prefix", "How many bits of an IPv4 address are its network. Default 24.", 8, 32, func(r *catalog.Room) *int { return &r.Settings.Front.Binding.IPv4Prefix }), 0, room.DefaultIPv4Prefix),
		orDefault(whole("bind_ipv6_prefix", "How many bits of an IPv6 address are its network. Default 48.", 16, 64, func(r *catalog.Room) *int { return &r.Settings.Front.Binding.IPv6Prefix }), 0, room.DefaultIPv6Prefix),
		oneOf("shared_passes", "What becomes of a pass that more than addresses_per_pass use. Default log.",
			[]room.SharedAction{room.SharedIgnore, room.SharedLog, room.SharedQueue}, room.SharedIgnore, func(r *catalog.Room) *room.SharedAction { return &r.Settings.Front.Sharing.Action }),
		orDefault(whole("addresses_per_pass", "How many addresses may use one pass within a minute. Default 4.", 1, room.MaxSharedAddresses, func(r *catalog.Room) *int { return &r.Settings.Front.Sharing.Addresses }), 0, 4),
		whole("max_new_visitors_per_address", "Visitors of one address whom a node takes into the line per minute; 0 for no limit. Default 1000.", 0, room.MaxNewVisitors,
			func(r *catalog.Room) *int { return &r.Settings.Front.NewVisitors.PerAddress }),
		whole("max_new_visitors", "The same of all addresses together; 0 for no limit. Default 600000.", 0, room.MaxNewVisitors,
			func(r *catalog.Room) *int { return &r.Settings.Front.NewVisitors.All }),
		text("message", "What all who wait are told, in one language; lines are kept. Default none.", "a plain text of at most 300 characters", 300, func(r *catalog.Room) *string { return &r.Settings.Front.Message }),
		frameAncestors(),
	}
	for i := range all {
		all[i] = all[i].own()
	}
	return all
}

func curveFactor() roomField {
	const lo, hi = 0.01, 8
	return plain("curve_factor", "Exponent of the policy curve. Default 1.", "a number from 0.01 to 8", Schema{"type": "number", "minimum": lo, "maximum": hi},
		func(r *catalog.Room) *float64 { return &r.Settings.CurveFactor },
		func(f *roomField, r *reader, v value) (float64, bool) {
			if v.kind != kindNumber {
				f.mistype(r, v)
				return 0, false
			}
			n, err := strconv.ParseFloat(v.text, 64)
			if err != nil || n < lo || n > hi {
				f.refuse(r, v)
				return 0, false
			}
			return n, true
		})
}

// statusCode takes 0 for nothing said: SDKs of the v0 line send it where it is not set.
func statusCode() roomField {
	f := roomField{
		name: "queueing_status_code", meaning: "The status of the waiting page. Default 200; 0 is as if it were left out.", allowed: "200, 202 or 429",
		schema: func(u use) Schema {
			if u == shown {
				return Schema{"type": "integer", "enum": []any{200, 202, 429}}
			}
			return Schema{"type": "integer", "enum": []any{0, 200, 202, 429}}
		},
		show: func(r *catalog.Room, _ time.Time) any { return r.Settings.QueueingStatusCode },
		copy: func(from, into *catalog.Room) { into.Settings.QueueingStatusCode = from.Settings.QueueingStatusCode },
	}
	f.read = func(r *reader, v value, into, _ *catalog.Room) {
		n, err := strconv.Atoi(v.text)
		switch {
		case v.kind != kindNumber:
			f.mistype(r, v)
		case err != nil || !slices.Contains([]int{0, 200, 202, 429}, n):
			f.refuse(r, v)
		case n != 0:
			into.Settings.QueueingStatusCode = n
		}
	}
	return f
}

// inverse is a truth that is kept as its opposite.
func inverse(f roomField) roomField {
	read, show := f.read, f.show
	f.read = func(r *reader, v value, into, was *catalog.Room) {
		v.yes = !v.yes
		read(r, v, into, was)
	}
	f.show = func(t *catalog.Room, now time.Time) any { return !show(t, now).(bool) }
	return f
}

// orDefault shows a number that stands for "nothing said" as what it comes to.
func orDefault(f roomField, unsaid, means int) roomField {
	show := f.show
	f.show = func(r *catalog.Room, now time.Time) any {
		if n := show(r, now); n != unsaid {
			return n
		}
		return means
	}
	return f
}

// noEffect tells whoever asks for something of it that nothing comes of it.
func noEffect[T any](f field[T], harmless string) field[T] {
	read := f.read
	f.read = func(r *reader, v value, into, was *T) {
		before := len(r.mistakes)
		read(r, v, into, was)
		if len(r.mistakes) == before && v.text != harmless {
			r.messages = append(r.messages, Mistake{
				Code: CodeNoEffect, Field: join(r.at, f.name), Value: v.String(),
				Message: fmt.Sprintf("%s: %s is kept, and without effect: visitors are not checked for being human here", join(r.at, f.name), v),
			})
		}
	}
	return f
}

// bindPass is two truths, as a list.
func bindPass() roomField {
	const address, agent = "address", "user-agent"
	f := words("bind_pass", "A pass that comes from another network, or another browser, counts for nothing. Default none.", "a list of address, user-agent",
		Schema{"type": "string", "enum": []any{address, agent}}, 2, nil, func(*catalog.Room) *[]string { return new([]string) }, nil, nil)
	list := words(f.name, f.meaning, f.allowed, Schema{}, 2, nil, func(l *[]string) *[]string { return l },
		func(s string) (string, bool) { return s, s == address || s == agent }, func(s string) string { return s })
	f.read = func(r *reader, v value, into, _ *catalog.Room) {
		var got []string
		list.read(r, v, &got, nil)
		into.Settings.Front.Binding.Address = slices.Contains(got, address)
		into.Settings.Front.Binding.UserAgent = slices.Contains(got, agent)
	}
	f.show = func(r *catalog.Room, _ time.Time) any {
		got := []string{}
		if r.Settings.Front.Binding.Address {
			got = append(got, address)
		}
		if r.Settings.Front.Binding.UserAgent {
			got = append(got, agent)
		}
		return got
	}
	f.copy = func(from, into *catalog.Room) {
		into.Settings.Front.Binding.Address, into.Settings.Front.Binding.UserAgent = from.Settings.Front.Binding.Address, from.Settings.Front.Binding.UserAgent
	}
	return f
}

// frameAncestors writes self and none without their quotes.
func frameAncestors() roomField {
	const self, none, most = "'self'", "'none'", 100
	return words("frame_ancestors", `Who may show the waiting page in a frame. Default ["self"].`, `["none"], or a list of self and sites such as https://shop.example`,
		Schema{"type": "string"}, most, []string{self}, func(r *catalog.Room) *[]string { return &r.Settings.Front.FrameAncestors },
		func(s string) (string, bool) {
			if s == "self" || s == "none" {
				s = "'" + s + "'"
			}
			return s, s != ""
		},
		func(s string) string { return strings.Trim(s, "'") })
}

var routeFields = []field[room.Route]{
	spelled("host", `The exact host; "" for every host.`, hostAllowed, normalHost, func(r *room.Route) *string { return &r.Host }),
	spelled("path", "This path and all below it. Default /.", pathAllowed, normalPath, func(r *room.Route) *string { return &r.Path }),
}

func additionalRoutes() roomField {
	const name = "additional_routes"
	f := roomField{
		name: name, meaning: "Other hosts and paths of the same room; they need a cookie_suffix. Default none.",
		allowed: fmt.Sprintf("a list of at most %d objects with host, path or both", room.MaxRoutes),
		schema:  func(u use) Schema { return listOf(objectOf(routeFields, u)).with("maxItems", room.MaxRoutes) },
	}
	f.read = func(r *reader, v value, into, _ *catalog.Room) {
		switch {
		case v.kind != kindList:
			f.mistype(r, v)
			return
		case len(v.items) > room.MaxRoutes:
			f.refuse(r, v)
			return
		}
		routes := make([]room.Route, len(v.items))
		for i, item := range v.items {
			r.within(fmt.Sprintf("%s[%d]", name, i), item, func() {
				routes[i] = decode(r, item, routeFields, &room.Route{Path: "/"}, nil)
			})
		}
		into.Settings.AdditionalRoutes = routes
	}
	f.show = func(r *catalog.Room, now time.Time) any {
		all := make([]members, len(r.Settings.AdditionalRoutes))
		for i := range all {
			all[i] = show(&r.Settings.AdditionalRoutes[i], routeFields, now)
		}
		return all
	}
	f.copy = func(from, into *catalog.Room) {
		into.Settings.AdditionalRoutes = slices.Clone(from.Settings.AdditionalRoutes)
	}
	return f
}
