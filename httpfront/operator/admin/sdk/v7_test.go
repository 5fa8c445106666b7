//go:build !nov7

package sdk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/option"
	rooms "github.com/cloudflare/cloudflare-go/v7/waiting_rooms"

	"github.com/ropeline/ropeline/bench/must"
)

type v7 struct {
	*nodes
	api *cloudflare.Client
	ctx context.Context
}

func newV7(t *testing.T) *v7 {
	n := meet(t, "v7")
	api := cloudflare.NewClient(option.WithAPIToken(n.token), option.WithBaseURL(n.base), option.WithHTTPClient(n.client()), option.WithMaxRetries(0))
	return &v7{n, api, t.Context()}
}

// query is a room that can be made.
func (v *v7) query(name string) rooms.QueryParam {
	return rooms.QueryParam{
		Name: cloudflare.F(name), Host: cloudflare.F(name + "." + v.zone + ".example"), TotalActiveUsers: cloudflare.F(int64(20)), NewUsersPerMinute: cloudflare.F(int64(10)),
		SessionDuration: cloudflare.F(int64(7)),
	}
}

func (v *v7) made(name string) *rooms.WaitingRoom {
	return must.Do(v.api.WaitingRooms.New(v.ctx, rooms.WaitingRoomNewParams{ZoneID: cloudflare.F(v.zone), Query: v.query(name)}))
}

func TestV7(t *testing.T) {
	v := newV7(t)
	v.rooms()
	v.pages()
	v.events()
	v.rules()
	v.settings()
	v.refusals()
	v.wantAll()
}

func (v *v7) rooms() {
	t, ctx, zone, all := v.T, v.ctx, cloudflare.F(v.zone), v.api.WaitingRooms
	made := v.made("tickets")
	shows(t, "made", made, fields{"queueing_status_code": 200, "session_duration": 7, "path": "/"})
	get := func() (*rooms.WaitingRoom, error) {
		return all.Get(ctx, made.ID, rooms.WaitingRoomGetParams{ZoneID: zone})
	}
	got := must.Do(get())
	want(t, "read", got.Name, "tickets")
	want(t, "read", got.CreatedOn.Equal(made.CreatedOn), true)

	next := v.query("tickets")
	next.Description, next.QueueingMethod, next.CookieSuffix = cloudflare.F("changed"), cloudflare.F(rooms.QueryQueueingMethodRandom), cloudflare.F("x")
	next.AdditionalRoutes = cloudflare.F([]rooms.AdditionalRoutesParam{{Host: cloudflare.F("also." + v.zone + ".example"), Path: cloudflare.F("/")}})
	next.CookieAttributes = cloudflare.F(rooms.CookieAttributesParam{Samesite: cloudflare.F(rooms.CookieAttributesSamesiteLax), Secure: cloudflare.F(rooms.CookieAttributesSecureAlways)})
	next.EnabledOriginCommands = cloudflare.F([]rooms.QueryEnabledOriginCommand{rooms.QueryEnabledOriginCommandRevoke})
	next.JsonResponseEnabled, next.QueueingStatusCode, next.QueueAll = cloudflare.F(true), cloudflare.F(rooms.QueryQueueingStatusCode429), cloudflare.F(true)
	next.CustomPageHTML, next.DefaultTemplateLanguage = cloudflare.F("<p>{{waitTime}}"), cloudflare.F(rooms.QueryDefaultTemplateLanguageDeDe)
	next.TurnstileMode, next.TurnstileAction = cloudflare.F(rooms.QueryTurnstileModeOff), cloudflare.F(rooms.QueryTurnstileActionLog)
	isChanged := func(step string, now *rooms.WaitingRoom) {
		t.Helper()
		shows(t, step, now, v.changed())
		shows(t, step, now, fields{"queue_all": true})
		want(t, step, now.CookieAttributes.Samesite, rooms.CookieAttributesSamesiteLax)
	}
	isChanged("replaced", must.Do(all.Update(ctx, made.ID, rooms.WaitingRoomUpdateParams{ZoneID: zone, Query: next})))
	isChanged("read after that", must.Do(get()))
	isChanged("changed", must.Do(all.Edit(ctx, made.ID, rooms.WaitingRoomEditParams{ZoneID: zone, Query: v.query("tickets")})))
	isChanged("read after that too", must.Do(get()))
	status := must.Do(all.Statuses.Get(ctx, made.ID, rooms.StatusGetParams{ZoneID: zone}))
	want(t, "the status is known", status.Status.IsKnown(), true)
	if v.nodes.api != nil {
		shows(t, "the status", status, fields{"estimated_queued_users": 90, "max_estimated_time_minutes": 2})
	}
	preview := must.Do(all.Page.Preview(ctx, rooms.PagePreviewParams{ZoneID: zone, CustomHTML: cloudflare.F("<p>{{waitTime}}")}))
	want(t, "the preview is at "+preview.PreviewURL, strings.HasPrefix(preview.PreviewURL, "http"), true)
	want(t, "deleted", must.Do(all.Delete(ctx, made.ID, rooms.WaitingRoomDeleteParams{ZoneID: zone})).ID, made.ID)
	_, err := get()
	if gone, ok := errors.AsType[*cloudflare.Error](err); !ok || gone.StatusCode != 404 {
		t.Errorf("the room is deleted, and asked for it says %v", err)
	}
}

