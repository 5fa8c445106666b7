package room

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/settings"
)

// What operators may set of a room and its parts: these tables are all that is known of
// names, meanings, bounds and defaults, and everything that serves settings goes by them.

// Defaults that are needed elsewhere.
const (
	DefaultRefreshInterval = 20 * time.Second
	DefaultShareFreeze     = 15 * time.Minute
)

const (
	hostAllowed = `a host name without scheme, port or wildcard, such as tickets.example.com, in ASCII (xn--bcher-kva.example); "" for every host`
	maxUsers    = math.MaxInt32
	maxTag      = 35 // characters of the tag of a language
)

var (
	userKind    = settings.Int(1, maxUsers)
	sessionKind = settings.Duration(time.Second, 24*time.Hour, time.Millisecond)
	methodKind  = settings.Word(FIFO, Random, Passthrough, Reject)
	nameKind    = settings.Letters(1, 64, "-_.")
	visitorKind = settings.Int(0, MaxNewVisitors)
	hostKind    = settings.Normal("host", hostAllowed, func(s string) (string, bool) {
		host, ok := NormalHost(s)
		return host, ok || s == ""
	}, func(s string) bool {
		host, _ := NormalHost(s)
		return host == s
	})
	pathKind = settings.Normal("path", routePaths, func(s string) (string, bool) {
		if s == "" {
			return "/", true // as SDKs say nothing
		}
		path, err := RoutePath(s)
		return path, err == nil
	}, isRoutePath)
)

// Fields returns the settings of a room that are single values or lists of them. languages
// are those that there are pages in; nil: that is not known.
func Fields(languages []string) settings.Table[Settings] {
	return slices.Concat(routeOf(), limitsOf(), queueOf(), passOf(), pageOf(languages))
}

// fields are those that Validate and WithDefaults go by.
var fields = Fields(nil)

func routeOf() settings.Table[Settings] {
	return settings.Table[Settings]{
		settings.New("name", "its name; a room is the same room on every node by its name", nameKind, "", func(s *Settings) *string { return &s.Name }).Must(),
		settings.New("host", `the exact host of requests; "" for every host`, hostKind, "", func(s *Settings) *string { return &s.Host }).Unless("every host").Must().
			With("Upper case and a dot at the end make no difference"),
		settings.New("path", "this path and all below it; of several rooms the longest path counts", pathKind, "/", func(s *Settings) *string { return &s.Path }).
			With("Requests are [never found](security.md#requests) at any other path. `/café` and `/caf%C3%A9` are the same, and so are `/x//y` and `/x/y`"),
		settings.New("cookie-suffix", "appended to the name of the cookie after a _; rooms that share a host need different ones, or none", settings.Letters(0, 64, "-_"), "", func(s *Settings) *string { return &s.CookieSuffix }),
	}
}

func limitsOf() settings.Table[Settings] {
	return settings.Table[Settings]{
		settings.New("total-active-users", "visitors on the site at one time", userKind, 0, func(s *Settings) *int { return &s.TotalActiveUsers }).Must().
			With("Lower: more people wait. Higher: the site must stand it"),
		settings.New("new-users-per-minute", "visitors let in within a minute", userKind, 0, func(s *Settings) *int { return &s.NewUsersPerMinute }).Must().
			With("Lower: places that are free stay empty for longer. Higher: the site meets more first pages at once"),
		settings.New("session-duration", "how long a visitor counts as active after the last request", sessionKind, 5*time.Minute, func(s *Settings) *time.Duration { return &s.SessionDuration }).
			With("Also after the last bytes of one that goes on: see [Sessions](#sessions). Shorter: who reads a page for long loses the place. Longer: who has left holds a place for longer"),
		settings.New("disable-session-renewal", "with true a session ends session-duration after it began, whatever the visitor does", settings.Truth(), false, func(s *Settings) *bool { return &s.DisableSessionRenewal }).
			With("Then the visitor is new, and queues if there is a queue"),
	}
}

