package catalog

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// What of rooms merges by itself. Routes are one unit, since where a room stands, and whether
// it may stand there, follows from all of them; so are the attributes of the cookie, and
// shared passes with the addresses that they may have.

func at[T, V any](name string, field func(*T) *V) unit[T] {
	return unit[T]{name: name, at: func(t *T) any { return field(t) }}
}

// together is several fields that are one unit. parts returns a pointer to a struct of
// pointers to them.
func together[T, P any](name string, parts func(*T) *P) unit[T] {
	return unit[T]{name: name, at: func(t *T) any { return parts(t) }, parts: true}
}

// setting is at for what the rules of queues go by.
func setting[V any](name string, field func(*room.Settings) *V) unit[Room] {
	return at(name, func(r *Room) *V { return field(&r.Settings) })
}

// fronted is at for what the front goes by.
func fronted[V any](name string, field func(*room.Front) *V) unit[Room] {
	return at(name, func(r *Room) *V { return field(&r.Settings.Front) })
}

type madeRoom struct {
	Zone    *string    `json:"zone"`
	Created *time.Time `json:"created"`
	File    *bool      `json:"file"`
}

type made struct {
	Created *time.Time `json:"created"`
	File    *bool      `json:"file"`
}

type routes struct {
	Host         *string           `json:"host"`
	Path         *string           `json:"path"`
	CookieSuffix *string           `json:"cookie_suffix"` // here since additional routes need it
	Additional   *some[room.Route] `json:"additional"`
}

type cookie struct {
	SameSite    *room.SameSite `json:"samesite"`
	Secure      *room.Secure   `json:"secure"`
	Partitioned *bool          `json:"partitioned"`
}

type sharing struct {
	Action    *room.SharedAction `json:"action"`
	Addresses *int               `json:"addresses"`
}

type binding struct {
	Address   *bool `json:"address"`
	UserAgent *bool `json:"user_agent"`
}

const (
	unitMade   = "made"
	unitName   = "name"
	unitRoutes = "routes"
	unitTotal  = "total_active_users"
	unitRate   = "new_users_per_minute"
	unitPage   = "page"
)

var roomUnits = units[Room]{
	{unitMade, func(r *Room) any { return &madeRoom{&r.Zone, &r.Created, &r.thing.file} }, true, true},
	at("description", func(r *Room) *string { return &r.Description }),
	setting(unitName, func(s *room.Settings) *string { return &s.Name }),
	together(unitRoutes, func(r *Room) *routes {
		s := &r.Settings
		return &routes{&s.Host, &s.Path, &s.CookieSuffix, (*some[room.Route])(&s.AdditionalRoutes)}
	}),

	setting(unitTotal, func(s *room.Settings) *int { return &s.TotalActiveUsers }),
	setting(unitRate, func(s *room.Settings) *int { return &s.NewUsersPerMinute }),
	setting("session_duration_ns", func(s *room.Settings) *time.Duration { return &s.SessionDuration }),
	setting("disable_session_renewal", func(s *room.Settings) *bool { return &s.DisableSessionRenewal }),
	setting("enabled_origin_commands", func(s *room.Settings) *some[room.OriginCommand] {
		return (*some[room.OriginCommand])(&s.EnabledOriginCommands)
	}),

	setting("queue_all", func(s *room.Settings) *bool { return &s.QueueAll }),
	setting("dry_run", func(s *room.Settings) *bool { return &s.DryRun }),
	setting("suspended", func(s *room.Settings) *bool { return &s.Suspended }),
	setting("admits_while_down", func(s *room.Settings) *bool { return &s.AdmitsWhileDown }),
	setting("queueing_method", func(s *room.Settings) *room.Method { return &s.QueueingMethod }),
	setting("policy", func(s *room.Settings) *room.Policy { return &s.Policy }),
	setting("curve_factor", func(s *room.Settings) *float64 { return &s.CurveFactor }),
	setting("on_partition", func(s *room.Settings) *room.OnPartition { return &s.OnPartition }),
	setting("share_freeze_ns", func(s *room.Settings) *time.Duration { return &s.ShareFreeze }),
	setting("bucket_span_ns", func(s *room.Settings) *time.Duration { return &s.BucketSpan }),
	setting("refresh_interval_ns", func(s *room.Settings) *time.Duration { return &s.RefreshInterval }),
	setting("place_kept_ns", func(s *room.Settings) *time.Duration { return &s.PlaceKept }),
	setting("queueing_status_code", func(s *room.Settings) *int { return &s.QueueingStatusCode }),

	together("cookie", func(r *Room) *cookie {
		c := &r.Settings.Front.Cookie
		return &cookie{&c.SameSite, &c.Secure, &c.Partitioned}
	}),
	together("bind", func(r *Room) *binding {
		b := &r.Settings.Front.Binding
		return &binding{&b.Address, &b.UserAgent}
	}),
	fronted("bind_ipv4_prefix", func(f *room.Front) *int { return &f.Binding.IPv4Prefix }),
	fronted("bind_ipv6_prefix", func(f *room.Front) *int { return &f.Binding.IPv6Prefix }),
	fronted("max_new_visitors_per_address", func(f *room.Front) *int { return &f.NewVisitors.PerAddress }),
	fronted("max_new_visitors", func(f *room.Front) *int { return &f.NewVisitors.All }),
	together("sharing", func(r *Room) *sharing {
		s := &r.Settings.Front.Sharing
		return &sharing{&s.Action, &s.Addresses}
	}),
	at("turnstile_mode", func(r *Room) *string { return &r.Turnstile.Mode }),
	at("turnstile_action", func(r *Room) *string { return &r.Turnstile.Action }),

	at(unitPage, func(r *Room) *textRef { return &r.page }),
	fronted("default_template_language", func(f *room.Front) *string { return &f.Language }),
	fronted("message", func(f *room.Front) *string { return &f.Message }),
	fronted("json_response_disabled", func(f *room.Front) *bool { return &f.NoJSON }),
	fronted("frame_ancestors", func(f *room.Front) *[]string { return &f.FrameAncestors }), // null and an empty list mean different things
}

// freshRoom is a room of which nothing is said: what is not written of one is as it is here.
func freshRoom() Room { return Room{Settings: room.Settings{}.WithDefaults()} }