// pages are turned by the SDK itself.
func (v *v7) pages() {
	t, zone := v.T, cloudflare.F(v.zone)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		v.made(name)
	}
	one := must.Do(v.api.WaitingRooms.List(v.ctx, rooms.WaitingRoomListParams{ZoneID: zone, PerPage: cloudflare.F(5.0)}))
	want(t, "on a page", len(one.Result), 5)
	want(t, "result_info", int(one.ResultInfo.PerPage), 5)
	var names []string // some may have been made within one millisecond, so that their order is no matter
	turned := v.api.WaitingRooms.ListAutoPaging(v.ctx, rooms.WaitingRoomListParams{ZoneID: zone, PerPage: cloudflare.F(5.0)})
	for turned.Next() {
		names = append(names, turned.Current().Name)
	}
	slices.Sort(names)
	want(t, "on all pages", strings.Join(names, ""), "abcdef")
	want(t, "turning pages", turned.Err(), nil)
	found := 0
	for turned := v.api.WaitingRooms.ListAutoPaging(v.ctx, rooms.WaitingRoomListParams{AccountID: cloudflare.F("any")}); turned.Next(); {
		if strings.HasSuffix(turned.Current().Host, v.zone+".example") {
			found++
		}
	}
	want(t, "of the account", found, 6)
}

func (v *v7) events() {
	t, ctx, zone, all := v.T, v.ctx, cloudflare.F(v.zone), v.api.WaitingRooms.Events
	room := v.made("events").ID
	at := func(d time.Duration) string { return begin.Add(d).Format(time.RFC3339) }
	query := rooms.EventQueryParam{
		Name: cloudflare.F("sale"), EventStartTime: cloudflare.F(at(0)), EventEndTime: cloudflare.F(at(time.Hour)), PrequeueStartTime: cloudflare.F(at(-time.Hour)), ShuffleAtEventStart: cloudflare.F(true),
		TotalActiveUsers: cloudflare.F(int64(5)), NewUsersPerMinute: cloudflare.F(int64(4)),
	}
	made := must.Do(all.New(ctx, room, rooms.EventNewParams{ZoneID: zone, EventQuery: query}))
	want(t, "made", made.PrequeueStartTime, begin.Add(-time.Hour).Format(time.RFC3339))
	want(t, "made", made.JSON.SessionDuration.IsNull(), true)
	want(t, "listed", len(must.Do(all.List(ctx, room, rooms.EventListParams{ZoneID: zone})).Result), 1)
	details := must.Do(all.Details.Get(ctx, room, made.ID, rooms.EventDetailGetParams{ZoneID: zone}))
	shows(t, "details", details, fields{"session_duration": 7, "queueing_method": "fifo", "total_active_users": 5})

	query.SessionDuration, query.QueueingMethod = cloudflare.F(int64(3)), cloudflare.F("random")
	query.TotalActiveUsers, query.NewUsersPerMinute = cloudflare.Null[int64](), cloudflare.Null[int64]()
	now := must.Do(all.Update(ctx, room, made.ID, rooms.EventUpdateParams{ZoneID: zone, EventQuery: query}))
	want(t, "replaced", now.SessionDuration, 3)
	want(t, "replaced", now.JSON.TotalActiveUsers.IsNull(), true)
	now = must.Do(all.Edit(ctx, room, made.ID, rooms.EventEditParams{ZoneID: zone, EventQuery: rooms.EventQueryParam{
		Name: cloudflare.F("autumn"), EventStartTime: cloudflare.F(at(0)), EventEndTime: cloudflare.F(at(2 * time.Hour)), QueueingMethod: cloudflare.Null[string](),
	}}))
	want(t, "changed", now.Name, "autumn")
	now = must.Do(all.Get(ctx, room, made.ID, rooms.EventGetParams{ZoneID: zone}))
	want(t, "read", now.SessionDuration, 3)
	want(t, "read", now.JSON.QueueingMethod.IsNull(), true)
	want(t, "deleted", must.Do(all.Delete(ctx, room, made.ID, rooms.EventDeleteParams{ZoneID: zone})).ID, made.ID)
}

