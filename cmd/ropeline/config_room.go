package main

import (
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// What the known settings of rooms and events are made of. What a single value
// may be is said here; how several fit together, by room.Settings, which checks
// all of it again.
const maxUsers = math.MaxInt32

var (
	methods  = []room.Method{room.FIFO, room.Random, room.Passthrough, room.Reject}
	policies = []room.Policy{room.Escrow, room.Even, room.Curve, room.Counter, room.Open}
)

func activeValue(dst *int) pflag.Value    { return intValue{dst, 1, maxUsers} }
func perMinuteValue(dst *int) pflag.Value { return intValue{dst, 1, maxUsers} }
func sessionValue(dst *time.Duration) pflag.Value {
	return durationValue{dst, time.Second, 24 * time.Hour}
}
func methodValue(dst *room.Method) pflag.Value { return enumValue[room.Method]{dst, methods} }
func yesOrNo(dst *bool) pflag.Value            { return truthValue{dst: dst} }

// roomFlags binds one room, but for what only a file can say; see roomParts.
func roomFlags(fs *pflag.FlagSet, s *room.Settings) {
	fs.Var(nameValue{&s.Name, "-_", 64}, "room", "the name of the room, the same on every node")
	fs.Var(hostValue{&s.Host}, "host", "only requests for this host queue (default: every host)")
	fs.Var(pathValue{&s.Path}, "path", "only requests below this path queue")
	fs.Var(nameValue{&s.CookieSuffix, "-_", 64}, "cookie-suffix", "appended to the name of the cookie")
	fs.Var(activeValue(&s.TotalActiveUsers), "total-active-users", "visitors on the site at one time")
	fs.Var(perMinuteValue(&s.NewUsersPerMinute), "new-users-per-minute", "visitors let in per minute")
	fs.Var(sessionValue(&s.SessionDuration), "session-duration", "how long a visitor counts as active after the last request")
	truthFlag(fs, &s.DisableSessionRenewal, "disable-session-renewal", "a session ends session-duration after it began, whatever the visitor does")
	fs.Var(methodValue(&s.QueueingMethod), "queueing-method", "fifo, random, passthrough or reject")
	fs.Var(enumValue[room.Policy]{&s.Policy, policies}, "policy", "who may let in how many: escrow, even, curve, counter or open")
	fs.Var(enumValue[room.OnPartition]{&s.OnPartition, []room.OnPartition{room.PartitionHold, room.PartitionOpen}}, "on-partition", "under escrow, a session whose node is out of reach: hold or open")
	fs.Var(floatValue{&s.CurveFactor, 0.01, 8}, "curve-factor", "exponent of the policy curve")
	fs.Var(freezeValue{durationValue{&s.ShareFreeze, 0, 24 * time.Hour}}, "share-freeze", "how long a site that has fallen silent keeps its share; 0s: not at all")
	truthFlag(fs, &s.QueueAll, "queue-all", "let nobody in; who is on the site stays")
	truthFlag(fs, &s.DryRun, "dry-run", "decide and count, and let everybody pass: what the limits would do")
	truthFlag(fs, &s.Suspended, "suspended", "let everybody pass uncounted, as if there were no room")
	fs.Var(commandsValue{&s.EnabledOriginCommands}, "enabled-origin-commands", "what the site may tell the room in its answers: revoke")
	fs.Var(durationValue{&s.BucketSpan, time.Second, time.Minute}, "bucket-span", "visitors who arrive within it share a bucket of the queue")
	fs.Var(durationValue{&s.RefreshInterval, time.Second, 10 * time.Minute}, "refresh-interval", "how often a waiting visitor asks")
	fs.Var(durationValue{&s.PlaceKept, time.Second, 24 * time.Hour}, "place-kept", "how long the place is kept of a visitor who stopped asking")
	fs.Var(codeValue{&s.QueueingStatusCode, []int{200, 202, 429}}, "queueing-status-code", "status of the waiting page: 200, 202 or 429")
	bindingFlags(fs, &s.Front.Binding)
	sharingFlags(fs, &s.Front.Sharing)
	newVisitorsFlags(fs, &s.Front.NewVisitors)
	pageFlags(fs, &s.Front)
}

// routeFlags binds one additional route of a room.
func routeFlags(fs *pflag.FlagSet, e *room.Route) {
	fs.Var(hostValue{&e.Host}, "host", "the exact host (default: every host)")
	fs.Var(pathValue{&e.Path}, "path", "this path and all below it (default: /)")
}

// eventFlags binds one event of a room.
func eventFlags(fs *pflag.FlagSet, e *room.Event) {
	fs.Var(nameValue{&e.Name, "-_", 64}, "name", "the name of the event")
	fs.Var(timeValue{&e.Start}, "event-start-time", "when its settings begin to hold")
	fs.Var(timeValue{&e.End}, "event-end-time", "when the room's own settings hold again")
	fs.Var(timeValue{&e.PrequeueStart}, "prequeue-start-time", "from when on new visitors wait for the start")
	truthFlag(fs, &e.Shuffle, "shuffle-at-event-start", "those who waited for the start get places at random")
	truthFlag(fs, &e.Suspended, "suspended", "the event does not happen")
	fs.Var(optionalValue[int]{&e.TotalActiveUsers, activeValue}, "total-active-users", "instead of the room's")
	fs.Var(optionalValue[int]{&e.NewUsersPerMinute, perMinuteValue}, "new-users-per-minute", "instead of the room's")
	fs.Var(optionalValue[time.Duration]{&e.SessionDuration, sessionValue}, "session-duration", "instead of the room's")
	fs.Var(optionalValue[room.Method]{&e.QueueingMethod, methodValue}, "queueing-method", "instead of the room's")
	fs.Var(optionalValue[bool]{&e.DisableSessionRenewal, yesOrNo}, "disable-session-renewal", "instead of the room's")
	fs.Var(optionalValue[string]{&e.CustomPage, pageValue}, "custom-page-file", "instead of the room's")
}

// truthFlag binds a flag that alone, without a value, means yes.
func truthFlag(fs *pflag.FlagSet, dst *bool, name, usage string) {
	fs.VarPF(truthValue{dst: dst}, name, "", usage).NoOptDefVal = "true"
}