func queueOf() settings.Table[Settings] {
	return settings.Table[Settings]{
		settings.New("queueing-method", "who is let in next", methodKind, FIFO, func(s *Settings) *Method { return &s.QueueingMethod }).
			With("See below"),
		settings.New("queue-all", "with true nobody is let in; who is on the site stays", settings.Truth(), false, func(s *Settings) *bool { return &s.QueueAll }).
			With("Places are kept, and no wait is estimated"),
		settings.New("hold-while-down", "with true a node lets nobody new in while no origin of the site answers it", settings.Not(), false, func(s *Settings) *bool { return &s.AdmitsWhileDown }).
			With("See [below](#while-the-site-is-down)"),
		settings.New("dry-run", "with true all is decided and counted, and who would have queued passes all the same", settings.Truth(), false, func(s *Settings) *bool { return &s.DryRun }).
			With("`would_queue` in the status counts these requests. For trying limits on real traffic: the site is not protected"),
		settings.New("suspended", "with true all requests go to the site, uncounted, as if there were no room", settings.Truth(), false, func(s *Settings) *bool { return &s.Suspended }).
			With("They get no cookie"),
		settings.New("policy", "the admission policy: how many visitors a node may let in by itself", settings.Word(Escrow, Even, Curve, Counter, Open), Escrow, func(s *Settings) *Policy { return &s.Policy }).
			With("See below"),
		settings.New("on-partition", "under escrow, what becomes of a session when the node that it hangs on is out of reach", settings.Word(PartitionHold, PartitionOpen), PartitionHold, func(s *Settings) *OnPartition { return &s.OnPartition }).
			With("See below"),
		settings.New("curve-factor", "exponent of the policy curve", settings.Float(0.01, 8), 1, func(s *Settings) *float64 { return &s.CurveFactor }).
			With("Smaller: queues earlier. Larger: goes further over the limit when all nodes meet a crowd at once"),
		settings.New("share-freeze", "how long a site that has fallen silent keeps its share of the places", settings.OrNever(settings.Duration(time.Second, 24*time.Hour, 1)), DefaultShareFreeze, func(s *Settings) *time.Duration { return &s.ShareFreeze }).
			With("See below. Without meaning under `escrow`"),
		settings.List("enabled-origin-commands", "what the site may tell the room in its answers", settings.Several(settings.Word(Revoke), 1), func(s *Settings) *[]OriginCommand { return &s.EnabledOriginCommands }).
			With("See below"),
		settings.New("bucket-span", "visitors who arrive within it share a bucket of the queue", settings.Duration(time.Second, time.Minute, time.Second), time.Minute, func(s *Settings) *time.Duration { return &s.BucketSpan }).
			With("Shorter: a finer order between sites, more to tell other sites about. Longer: the reverse"),
		settings.New("refresh-interval", "how often a waiting visitor asks", settings.Duration(time.Second, 10*time.Minute, time.Second), DefaultRefreshInterval, func(s *Settings) *time.Duration { return &s.RefreshInterval }).
			With("Under `escrow` with `fifo` those near the head of the line ask more often, down to a tenth of it and to 2s. Shorter: free places are taken sooner, more requests. Longer: the reverse"),
		settings.New("place-kept", "how long the place is kept of a visitor who stopped asking", settings.Duration(time.Second, 24*time.Hour, time.Second), 5*time.Minute, func(s *Settings) *time.Duration { return &s.PlaceKept }).
			With("Shorter: a bad connection costs the place. Longer: who comes back late overtakes more people"),
		settings.New("queueing-status-code", "status of the waiting page", settings.Code(200, 202, 429), 200, func(s *Settings) *int { return &s.QueueingStatusCode }),
	}
}

func passOf() settings.Table[Settings] {
	bind := settings.List("bind-pass", "a pass that comes from another network, or another browser, counts for nothing", bindKind(), func(s *Settings) *Binding { return &s.Front.Binding }).
		With("See [Cookies](#cookies)")
	bind.Copy = func(from, into *Settings) {
		b := from.Front.Binding
		into.Front.Binding.Address, into.Front.Binding.UserAgent = b.Address, b.UserAgent
	}
	ignored := settings.ZeroIs(settings.Word(SharedIgnore, SharedLog, SharedQueue), SharedIgnore)
	return settings.Table[Settings]{
		bind,
		settings.New("bind-ipv4-prefix", "how many bits of an IPv4 address are its network", settings.ZeroIs(settings.Int(8, 32), DefaultIPv4Prefix), DefaultIPv4Prefix, func(s *Settings) *int { return &s.Front.Binding.IPv4Prefix }).
			With("More: fewer share one, and who is given another address is new more often. Changed, all who are bound are new"),
		settings.New("bind-ipv6-prefix", "how many bits of an IPv6 address are its network", settings.ZeroIs(settings.Int(16, 64), DefaultIPv6Prefix), DefaultIPv6Prefix, func(s *Settings) *int { return &s.Front.Binding.IPv6Prefix }).
			With("More: fewer share one, as above"),
		settings.New("shared-passes", "what becomes of the pass of somebody on the site that more than addresses-per-pass use", ignored, SharedLog, func(s *Settings) *SharedAction { return &s.Front.Sharing.Action }).
			With("See [Shared passes](#shared-passes)"),
		settings.New("addresses-per-pass", "how many addresses (IPv6: networks of 64 bits) may use one pass within a minute", settings.ZeroIs(settings.Int(1, MaxSharedAddresses), 4), 4, func(s *Settings) *int { return &s.Front.Sharing.Addresses }).
			With("Lower: who changes networks on the way is taken for several. Higher: more people share one place"),
		settings.New("max-new-visitors-per-address", "visitors of one address (IPv6: of one /64) whom a node takes into the line per minute; 0 for no limit", visitorKind, 1000, func(s *Settings) *int { return &s.Front.NewVisitors.PerAddress }).
			With("See [New visitors](#new-visitors). Lower: offices and mobile networks that share an address are told to come back. Higher: one machine makes the line look longer"),
		settings.New("max-new-visitors", "visitors of all addresses whom a node takes into the line per minute; 0 for no limit", visitorKind, 600_000, func(s *Settings) *int { return &s.Front.NewVisitors.All }).
			With("Lower: a real crowd is told to come back. Higher: many machines make the line look longer"),
	}
}

