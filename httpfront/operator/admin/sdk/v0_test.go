package sdk

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	cloudflare "github.com/cloudflare/cloudflare-go"

	"github.com/ropeline/ropeline/bench/must"
)

type v0 struct {
	*nodes
	api  *cloudflare.API
	zone *cloudflare.ResourceContainer
}

func newV0(t *testing.T) *v0 {
	n := meet(t, "v0")
	api := must.Do(cloudflare.NewWithAPIToken(n.token, cloudflare.BaseURL(n.base), cloudflare.HTTPClient(n.client()),
		cloudflare.UsingRateLimit(1000), cloudflare.UsingRetryPolicy(0, 0, 0)))
	return &v0{n, api, cloudflare.ZoneIdentifier(n.zone)}
}

// made makes a room.
func (v *v0) made(name string) cloudflare.WaitingRoom {
	return *must.Do(v.api.CreateWaitingRoom(v.Context(), v.zone.Identifier, cloudflare.WaitingRoom{
		Name: name, Host: name + "." + v.zone.Identifier + ".example", Path: "/shop", TotalActiveUsers: 20, NewUsersPerMinute: 10, SessionDuration: 7,
	}))
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
	shows(t, "made", made, fields{"queueing_status_code": 200, "session_duration": 7, "queueing_method": "fifo"})
	v.made("shop")
	want(t, "listed", len(must.Do(v.api.ListWaitingRooms(ctx, zone))), 2)
	got := must.Do(v.api.WaitingRoom(ctx, zone, made.ID))
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
		now := must.Do(change())
		shows(t, "changed", now, v.changed())
		shows(t, "changed", now, fields{"total_active_users": 30})
		want(t, "changed", *now.CookieAttributes, cloudflare.WaitingRoomCookieAttributes{Samesite: "lax", Secure: "always"})
	}
	status := must.Do(v.api.WaitingRoomStatus(ctx, zone, made.ID))
	if !strings.Contains(" not_queueing queueing event_prequeueing suspended ", " "+status.Status+" ") {
		t.Errorf("the status is %q", status.Status)
	}
	if v.nodes.api != nil {
		want(t, "status", status, cloudflare.WaitingRoomStatus{Status: "queueing", EstimatedQueuedUsers: 90, EstimatedTotalActiveUsers: 200, MaxEstimatedTimeMinutes: 2})
	}
	preview := must.Do(v.api.WaitingRoomPagePreview(ctx, zone, "<p>{{waitTime}}"))
	want(t, "the preview is at "+preview.PreviewURL, strings.HasPrefix(preview.PreviewURL, "http"), true)
	want(t, "deleted", v.api.DeleteWaitingRoom(ctx, zone, made.ID), nil)
	_, err := v.api.WaitingRoom(ctx, zone, made.ID)
	if _, gone := errors.AsType[*cloudflare.NotFoundError](err); !gone {
		t.Errorf("the room is deleted, and asked for it says %v", err)
	}
}

func (v *v0) events() {
	t, ctx, zone := v.T, v.Context(), v.zone.Identifier
	room := v.made("events").ID
	prequeue := begin.Add(-time.Hour)
	made := must.Do(v.api.CreateWaitingRoomEvent(ctx, zone, room, cloudflare.WaitingRoomEvent{
		Name: "sale", EventStartTime: begin, EventEndTime: begin.Add(time.Hour), PrequeueStartTime: &prequeue, ShuffleAtEventStart: true, TotalActiveUsers: 5, NewUsersPerMinute: 4,
	}))
	want(t, "listed", len(must.Do(v.api.ListWaitingRoomEvents(ctx, zone, room))), 1)
	got := must.Do(v.api.WaitingRoomEvent(ctx, zone, room, made.ID))
	want(t, "read", got.PrequeueStartTime.Equal(prequeue), true)
	want(t, "read", got.SessionDuration, 0)
	details := must.Do(v.api.WaitingRoomEventPreview(ctx, zone, room, made.ID))
	shows(t, "details", details, fields{"session_duration": 7, "queueing_method": "fifo", "total_active_users": 5})
	for i, change := range []func(context.Context, string, string, cloudflare.WaitingRoomEvent) (cloudflare.WaitingRoomEvent, error){
		v.api.UpdateWaitingRoomEvent, v.api.ChangeWaitingRoomEvent,
	} {
		got.SessionDuration, got.QueueingMethod, got.Suspended = 3+i, "random", true
		shows(t, "changed", must.Do(change(ctx, zone, room, got)), fields{"session_duration": 3 + i, "queueing_method": "random"})
		want(t, "changed", must.Do(v.api.WaitingRoomEvent(ctx, zone, room, made.ID)).SessionDuration, 3+i)
	}
	want(t, "the next event, the only one being suspended", must.Do(v.api.WaitingRoom(ctx, zone, room)).NextEventStartTime, nil)
	want(t, "deleted", v.api.DeleteWaitingRoomEvent(ctx, zone, room, made.ID), nil)
	want(t, "deleted", len(must.Do(v.api.ListWaitingRoomEvents(ctx, zone, room))), 0)
}

