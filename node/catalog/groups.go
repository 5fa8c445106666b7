package catalog

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// A room's settings in groups, as they are written. Names and meanings stay once they are
// released: nodes of several versions read each other's. A field that is not known is
// passed over, and one that is missing has the value that it has in a new room.

// group is some settings of a room in the form in which they are written.
type group interface {
	of(r *Room)   // takes the settings out of r
	into(r *Room) // puts them there
}

// identity is the group without which there is no room.
const identity = "identity"

// pageGroup is the group that names the text of the room's page.
const pageGroup = "page"

// groups are all of them, with a value to read into.
var groups = []struct {
	name string
	make func() group
}{
	{identity, func() group { return new(identityGroup) }},
	{"routes", func() group { return new(routesGroup) }},
	{"limits", func() group { return new(limitsGroup) }},
	{"switches", func() group { return new(switchesGroup) }},
	{"queueing", func() group { return new(queueingGroup) }},
	{"sessions", func() group { return new(sessionsGroup) }},
	{"cookie", func() group { return new(cookieGroup) }},
	{"guards", func() group { return new(guardsGroup) }},
	{pageGroup, func() group { return new(lookGroup) }},
}

type identityGroup struct {
	Zone        string    `json:"zone"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"created"`
}

func (g *identityGroup) of(r *Room) {
	*g = identityGroup{r.Zone, r.Settings.Name, r.Description, r.Created.UTC()}
}

func (g *identityGroup) into(r *Room) {
	r.Zone, r.Settings.Name, r.Description, r.Created = g.Zone, g.Name, g.Description, g.Created
}

type routesGroup struct {
	Host         string  `json:"host,omitzero"`
	Path         string  `json:"path"`
	CookieSuffix string  `json:"cookie_suffix,omitzero"` // here since additional routes need it
	Additional   []route `json:"additional_routes,omitempty"`
}

type route struct {
	Host string `json:"host,omitzero"`
	Path string `json:"path,omitzero"`
}

func (g *routesGroup) of(r *Room) {
	*g = routesGroup{Host: r.Settings.Host, Path: r.Settings.Path, CookieSuffix: r.Settings.CookieSuffix}
	for _, a := range r.Settings.AdditionalRoutes {
		g.Additional = append(g.Additional, route(a))
	}
}

func (g *routesGroup) into(r *Room) {
	r.Settings.Host, r.Settings.Path, r.Settings.CookieSuffix = g.Host, g.Path, g.CookieSuffix
	r.Settings.AdditionalRoutes = nil
	for _, a := range g.Additional {
		r.Settings.AdditionalRoutes = append(r.Settings.AdditionalRoutes, room.Route(a))
	}
}

type limitsGroup struct {
	TotalActiveUsers  int `json:"total_active_users"`
	NewUsersPerMinute int `json:"new_users_per_minute"`
}

func (g *limitsGroup) of(r *Room) {
	*g = limitsGroup{r.Settings.TotalActiveUsers, r.Settings.NewUsersPerMinute}
}

func (g *limitsGroup) into(r *Room) {
	r.Settings.TotalActiveUsers, r.Settings.NewUsersPerMinute = g.TotalActiveUsers, g.NewUsersPerMinute
}

// switchesGroup is by itself so that whoever throws one in a hurry changes nothing else.
type switchesGroup struct {
	QueueAll  bool `json:"queue_all,omitzero"`
	DryRun    bool `json:"dry_run,omitzero"`
	Suspended bool `json:"suspended,omitzero"`

	AdmitsWhileDown bool `json:"admits_while_down,omitzero"`
}

func (g *switchesGroup) of(r *Room) {
	s := &r.Settings
	*g = switchesGroup{QueueAll: s.QueueAll, DryRun: s.DryRun, Suspended: s.Suspended, AdmitsWhileDown: s.AdmitsWhileDown}
}

func (g *switchesGroup) into(r *Room) {
	r.Settings.QueueAll, r.Settings.DryRun, r.Settings.Suspended = g.QueueAll, g.DryRun, g.Suspended
	r.Settings.AdmitsWhileDown = g.AdmitsWhileDown
}

type queueingGroup struct {
	Method          room.Method      `json:"queueing_method"`
	Policy          room.Policy      `json:"policy"`
	CurveFactor     float64          `json:"curve_factor"`
	OnPartition     room.OnPartition `json:"on_partition"`
	ShareFreeze     time.Duration    `json:"share_freeze_ns"`
	BucketSpan      time.Duration    `json:"bucket_span_ns"`
	RefreshInterval time.Duration    `json:"refresh_interval_ns"`
	PlaceKept       time.Duration    `json:"place_kept_ns"`
}