// bindKind is two truths as a list.
func bindKind() settings.Kind[Binding] {
	words := settings.Several(settings.Word("address", "user-agent"), 2)
	items := func(b Binding) (all []string) {
		if b.Address {
			all = append(all, "address")
		}
		if b.UserAgent {
			all = append(all, "user-agent")
		}
		return all
	}
	return settings.Kind[Binding]{
		Spec: words.Spec, Items: items,
		Set: func(into *Binding, s string) error {
			all := items(*into)
			err := words.Set(&all, s)
			into.Address, into.UserAgent = slices.Contains(all, "address"), slices.Contains(all, "user-agent")
			return err
		},
		Clear: func(b *Binding) { b.Address, b.UserAgent = false, false },
	}
}

func pageOf(languages []string) settings.Table[Settings] {
	language := settings.Text(maxTag, "the tag of a language, such as de-DE")
	if languages != nil {
		language = settings.Word(languages...)
	}
	return settings.Table[Settings]{
		settings.New("default-template-language", "the language of visitors who ask for none that there is", settings.ZeroIs(language, "en-US"), "", func(s *Settings) *string { return &s.Front.Language }).
			With("One of [languages](languages.md)"),
		settings.New("message", "what all who wait are told, in one language; lines are kept", messageKind(), "", func(s *Settings) *string { return &s.Front.Message }),
		settings.New("json-response-enabled", "whether programs that ask for JSON get it; with false they get the page, which loads itself again instead of bringing itself up to date", settings.Not(), false, func(s *Settings) *bool { return &s.Front.NoJSON }),
		settings.List("frame-ancestors", "who may show the waiting page in a frame", framesKind(), func(s *Settings) *[]string { return &s.Front.FrameAncestors }).
			With("For other sites see also [Cookies](#cookies)"),
	}
}

func messageKind() settings.Kind[string] {
	k := settings.Text(300, "a plain text of at most 300 characters")
	set := k.Set
	k.Set = func(into *string, s string) error { return set(into, strings.TrimRight(s, "\n")) } // a block of YAML ends with one
	return k
}

// framesKind writes self and none without their quotes, which would take two pairs in YAML.
func framesKind() settings.Kind[[]string] {
	k := settings.Several(settings.Of(
		settings.Spec{Type: "site", Allowed: "self, none, or a site such as https://shop.example"},
		func(s string) (string, bool) {
			if s == "self" || s == "none" {
				s = "'" + s + "'"
			}
			return s, s != ""
		}, func(s string) string { return strings.Trim(s, "'") }, nil), 100)
	k.Allowed = `["none"], or a list of self and sites such as https://shop.example`
	items := k.Items
	k.Items = func(sites []string) []string {
		if len(sites) == 0 {
			return []string{"self"}
		}
		return items(sites)
	}
	return k
}

// RouteFields are those of an additional route.
var RouteFields = settings.Table[Route]{
	settings.New("host", `the exact host; "" for every host`, hostKind, "", func(r *Route) *string { return &r.Host }).Unless("every host"),
	settings.New("path", "this path and all below it", settings.ZeroIs(pathKind, "/"), "/", func(r *Route) *string { return &r.Path }),
}