func (v *v7) rules() {
	t, ctx, zone, all := v.T, v.ctx, cloudflare.F(v.zone), v.api.WaitingRooms.Rules
	room := v.made("rules").ID
	host := func(name string) string { return `http.host eq "` + name + `"` }
	var two []rooms.RuleUpdateParamsRule
	for _, name := range []string{"a", "b"} {
		two = append(two, rooms.RuleUpdateParamsRule{Action: cloudflare.F(rooms.RuleUpdateParamsRulesActionBypassWaitingRoom), Expression: cloudflare.F(host(name))})
	}
	want(t, "replaced", hosts(must.Do(all.Update(ctx, room, rooms.RuleUpdateParams{ZoneID: zone, Rules: two})).Result), "ab")
	got := must.Do(all.New(ctx, room, rooms.RuleNewParams{ZoneID: zone, Rules: rooms.RuleNewParamsRules{
		Action: cloudflare.F(rooms.RuleNewParamsRulesActionBypassWaitingRoom), Expression: cloudflare.F(host("c")), Description: cloudflare.F("why"),
	}})).Result
	want(t, "added", hosts(got), "abc")
	want(t, "added", got[2].Description, "why")
	for _, step := range []struct {
		position rooms.RuleEditParamsPositionUnion
		want     string
	}{
		{rooms.RuleEditParamsPositionIndex{Index: cloudflare.F(int64(1))}, "Cab"},
		{rooms.RuleEditParamsPositionBefore{Before: cloudflare.F(got[1].ID)}, "aCb"},
		{rooms.RuleEditParamsPositionAfter{After: cloudflare.F("")}, "abC"},
	} {
		moved := must.Do(all.Edit(ctx, room, got[2].ID, rooms.RuleEditParams{
			ZoneID: zone, Action: cloudflare.F(rooms.RuleEditParamsActionBypassWaitingRoom), Expression: cloudflare.F(host("C")), Enabled: cloudflare.F(false), Position: cloudflare.F(step.position),
		})).Result
		want(t, "moved", hosts(moved), step.want)
	}
	want(t, "deleted", hosts(must.Do(all.Delete(ctx, room, got[0].ID, rooms.RuleDeleteParams{ZoneID: zone})).Result), "bC")
	read := must.Do(all.Get(ctx, room, rooms.RuleGetParams{ZoneID: zone})).Result
	want(t, "read", hosts(read), "bC")
	shows(t, "read", read[1], fields{"enabled": false, "version": "2"})
}

func (v *v7) settings() {
	t, ctx, zone, all := v.T, v.ctx, cloudflare.F(v.zone), v.api.WaitingRooms.Settings
	want(t, "settings", must.Do(all.Get(ctx, rooms.SettingGetParams{ZoneID: zone})).SearchEngineCrawlerBypass, false)
	want(t, "changed", must.Do(all.Edit(ctx, rooms.SettingEditParams{ZoneID: zone, SearchEngineCrawlerBypass: cloudflare.F(true)})).SearchEngineCrawlerBypass, true)
	want(t, "read", must.Do(all.Get(ctx, rooms.SettingGetParams{ZoneID: zone})).SearchEngineCrawlerBypass, true)
	want(t, "replaced", must.Do(all.Update(ctx, rooms.SettingUpdateParams{ZoneID: zone, SearchEngineCrawlerBypass: cloudflare.F(false)})).SearchEngineCrawlerBypass, false)
}

// refusals come to whoever asks through the SDK as well.
func (v *v7) refusals() {
	query := v.query("a b")
	query.TotalActiveUsers = cloudflare.F(int64(0))
	_, err := v.api.WaitingRooms.New(v.ctx, rooms.WaitingRoomNewParams{ZoneID: cloudflare.F(v.zone), Query: query})
	refused, ok := errors.AsType[*cloudflare.Error](err)
	if !ok || refused.StatusCode != 400 || len(refused.Errors) < 2 || !strings.Contains(err.Error(), "from 1 to 2147483647") {
		v.Errorf("it says %v", err)
	}
}