func (g *queueingGroup) of(r *Room) {
	s := &r.Settings
	*g = queueingGroup{s.QueueingMethod, s.Policy, s.CurveFactor, s.OnPartition, s.ShareFreeze, s.BucketSpan, s.RefreshInterval, s.PlaceKept}
}

func (g *queueingGroup) into(r *Room) {
	s := &r.Settings
	s.QueueingMethod, s.Policy, s.CurveFactor, s.OnPartition = g.Method, g.Policy, g.CurveFactor, g.OnPartition
	s.ShareFreeze, s.BucketSpan, s.RefreshInterval, s.PlaceKept = g.ShareFreeze, g.BucketSpan, g.RefreshInterval, g.PlaceKept
}

type sessionsGroup struct {
	Duration       time.Duration        `json:"session_duration_ns"`
	DisableRenewal bool                 `json:"disable_session_renewal,omitzero"`
	OriginCommands []room.OriginCommand `json:"enabled_origin_commands,omitempty"`
}

func (g *sessionsGroup) of(r *Room) {
	*g = sessionsGroup{r.Settings.SessionDuration, r.Settings.DisableSessionRenewal, r.Settings.EnabledOriginCommands}
}

func (g *sessionsGroup) into(r *Room) {
	r.Settings.SessionDuration, r.Settings.DisableSessionRenewal, r.Settings.EnabledOriginCommands = g.Duration, g.DisableRenewal, g.OriginCommands
}

type cookieGroup struct {
	SameSite    room.SameSite `json:"samesite,omitzero"`
	Secure      room.Secure   `json:"secure,omitzero"`
	Partitioned bool          `json:"partitioned,omitzero"`
}

func (g *cookieGroup) of(r *Room)   { *g = cookieGroup(r.Settings.Front.Cookie) }
func (g *cookieGroup) into(r *Room) { r.Settings.Front.Cookie = room.CookieAttributes(*g) }

// guardsGroup is what is done about those who abuse passes or come in crowds.
type guardsGroup struct {
	BindAddress      bool              `json:"bind_address,omitzero"`
	BindUserAgent    bool              `json:"bind_user_agent,omitzero"`
	IPv4Prefix       int               `json:"bind_ipv4_prefix,omitzero"`
	IPv6Prefix       int               `json:"bind_ipv6_prefix,omitzero"`
	NewPerAddress    int               `json:"max_new_visitors_per_address,omitzero"`
	NewVisitors      int               `json:"max_new_visitors,omitzero"`
	SharedPasses     room.SharedAction `json:"shared_passes,omitzero"`
	AddressesPerPass int               `json:"addresses_per_pass,omitzero"`
	TurnstileMode    string            `json:"turnstile_mode,omitzero"`
	TurnstileAction  string            `json:"turnstile_action,omitzero"`
}

func (g *guardsGroup) of(r *Room) {
	f := &r.Settings.Front
	*g = guardsGroup{
		f.Binding.Address, f.Binding.UserAgent, f.Binding.IPv4Prefix, f.Binding.IPv6Prefix,
		f.NewVisitors.PerAddress, f.NewVisitors.All, f.Sharing.Action, f.Sharing.Addresses,
		r.Turnstile.Mode, r.Turnstile.Action,
	}
}

func (g *guardsGroup) into(r *Room) {
	f := &r.Settings.Front
	f.Binding = room.Binding{Address: g.BindAddress, UserAgent: g.BindUserAgent, IPv4Prefix: g.IPv4Prefix, IPv6Prefix: g.IPv6Prefix}
	f.NewVisitors = room.NewVisitors{PerAddress: g.NewPerAddress, All: g.NewVisitors}
	f.Sharing = room.Sharing{Action: g.SharedPasses, Addresses: g.AddressesPerPass}
	r.Turnstile = Turnstile{g.TurnstileMode, g.TurnstileAction}
}

type lookGroup struct {
	Page           textRef  `json:"page,omitzero"` // whose text stands under keys of its own
	Language       string   `json:"default_template_language,omitzero"`
	StatusCode     int      `json:"queueing_status_code"`
	Message        string   `json:"message,omitzero"`
	NoJSON         bool     `json:"json_response_disabled,omitzero"`
	FrameAncestors []string `json:"frame_ancestors"` // null and an empty list mean different things
}

func (g *lookGroup) of(r *Room) {
	f := &r.Settings.Front
	*g = lookGroup{refOf(f.CustomPage), f.Language, r.Settings.QueueingStatusCode, f.Message, f.NoJSON, f.FrameAncestors}
}

func (g *lookGroup) into(r *Room) {
	f := &r.Settings.Front
	f.Language, r.Settings.QueueingStatusCode, f.Message, f.NoJSON, f.FrameAncestors = g.Language, g.StatusCode, g.Message, g.NoJSON, g.FrameAncestors
}