// CookieFields are those of CookieAttributes.
var CookieFields = settings.Table[CookieAttributes]{
	settings.New("samesite", "in which requests that other sites bring about the cookie is sent", settings.ZeroIs(settings.Word(SameSiteAuto, SameSiteLax, SameSiteNone, SameSiteStrict), SameSiteAuto), "", func(a *CookieAttributes) *SameSite { return &a.SameSite }).
		With("`auto`: `none` where the cookie is `Secure`, so that visitors keep their place when a payment service sends them back, and in frames; else `lax`, as browsers drop `None` without `Secure`. With `strict`, who follows a link from another site is new"),
	settings.New("secure", "whether the cookie travels over TLS only", settings.ZeroIs(settings.Word(SecureAuto, SecureAlways, SecureNever), SecureAuto), "", func(a *CookieAttributes) *Secure { return &a.Secure }).
		With("`auto`: if the visitor's side is TLS, at the node or as [proxies in front](#proxies-in-front) say. `always`: also where they do not say; over plain HTTP browsers then drop it, and nobody gets further. `never`: not with `samesite: none`"),
	settings.New("partitioned", "with true, browsers keep a cookie for each site that shows this one in a frame (CHIPS)", settings.Truth(), false, func(a *CookieAttributes) *bool { return &a.Partitioned }).
		With("They would refuse it otherwise. Not with `secure: never`, `lax` or `strict`; over plain HTTP it is left out"),
}

// RuleFields are those of a Rule.
var RuleFields = settings.Table[Rule]{
	settings.New("expression", "which requests it is about", settings.Expression(`starts_with(http.request.uri.path, "/static/")`), "", func(r *Rule) *string { return &r.Expression }).Must().
		With("In YAML, one that has a `#` in it, or begins with a quote or a `!`, stands in a block (`\\|`)"),
	settings.New("action", "what becomes of the requests", actionKind(), Bypass, func(r *Rule) *RuleAction { return &r.Action }),
	settings.New("description", "for operators, and in the log at level debug", settings.Text(maxDescription, "a text of at most 500 characters"), "", func(r *Rule) *string { return &r.Description }),
	settings.New("enabled", "with false it is as if it were not there, but for mistakes in it", settings.Not(), false, func(r *Rule) *bool { return &r.Disabled }),
}

// actionKind takes Bypass by the name that it has elsewhere as well.
func actionKind() settings.Kind[RuleAction] {
	const elsewhere = "bypass_waiting_room"
	words := settings.Word(elsewhere, string(Bypass))
	return settings.Of(words.Spec,
		func(s string) (RuleAction, bool) { return Bypass, words.Valid(s) },
		func(a RuleAction) string {
			if a == Bypass {
				return elsewhere
			}
			return string(a)
		}, func(a RuleAction) bool { return a == Bypass })
}

// EventFields are those of an Event.
var EventFields = settings.Table[Event]{
	settings.New("name", "unique in its room", nameKind, "", func(e *Event) *string { return &e.Name }).Must(),
	settings.New("event-start-time", "from then on its settings hold", settings.Moment(), time.Time{}, func(e *Event) *time.Time { return &e.Start }).Must(),
	settings.New("event-end-time", "from then on the room's own hold again; at least 1 minute after the start", settings.Moment(), time.Time{}, func(e *Event) *time.Time { return &e.End }).Must(),
	settings.New("prequeue-start-time", "who comes between then and the start waits for the start; 5 minutes to 12 hours before it", settings.Moment(), time.Time{}, func(e *Event) *time.Time { return &e.PrequeueStart }).
		With("Who waited before is let in as ever, and who is on the site stays; to have those wait as well, make it longer than `session-duration` and disable renewal"),
	settings.New("shuffle-at-event-start", "with true those of the pre-queue get their places at random", settings.Truth(), false, func(e *Event) *bool { return &e.Shuffle }).
		With("With false, by arrival. Needs a pre-queue"),
	settings.New("suspended", "with true it does not happen", settings.Truth(), false, func(e *Event) *bool { return &e.Suspended }),
	instead("total-active-users", userKind, func(e *Event) **int { return &e.TotalActiveUsers }).With("With `new-users-per-minute`, or neither"),
	instead("new-users-per-minute", userKind, func(e *Event) **int { return &e.NewUsersPerMinute }).With("With `total-active-users`, or neither"),
	instead("session-duration", sessionKind, func(e *Event) **time.Duration { return &e.SessionDuration }),
	instead("disable-session-renewal", settings.Truth(), func(e *Event) **bool { return &e.DisableSessionRenewal }),
	instead("queueing-method", methodKind, func(e *Event) **Method { return &e.QueueingMethod }),
}

// instead is a setting of a room that an event may override.
func instead[V any](name string, k settings.Kind[V], at func(*Event) **V) settings.Field[Event] {
	return settings.New(name, "instead of the room's", settings.Optional(k), nil, at).Unless("the room's")
}