func (v *v0) rules() {
	t, ctx := v.T, v.Context()
	room := v.made("rules").ID
	rule := func(host string) cloudflare.WaitingRoomRule {
		return cloudflare.WaitingRoomRule{Action: "bypass_waiting_room", Expression: `http.host eq "` + host + `"`, Enabled: cloudflare.BoolPtr(true)}
	}
	all := must.Do(v.api.ReplaceWaitingRoomRules(ctx, v.zone, cloudflare.ReplaceWaitingRoomRuleParams{WaitingRoomID: room, Rules: []cloudflare.WaitingRoomRule{rule("a"), rule("b")}}))
	want(t, "replaced", hosts(all), "ab")
	all = must.Do(v.api.CreateWaitingRoomRule(ctx, v.zone, cloudflare.CreateWaitingRoomRuleParams{WaitingRoomID: room, Rule: rule("c")}))
	want(t, "added", hosts(all), "abc")
	changed := all[1]
	changed.Description, changed.Enabled = "why", cloudflare.BoolPtr(false)
	all = must.Do(v.api.UpdateWaitingRoomRule(ctx, v.zone, cloudflare.UpdateWaitingRoomRuleParams{WaitingRoomID: room, Rule: changed}))
	shows(t, "changed", all[1], fields{"description": "why", "enabled": false, "version": "2"})
	all = must.Do(v.api.ReplaceWaitingRoomRules(ctx, v.zone, cloudflare.ReplaceWaitingRoomRuleParams{WaitingRoomID: room, Rules: all}))
	want(t, "sent back", all[1].Version, "2")
	all = must.Do(v.api.DeleteWaitingRoomRule(ctx, v.zone, cloudflare.DeleteWaitingRoomRuleParams{WaitingRoomID: room, RuleID: all[0].ID}))
	want(t, "deleted", hosts(all), "bc")
	want(t, "read", hosts(must.Do(v.api.ListWaitingRoomRules(ctx, v.zone, cloudflare.ListWaitingRoomRuleParams{WaitingRoomID: room}))), "bc")
}

func (v *v0) settings() {
	t, ctx := v.T, v.Context()
	want(t, "settings", must.Do(v.api.GetWaitingRoomSettings(ctx, v.zone)).SearchEngineCrawlerBypass, false)
	want(t, "patched", must.Do(v.api.PatchWaitingRoomSettings(ctx, v.zone, cloudflare.PatchWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(true)})).SearchEngineCrawlerBypass, true)
	want(t, "read", must.Do(v.api.GetWaitingRoomSettings(ctx, v.zone)).SearchEngineCrawlerBypass, true)
	want(t, "replaced", must.Do(v.api.UpdateWaitingRoomSettings(ctx, v.zone, cloudflare.UpdateWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(false)})).SearchEngineCrawlerBypass, false)
}

// refusals come to whoever asks through the SDK as well.
func (v *v0) refusals() {
	_, err := v.api.CreateWaitingRoom(v.Context(), v.zone.Identifier, cloudflare.WaitingRoom{Name: "a b"})
	refused, ok := errors.AsType[*cloudflare.RequestError](err)
	if !ok || len(refused.ErrorMessages()) < 3 || !strings.Contains(err.Error(), `name: "a b" is not allowed`) {
		v.Errorf("it says %v", err)
	}
}
