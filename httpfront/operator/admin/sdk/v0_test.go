package sdk

import (
	"errors"
	"strings"
	"testing"
	"time"

	cloudflare "github.com/cloudflare/cloudflare-go"
)

type v0 struct {
	*nodes
	api  *cloudflare.API
	zone *cloudflare.ResourceContainer
}

func newV0(t *testing.T) *v0 {
	n := meet(t, "v0")
	api, err := cloudflare.NewWithAPIToken(n.token, cloudflare.BaseURL(n.base), cloudflare.HTTPClient(n.client()), cloudflare.UsingRateLimit(1000), cloudflare.UsingRetryPolicy(0, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return &v0{n, api, cloudflare.ZoneIdentifier(n.zone)}
}

// made makes a room.
func (v *v0) made(name string) cloudflare.WaitingRoom {
	v.Helper()
	return *must(v.api.CreateWaitingRoom(v.Context(), v.zone.Identifier, cloudflare.WaitingRoom{
		Name: name, Host: name + "." + v.zone.Identifier + ".example", Path: "/shop", TotalActiveUsers: 20, NewUsersPerMinute: 10, SessionDuration: 7,
	}))(v.T)
}

func TestV0(t *testing.T) {
	v := newV0(t)
	v.rooms()
	v.events()
	v.rules()
	v.settings()
	v.refusals()
	v.wantAll("v4ListRoomsOfAccount") // of which the SDK does not know
}

func (v *v0) rooms() {
	t, ctx, zone := v.T, v.Context(), v.zone.Identifier
	made := v.made("tickets")
	want(t, "made", made.QueueingStatusCode, 200)
	want(t, "made", made.SessionDuration, 7)
	want(t, "made", made.QueueingMethod, "fifo")
	v.made("shop")
	list := must(v.api.ListWaitingRooms(ctx, zone))(t)
	want(t, "listed", len(list), 2)
	got := must(v.api.WaitingRoom(ctx, zone, made.ID))(t)
	want(t, "read", got.Name, "tickets")
	want(t, "read", got.CreatedOn.Equal(made.CreatedOn), true)

	got.Description, got.QueueingMethod, got.TotalActiveUsers, got.CookieSuffix = "changed", "random", 30, "x"
	got.AdditionalRoutes = []*cloudflare.WaitingRoomRoute{{Host: "also." + zone + ".example", Path: "/"}}
	got.CookieAttributes = &cloudflare.WaitingRoomCookieAttributes{Samesite: "lax", Secure: "always"}
	got.EnabledOriginCommands, got.JsonResponseEnabled, got.QueueingStatusCode = []string{"revoke"}, true, 429
	got.CustomPageHTML, got.DefaultTemplateLanguage, got.TurnstileMode = "<p>{{waitTime}}", "de-DE", "off"
	for _, change := range []func() (cloudflare.WaitingRoom, error){
		func() (cloudflare.WaitingRoom, error) { return v.api.UpdateWaitingRoom(ctx, zone, got) },
		func() (cloudflare.WaitingRoom, error) { return v.api.WaitingRoom(ctx, zone, made.ID) },
		func() (cloudflare.WaitingRoom, error) { return v.api.ChangeWaitingRoom(ctx, zone, made.ID, got) },
	} {
		now := must(change())(t)
		want(t, "changed", now.Description, "changed")
		want(t, "changed", now.QueueingMethod, "random")
		want(t, "changed", now.TotalActiveUsers, 30)
		want(t, "changed", now.AdditionalRoutes[0].Host, "also."+zone+".example")
		want(t, "changed", *now.CookieAttributes, cloudflare.WaitingRoomCookieAttributes{Samesite: "lax", Secure: "always"})
		want(t, "changed", strings.Join(now.EnabledOriginCommands, ","), "revoke")
		want(t, "changed", now.JsonResponseEnabled, true)
		want(t, "changed", now.QueueingStatusCode, 429)
		want(t, "changed", now.CustomPageHTML+now.DefaultTemplateLanguage+now.TurnstileMode, "<p>{{waitTime}}de-DEoff")
	}
	status := must(v.api.WaitingRoomStatus(ctx, zone, made.ID))(t)
	if !strings.Contains(" not_queueing queueing event_prequeueing suspended ", " "+status.Status+" ") {
		t.Errorf("the status is %q", status.Status)
	}
	if v.nodes.api != nil {
		want(t, "status", status, cloudflare.WaitingRoomStatus{Status: "queueing", EstimatedQueuedUsers: 90, EstimatedTotalActiveUsers: 200, MaxEstimatedTimeMinutes: 2})
	}
	preview := must(v.api.WaitingRoomPagePreview(ctx, zone, "<p>{{waitTime}}"))(t)
	if !strings.HasPrefix(preview.PreviewURL, "http") {
		t.Errorf("the preview is at %q", preview.PreviewURL)
	}
	if err := v.api.DeleteWaitingRoom(ctx, zone, made.ID); err != nil {
		t.Fatal(err)
	}
	_, err := v.api.WaitingRoom(ctx, zone, made.ID)
	if _, gone := errors.AsType[*cloudflare.NotFoundError](err); !gone {
		t.Errorf("the room is deleted, and asked for it says %v", err)
	}
}

func (v *v0) events() {
	t, ctx, zone := v.T, v.Context(), v.zone.Identifier
	room := v.made("events").ID
	prequeue := begin.Add(-time.Hour)
	made := must(v.api.CreateWaitingRoomEvent(ctx, zone, room, cloudflare.WaitingRoomEvent{
		Name: "sale", EventStartTime: begin, EventEndTime: begin.Add(time.Hour), PrequeueStartTime: &prequeue, ShuffleAtEventStart: true, TotalActiveUsers: 5, NewUsersPerMinute: 4,
	}))(t)
	want(t, "listed", len(must(v.api.ListWaitingRoomEvents(ctx, zone, room))(t)), 1)
	got := must(v.api.WaitingRoomEvent(ctx, zone, room, made.ID))(t)
	want(t, "read", got.PrequeueStartTime.Equal(prequeue), true)
	want(t, "read", got.SessionDuration, 0)
	details := must(v.api.WaitingRoomEventPreview(ctx, zone, room, made.ID))(t)
	want(t, "details", details.SessionDuration, 7)
	want(t, "details", details.QueueingMethod, "fifo")
	want(t, "details", details.TotalActiveUsers, 5)
	for i, change := range []func(string, cloudflare.WaitingRoomEvent) (cloudflare.WaitingRoomEvent, error){
		func(id string, e cloudflare.WaitingRoomEvent) (cloudflare.WaitingRoomEvent, error) {
			return v.api.UpdateWaitingRoomEvent(ctx, zone, id, e)
		},
		func(id string, e cloudflare.WaitingRoomEvent) (cloudflare.WaitingRoomEvent, error) {
			return v.api.ChangeWaitingRoomEvent(ctx, zone, id, e)
		},
	} {
		got.SessionDuration, got.QueueingMethod, got.Suspended = 3+i, "random", true
		now := must(change(room, got))(t)
		want(t, "changed", now.SessionDuration, 3+i)
		want(t, "changed", now.QueueingMethod, "random")
		want(t, "changed", must(v.api.WaitingRoomEvent(ctx, zone, room, made.ID))(t).SessionDuration, 3+i)
	}
	if at := must(v.api.WaitingRoom(ctx, zone, room))(t).NextEventStartTime; at != nil {
		t.Errorf("the only event is suspended, and the next is at %v", at)
	}
	if err := v.api.DeleteWaitingRoomEvent(ctx, zone, room, made.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "deleted", len(must(v.api.ListWaitingRoomEvents(ctx, zone, room))(t)), 0)
}

func (v *v0) rules() {
	t, ctx := v.T, v.Context()
	room := v.made("rules").ID
	rule := func(host string) cloudflare.WaitingRoomRule {
		return cloudflare.WaitingRoomRule{Action: "bypass_waiting_room", Expression: `http.host eq "` + host + `"`, Enabled: cloudflare.BoolPtr(true)}
	}
	hosts := func(rules []cloudflare.WaitingRoomRule) (all string) {
		for _, r := range rules {
			all += strings.Split(r.Expression, `"`)[1]
		}
		return all
	}
	all := must(v.api.ReplaceWaitingRoomRules(ctx, v.zone, cloudflare.ReplaceWaitingRoomRuleParams{WaitingRoomID: room, Rules: []cloudflare.WaitingRoomRule{rule("a"), rule("b")}}))(t)
	want(t, "replaced", hosts(all), "ab")
	all = must(v.api.CreateWaitingRoomRule(ctx, v.zone, cloudflare.CreateWaitingRoomRuleParams{WaitingRoomID: room, Rule: rule("c")}))(t)
	want(t, "added", hosts(all), "abc")
	changed := all[1]
	changed.Description, changed.Enabled = "why", cloudflare.BoolPtr(false)
	all = must(v.api.UpdateWaitingRoomRule(ctx, v.zone, cloudflare.UpdateWaitingRoomRuleParams{WaitingRoomID: room, Rule: changed}))(t)
	want(t, "changed", all[1].Description, "why")
	want(t, "changed", *all[1].Enabled, false)
	want(t, "changed", all[1].Version, "2")
	all = must(v.api.ReplaceWaitingRoomRules(ctx, v.zone, cloudflare.ReplaceWaitingRoomRuleParams{WaitingRoomID: room, Rules: all}))(t)
	want(t, "sent back", all[1].Version, "2")
	all = must(v.api.DeleteWaitingRoomRule(ctx, v.zone, cloudflare.DeleteWaitingRoomRuleParams{WaitingRoomID: room, RuleID: all[0].ID}))(t)
	want(t, "deleted", hosts(all), "bc")
	want(t, "read", hosts(must(v.api.ListWaitingRoomRules(ctx, v.zone, cloudflare.ListWaitingRoomRuleParams{WaitingRoomID: room}))(t)), "bc")
}

func (v *v0) settings() {
	t, ctx := v.T, v.Context()
	want(t, "settings", must(v.api.GetWaitingRoomSettings(ctx, v.zone))(t).SearchEngineCrawlerBypass, false)
	want(t, "patched", must(v.api.PatchWaitingRoomSettings(ctx, v.zone, cloudflare.PatchWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(true)}))(t).SearchEngineCrawlerBypass, true)
	want(t, "read", must(v.api.GetWaitingRoomSettings(ctx, v.zone))(t).SearchEngineCrawlerBypass, true)
	want(t, "replaced", must(v.api.UpdateWaitingRoomSettings(ctx, v.zone, cloudflare.UpdateWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(false)}))(t).SearchEngineCrawlerBypass, false)
}

// refusals come to whoever asks through the SDK as well.
func (v *v0) refusals() {
	_, err := v.api.CreateWaitingRoom(v.Context(), v.zone.Identifier, cloudflare.WaitingRoom{Name: "a b"})
	refused, ok := errors.AsType[*cloudflare.RequestError](err)
	if !ok || len(refused.ErrorMessages()) < 3 || !strings.Contains(err.Error(), `name: "a b" is not allowed`) {
		v.Errorf("it says %v", err)
	}
}
